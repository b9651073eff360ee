"""Products and windows as XLA writes them: attributes say which dimensions are summed over, and how a window slides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

from opscope.ops.call import Call, NotKnown, size_of
from opscope.ops.cost import Cost
from opscope.ops.kinds import kind


@kind("matmul/contracted")
def matmul_contracted(call: Call) -> Cost:
    """Every result is a sum over the dimensions of `a` that are named; the batch's are not among them."""
    a = call.shape("a")
    dims: Sequence[int] = call.attr("lhs_contracting_dims", ())
    return Cost(macs=size_of(call.out()) * prod(a[dim] for dim in dims))


@kind("conv/windowed")
def conv_windowed(call: Call) -> Cost:
    """`dim_labels` (`b01f_01io->b01f`) says which dimension of the kernel is summed over. Places between the numbers of
    a dilated input hold nothing and are not counted; padding is, as everywhere."""
    labels, weight = call.attr("dim_labels"), call.shape("weight")
    _, underscore, rest = labels.partition("_") if isinstance(labels, str) else ("", "", "")
    kernel, _, result = rest.partition("->")
    out = call.out()
    if not underscore or len(kernel) != len(weight) or out.shape is None or len(result) != len(out.shape):
        raise NotKnown("how the dimensions lie")
    inside = weight[kernel.index("i")]
    sizes = {label: size for label, size in zip(result, out.shape, strict=True) if isinstance(size, int)}
    window = _window(call)
    places = 1
    for axis in range(len(window["size"])):
        places *= _places(window, axis, sizes[str(axis)])
    return Cost(macs=sizes["b"] * sizes["f"] * inside * places)


def _places(window: Mapping[str, Any], axis: int, results: int) -> int:
    """How many pairs of a result and a place of its window, along one axis, meet a number of the input or padding."""
    size, holes = window["size"][axis], window["lhs_dilate"][axis]
    if holes == 1:
        return results * size
    stride, dilation, low = window["stride"][axis], window["rhs_dilate"][axis], window["pad"][axis][0]
    # What meets holes repeats every `holes` results, so that few of them say how it is for all.
    whole, rest = divmod(results, holes)
    met = [sum((i * stride + k * dilation - low) % holes == 0 for k in range(size)) for i in range(min(results, holes))]
    return whole * sum(met) + sum(met[:rest])


@kind("pool/windowed")
def pool_windowed(call: Call) -> Cost:
    """Every place of the window, also those on padding."""
    return Cost(other=size_of(call.out()) * prod(_window(call)["size"]))


@kind("max_pool_backward/windowed")
def max_pool_backward_windowed(call: Call) -> Cost:
    """The largest of every window is found once more, and its gradient is added there."""
    grad = call.size("grad")
    return Cost(other=grad * prod(_window(call)["size"]) + grad)


def _window(call: Call) -> dict[str, list[Any]]:
    found = call.attr("window")
    if not isinstance(found, Mapping):
        raise NotKnown("the window")
    window = dict(cast("Mapping[str, Sequence[Any]]", found))
    count = len(window.get("size", ()))
    plain = {"size": 1, "stride": 1, "lhs_dilate": 1, "rhs_dilate": 1, "pad": [0, 0]}
    return {name: list(window.get(name, [value] * count)) for name, value in plain.items()}
