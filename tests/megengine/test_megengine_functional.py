"""Every function of MegEngine's that can be called on a CPU is recorded: no warning, and nothing cut in two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import megengine as mge
import megengine.functional as F
import megengine.module as M
import megengine.random as R
import numpy as np
import pytest

import opscope
from opscope.tracers.arguments import tensors_in

RANDOM = np.random.default_rng(7)


def floats(*shape: int) -> mge.Tensor:
    return mge.tensor(RANDOM.uniform(0.1, 0.9, shape).astype("float32"))


def ints(*shape: int, below: int = 2) -> mge.Tensor:
    return mge.tensor(RANDOM.integers(0, below, shape).astype("int32"))


def of_images(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What works on images, of a batch of vectors."""
    return lambda x: call(F.reshape(x, (1, 2, 4, 4)))


ONE = [
    "abs",
    "acos",
    "asin",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "asinh",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "neg",
    "round",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "argmax",
    "argmin",
    "max",
    "min",
    "mean",
    "prod",
    "sum",
    "std",
    "var",
    "isinf",
    "isnan",
    "sign",
    "sort",
    "argsort",
    "gelu",
    "hsigmoid",
    "hswish",
    "leaky_relu",
    "logsigmoid",
    "relu",
    "relu6",
    "sigmoid",
    "silu",
    "softplus",
    "softmax",
    "copy",
    "flatten",
    "ones_like",
    "zeros_like",
    "squeeze",
]
TWO = [
    "add",
    "sub",
    "mul",
    "div",
    "floor_div",
    "mod",
    "pow",
    "maximum",
    "minimum",
    "atan2",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logaddexp",
    "prelu",
]
BOOLEAN = ("logical_and", "logical_or", "logical_xor")
INTEGER = ("left_shift", "right_shift")
RANDOM_NUMBERS = {
    "normal": lambda x: x + R.normal(size=(8,)),
    "uniform": lambda x: x * R.uniform(size=(8,)),
    "gamma": lambda x: R.gamma(x + 1, x + 1),
    "beta": lambda x: R.beta(x + 1, x + 1),
    "poisson": lambda x: R.poisson(x),
    "permutation": lambda x: x[R.permutation(4)],
    "shuffle": lambda x: shuffled(x),
}


def shuffled(x: mge.Tensor) -> mge.Tensor:
    y = x * 1
    R.shuffle(y)
    return y


def assigned(x: mge.Tensor) -> mge.Tensor:
    y = F.copy(x)
    y[0] = 0
    return y


