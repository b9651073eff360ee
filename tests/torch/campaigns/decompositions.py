"""What torch's functions become below Dynamo's graph: the table in `opscope.readers.torch.compiler.decompositions`.

    python tests/torch/campaigns/decompositions.py

Each of torch's own samples of a function runs through AOTAutograd with Inductor's decompositions; printed are the
operators that its forward and its backward graph have. Views are left out. It takes some minutes, and needs what
`torch.testing._internal` imports.
"""

from __future__ import annotations

import sys
import types
import unittest
import warnings
from itertools import islice
from typing import Any

import torch
import torch.utils._pytree as pytree

FUNCTIONS = (
    "linear", "gelu", "silu", "relu", "relu6", "elu", "selu", "celu", "leaky_relu", "prelu", "rrelu",
    "hardtanh", "hardswish", "hardsigmoid", "hardshrink", "softshrink", "mish", "softplus", "softsign",
    "tanhshrink", "threshold", "glu", "logsigmoid", "dropout", "dropout2d", "dropout3d", "alpha_dropout",
    "feature_alpha_dropout", "layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm",
    "local_response_norm", "normalize", "softmax", "log_softmax", "softmin", "cross_entropy", "nll_loss",
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div", "cosine_similarity", "pairwise_distance", "conv1d",
    "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "max_pool1d",
    "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d",
    "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d", "embedding", "embedding_bag",
    "bilinear", "interpolate", "upsample_bilinear", "upsample_nearest", "grid_sample", "pixel_shuffle",
    "pixel_unshuffle", "pad", "unfold", "fold", "one_hot", "add", "sub", "mul", "div", "pow", "sqrt", "rsqrt",
    "exp", "log", "sin", "cos", "tanh", "sigmoid", "erf", "abs", "neg", "reciprocal", "sign", "clamp",
    "clamp_min", "where", "maximum", "minimum", "sum", "mean", "var", "std", "var_mean", "std_mean", "max",
    "min", "amax", "amin", "argmax", "argmin", "sort", "argsort", "topk", "cumsum", "cumprod", "prod", "norm",
    "logsumexp", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "outer", "dot", "mv", "cat", "stack",
    "chunk", "split", "index_select", "gather", "scatter", "scatter_add", "index_add", "index_put", "tril",
    "triu", "roll", "flip", "repeat", "tile", "zeros_like", "ones_like", "full_like", "rand_like",
    "randn_like", "floor", "round", "square", "expm1", "log1p", "lerp", "addcmul", "addcdiv", "eq", "ne",
    "lt", "gt", "le", "ge", "logical_and", "logical_or", "__getitem__", "to", "cdist",
)  # fmt: skip
VIEWS = (
    "adjoint", "alias", "as_strided", "chunk", "detach", "diagonal", "expand", "expand_as", "lift_fresh",
    "movedim", "narrow", "permute", "real", "select", "slice", "split", "split_with_sizes", "squeeze", "t",
    "transpose", "unbind", "unfold", "unsqueeze", "view", "view_as", "reshape", "_unsafe_view", "view_of",
    "broadcast_in_dim",
)  # fmt: skip
ALWAYS = {"clone", "convert_element_type", "full", *VIEWS}
SAMPLES = 4


def samples() -> list[Any]:
    missing = types.ModuleType("expecttest")
    missing.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    sys.modules.setdefault("expecttest", missing)
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if op.name.rpartition(".")[2] in FUNCTIONS]


def joint(op: Any, sample: Any) -> tuple[torch.fx.GraphModule, bool]:
    from torch._functorch.aot_autograd import aot_export_joint_simple
    from torch._inductor.decomposition import select_decomp_table

    flat, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    where = [i for i, item in enumerate(flat) if isinstance(item, torch.Tensor)]

    def function(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        full = list(flat)
        for i, tensor in zip(where, tensors, strict=True):
            full[i] = tensor
        first, args, kwargs = pytree.tree_unflatten(full, spec)
        found = pytree.tree_leaves(op.op(first, *args, **kwargs))
        return tuple(item for item in found if isinstance(item, torch.Tensor))

    tensors = [flat[i].detach().requires_grad_(flat[i].requires_grad) for i in where]
    trains = any(tensor.requires_grad for tensor in tensors)
    return aot_export_joint_simple(function, tensors, trace_joint=trains, decompositions=select_decomp_table()), trains


def parts(module: torch.fx.GraphModule, trains: bool) -> tuple[set[str], set[str], bool]:
    """The operators of forward and of backward, and whether forward has none."""
    nodes = [node for node in module.graph.nodes if node.op.startswith("call")]
    late = {node for node in module.graph.nodes if node.op == "placeholder" and "tangent" in node.name}
    for node in nodes:
        if any(source in late for source in node.all_input_nodes):
            late.add(node)
    results = next(node for node in module.graph.nodes if node.op == "output").args[0]
    returned = pytree.tree_leaves(results[0] if trains and isinstance(results[0], (list, tuple)) else results)
    last = max((nodes.index(node) for node in returned if node in nodes and node not in late), default=-1)
    ahead, behind = set[str](), set[str]()
    for i, node in enumerate(nodes):
        name = str(node.target).removeprefix("aten.").removeprefix("prims.").partition(".")[0]
        if "getitem" not in name:
            (behind if node in late or (i > last and trains) else ahead).add(name)
    return ahead, behind, last < 0


def main() -> None:
    warnings.simplefilter("ignore")
    found: dict[str, tuple[set[str], set[str], list[bool]]] = {}
    for op in samples():
        rows = found.setdefault(op.name.rpartition(".")[2], (set(), set(), []))
        for sample in islice(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd), SAMPLES):
            try:
                ahead, behind, is_empty = parts(*joint(op, sample))
            except Exception as error:  # a sample that AOTAutograd does not take
                print(f"{op.name}: {type(error).__name__}", file=sys.stderr)
                continue
            rows[0].update(ahead)
            rows[1].update(behind)
            rows[2].append(is_empty)
    for name, (ahead, behind, empty) in sorted(found.items()):
        mark = "?" if any(empty) else ""
        forward, backward = sorted(ahead - ALWAYS), sorted(behind - ahead - ALWAYS)
        print(f"{name}{mark}: {' '.join(forward)} | {' '.join(backward)}".rstrip())


if __name__ == "__main__":
    main()