WEIGHT = floats(8, 8)
OTHERS: dict[str, Callable[[Any], Any]] = {
    "acosh": lambda x: F.acosh(x + 1),
    "clip": lambda x: F.clip(x, 0.2, 0.8),
    "logical_not": lambda x: F.logical_not(x > 0.5),
    "norm": lambda x: F.norm(x, axis=1),
    "normalize": lambda x: F.normalize(x, axis=1),
    "dot": lambda x: F.dot(x[0], x[1]),
    "matinv": lambda x: F.matinv(x[:, :4] + F.eye(4)),
    "matmul": lambda x: F.matmul(x, WEIGHT),
    "matmul batched": lambda x: F.matmul(F.reshape(x, (2, 2, 8)), F.reshape(x, (2, 8, 2))),
    "topk": lambda x: F.topk(x, 3),
    "svd": lambda x: F.svd(x),
    "adaptive_avg_pool2d": of_images(lambda x: F.adaptive_avg_pool2d(x, 2)),
    "adaptive_max_pool2d": of_images(lambda x: F.adaptive_max_pool2d(x, 2)),
    "avg_pool2d": of_images(lambda x: F.avg_pool2d(x, 2)),
    "max_pool2d": of_images(lambda x: F.max_pool2d(x, 2)),
    "batch_norm": of_images(
        lambda x: F.batch_norm(
            x, F.zeros((1, 2, 1, 1)), F.ones((1, 2, 1, 1)), F.ones((1, 2, 1, 1)), F.zeros((1, 2, 1, 1)), training=True
        )
    ),
    "conv1d": lambda x: F.conv1d(F.reshape(x, (1, 2, 16)), floats(3, 2, 3)),
    "conv2d": of_images(lambda x: F.conv2d(x, floats(3, 2, 3, 3), floats(1, 3, 1, 1))),
    "conv3d": lambda x: F.conv3d(F.reshape(x, (1, 2, 2, 2, 4)), floats(3, 2, 1, 1, 1)),
    "conv_transpose2d": of_images(lambda x: F.conv_transpose2d(x, floats(2, 3, 2, 2))),
    "conv_transpose3d": lambda x: F.conv_transpose3d(F.reshape(x, (1, 2, 2, 2, 4)), floats(2, 3, 1, 1, 1)),
    "deformable_conv2d": of_images(
        lambda x: F.deformable_conv2d(x, floats(3, 2, 3, 3), floats(1, 18, 2, 2), floats(1, 9, 2, 2))
    ),
    "deformable_psroi_pooling": of_images(
        lambda x: F.deformable_psroi_pooling(
            x, mge.tensor([[0.0, 0, 0, 2, 2]]), F.zeros((1, 2, 1, 1)), True, 1, 1, 1, 1, 1.0, 0.1
        )
    ),
    "dropout": lambda x: F.dropout(x, 0.5, True),
    "embedding": lambda x: F.embedding(F.argmax(x, 1), WEIGHT),
    "general_norm": lambda x: F.nn.general_norm(x, (1,), False),
    "group_norm": of_images(lambda x: F.nn.group_norm(x, 2, False)),
    "instance_norm": of_images(lambda x: F.nn.instance_norm(x, False)),
    "layer_norm": lambda x: F.nn.layer_norm(x, (8,), True, F.ones((8,)), F.zeros((8,))),
    "local_response_norm": of_images(lambda x: F.local_response_norm(x, 3)),
    "indexing_one_hot": lambda x: F.indexing_one_hot(x, ints(4), 1),
    "linear": lambda x: F.linear(x, WEIGHT, floats(8)),
    "local_conv2d": of_images(lambda x: F.local_conv2d(x, floats(1, 4, 4, 2, 1, 1, 3))),
    "logsoftmax": lambda x: F.logsoftmax(x, 1),
    "logsumexp": lambda x: F.logsumexp(x, 1),
    "one_hot": lambda x: F.one_hot(F.argmax(x, 1), 8),
    "pad": lambda x: F.nn.pad(x, ((0, 0), (1, 1))),
    "pixel_shuffle": lambda x: F.pixel_shuffle(F.reshape(x, (1, 8, 2, 2)), 2),
    "region_restricted_conv": of_images(
        lambda x: F.region_restricted_conv(
            x, floats(2, 1, 1, 1, 1), ints(1, 4, 4, below=1), ints(1, 4, 4, below=1), groups=2
        )
    ),
    "remap": of_images(lambda x: F.vision.remap(x, floats(1, 2, 2, 2))),
    "sliding_window": of_images(lambda x: F.sliding_window(x, 2)),
    "sliding_window_transpose": lambda x: F.sliding_window_transpose(
        F.sliding_window(F.reshape(x, (1, 2, 4, 4)), 2, 0, 2), (4, 4), 2, 0, 2
    ),
    "sync_batch_norm": of_images(
        lambda x: F.nn.sync_batch_norm(x, F.zeros((1, 2, 1, 1)), F.ones((1, 2, 1, 1)), training=True)
    ),
    "warp_affine": of_images(lambda x: F.vision.warp_affine(x, floats(1, 2, 3), (3, 3), format="NCHW")),
    "warp_perspective": of_images(lambda x: F.vision.warp_perspective(x, floats(1, 3, 3), (3, 3))),
    "arange": lambda x: x + F.arange(8),
    "linspace": lambda x: x + F.linspace(0, 1, 8),
    "eye": lambda x: x + F.eye(4, 8),
    "full": lambda x: x + F.full((8,), 2.0),
    "full_like": lambda x: F.full_like(x, 2),
    "ones": lambda x: x + F.ones((8,)),
    "zeros": lambda x: x + F.zeros((8,)),
    "broadcast_to": lambda x: F.broadcast_to(x, (2, 4, 8)),
    "complex": lambda x: F.complex(x, x),
    "real": lambda x: F.real(F.complex(x, x)),
    "imag": lambda x: F.imag(F.complex(x, x)),
    "polar": lambda x: F.polar(x, x),
    "concat": lambda x: F.concat([x, x], 1),
    "stack": lambda x: F.stack([x, x]),
    "split": lambda x: F.split(x, 2, 1),
    "cond_take": lambda x: F.cond_take(x > 0.5, x),
    "cumsum": lambda x: F.cumsum(x, 1),
    "diag": lambda x: F.diag(x),
    "expand_dims": lambda x: F.expand_dims(x, 1),
    "gather": lambda x: F.gather(x, 1, ints(4, 1)),
    "scatter": lambda x: F.scatter(F.copy(x), 1, ints(4, 1), floats(4, 1)),
    "meshgrid": lambda x: F.meshgrid(x[0], x[1]),
    "repeat": lambda x: F.repeat(x, 2, 1),
    "roll": lambda x: F.roll(x, 1, 1),
    "tile": lambda x: F.tile(x, (1, 2)),
    "transpose": lambda x: F.transpose(x, (1, 0)),
    "swapaxes": lambda x: F.swapaxes(x, 0, 1),
    "reshape": lambda x: F.reshape(x, (2, -1)),
    "where": lambda x: F.where(x > 0.5, x, x * 0.1),
    "binary_cross_entropy": lambda x: F.loss.binary_cross_entropy(x, ints(4, 8).astype("float32")),
    "cross_entropy": lambda x: F.loss.cross_entropy(x, ints(4)),
    "ctc_loss": lambda x: F.loss.ctc_loss(
        F.reshape(F.softmax(x, 1), (4, 1, 8)), ints(1, below=1) + 4, ints(2), ints(1, below=1) + 2
    ),
    "hinge_loss": lambda x: F.loss.hinge_loss(x, ints(4, 8).astype("float32") * 2 - 1),
    "l1_loss": lambda x: F.loss.l1_loss(x, floats(4, 8)),
    "square_loss": lambda x: F.loss.square_loss(x, floats(4, 8)),
    "correlation": of_images(lambda x: F.vision.correlation(x, x)),
    "interpolate": of_images(lambda x: F.vision.interpolate(x, scale_factor=2)),
    "nms": lambda x: F.vision.nms(mge.tensor([[0.0, 0, 1, 1], [0, 0, 1, 1]]), x[:2, 0], 0.5),
    "roi_align": of_images(lambda x: F.vision.roi_align(x, mge.tensor([[0.0, 0, 0, 2, 2]]), (2, 2))),
    "roi_pooling": of_images(lambda x: F.vision.roi_pooling(x, mge.tensor([[0.0, 0, 0, 2, 2]]), (2, 2))),
    "cvt_color": lambda x: F.vision.cvt_color(
        F.broadcast_to(F.reshape(x[0, :1], (1, 1, 1, 1)), (1, 4, 4, 3)), "RGB2GRAY"
    ),
    "topk_accuracy": lambda x: F.metric.topk_accuracy(x, ints(4)),
    "index": lambda x: x[1:3, ::2],
    "index by tensors": lambda x: x[ints(2), ints(2)],
    "assignment": assigned,
    "astype": lambda x: x.astype("float16"),
}
SOURCES = {"ones_like", "zeros_like", "full_like"}  # they need no number of what they are given


def function(name: str) -> Callable[..., Any]:
    return getattr(F, name, None) or getattr(F.nn, name)


def halved(name: str) -> Callable[[Any], Any]:
    return lambda x: function(name)(x, x * 0.5)


def compared(name: str) -> Callable[[Any], Any]:
    return lambda x: function(name)(x > 0.3, x > 0.6)


def whole(name: str) -> Callable[[Any], Any]:
    return lambda x: function(name)(x.astype("int32"), x.astype("int32"))


CALLS = {
    **{name: function(name) for name in ONE},
    **{name: halved(name) for name in TWO},
    **{name: compared(name) for name in BOOLEAN},
    **{name: whole(name) for name in INTEGER},
    **{f"random {name}": call for name, call in RANDOM_NUMBERS.items()},
    **OTHERS,
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_left_out(name: str):
    call = CALLS[name]
    x = floats(4, 8)
    try:
        made = list(tensors_in(mge.Tensor, call(x)))
    except Exception as error:
        pytest.skip(f"MegEngine itself fails: {str(error).splitlines()[0][:100]}")
    captured = opscope.trace(call, x)
    graph = captured.graph
    assert not [text for text in captured.all_warnings() if "could not be recorded" in text]
    assert all(node.op != "OpDef" for node in graph.nodes)
    assert len(graph.outputs) == len(made) or "meshgrid" in name
    # Every constant is one: nothing that an operator of ours should have made.
    reached = {int(graph.inputs[0])}
    for node in graph.nodes:
        if any(value is not None and value.index in reached for value in node.inputs):
            reached |= {value.index for value in node.outputs}
    assert any(int(out) in reached for out in graph.outputs) or name in SOURCES, "the result hangs on the argument"


def test_the_table_is_complete():
    """All that MegEngine offers, but for what needs other hardware or other processes."""
    elsewhere = {"nvof", "multi_head_attention"}
    from megengine.functional import elemwise, loss, math, metric, nn, tensor, vision

    offered = {name for module in (elemwise, loss, math, metric, nn, tensor, vision) for name in module.__all__}
    assert offered - elsewhere <= set(CALLS)


class Between(M.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = M.Linear(4, 4), M.Linear(4, 4)

    def forward(self, x: mge.Tensor) -> mge.Tensor:
        y = self.a(x)
        return self.b(F.where(y > 0, y, y * 0.1))


def test_where_does_not_cut_a_graph_in_two():
    captured = opscope.trace(Between(), floats(2, 4))
    (where,) = [node for node in captured.graph.nodes if node.op == "Where"]
    assert where.attrs == {"not known": "parameters"}
    assert [value.producer.op for value in where.inputs if value and value.producer][-1] == "Elemwise.MUL"
    (second,) = [node for node in captured.graph.nodes if node.path == "b" and node.op == "MatrixMul"]
    assert second.inputs[0] is not None
    assert second.inputs[0].producer is not None
    assert second.inputs[0].producer.op == "Where"
    assert captured.all_warnings() == [
        "the parameters of Where are not known: MegEngine builds them of parts that it shows to nobody"
    ]
    assert not captured.stats().unknown_ops
