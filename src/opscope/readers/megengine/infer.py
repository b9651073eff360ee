"""What the file leaves out because MegEngine infers it: the number types of what operators make, and how far each
result sees.

Only what follows from the operator itself is filled in; everything else stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .kinds import plain
from .model import DTYPES, Dtype, Operator

_INDICES = Dtype("int32")
_BOOL = Dtype("bool")
_FLOAT = Dtype("float32")
_SHAPES = frozenset(("GetVarShape", "Argmax", "Argmin", "NonZero", "PermutationRNG"))
_SECOND_IS_INDEX = frozenset(("TopK", "Argsort", "CondTake"))
_RANDOM = frozenset(("UniformRNG", "GaussianRNG", "GammaRNG", "BetaRNG", "PoissonRNG", "ExponentialRNG"))
_BOOLEAN = frozenset(("EQ", "NEQ", "LT", "LEQ", "ISNAN", "ISINF"))
# Results have the type of the first input.
_LIKE_INPUT = frozenset(
    (  # noqa: SIM905
        "Elemwise PowC Reshape Broadcast Subtensor SetSubtensor IncrSubtensor IndexingMultiAxisVec "
        "IndexingSetMultiAxisVec IndexingIncrMultiAxisVec MeshIndexing BatchedMeshIndexing IndexingOneHot "
        "IndexingSetOneHot IndexingRemap Concat Split Dimshuffle AxisAddRemove Pooling AdaptivePooling BatchNorm "
        "Reduce Cumsum Identity Copy Softmax LayerNorm GroupNorm InstanceNorm GeneralNorm Dropout LRN Flip Rotate "
        "Resize Remap WarpPerspective WarpAffine ROIAlign ROIPooling Padding MatrixInverse MaskedFill Diag "
        "RelayoutFormat SlidingWindowTranspose Images2Neibs MarkDynamicVar MarkNoBroadcastElemwise VirtualDep "
        "FakeQuant TQT LSQ LSTMForward LSTMCellForward RNNForward RNNCellForward MultiHeadAttn ShuffleRNG"
    ).split()
)
_PRODUCTS = frozenset(
    (
        "Convolution", "Convolution3D", "ConvBiasForward", "ConvolutionBackwardData", "MatrixMul", "BatchedMatrixMul",
        "Dot", "BatchConvBiasForward", "DeformableConvForward", "GroupLocal", "Local", "RegionRestrictedConvolution",
    )
)  # fmt: skip


def dtypes(operator: Operator, inputs: Sequence[Dtype | None]) -> list[Dtype | None]:
    """The number type of each result; None where it does not follow."""
    kind = plain(operator.type)
    param = operator.param or {}
    count = len(operator.outputs)
    if operator.tensors and (operator.is_parameter or operator.is_input):
        return [operator.tensors[min(i, len(operator.tensors) - 1)].dtype for i in range(count)]
    if operator.output_dtype is not None:
        return [operator.output_dtype] * count
    if kind in _SHAPES:
        return [_INDICES] * count
    if kind == "TypeCvt":
        return [_dtype_of(param)] * count
    if kind == "ElemwiseMultiType":
        return [_BOOL if param.get("mode") in _BOOLEAN else None] * count
    if kind in ("Linspace", "Eye") or kind in _RANDOM:
        return [_named(param.get("dtype")) or _FLOAT] * count
    first = inputs[0] if inputs else None
    if kind == "Where":
        return [inputs[1] if len(inputs) > 1 else None] * count
    if kind in _LIKE_INPUT or (kind in _PRODUCTS and first is not None and first.name.startswith(("float", "bfloat"))):
        found: list[Dtype | None] = [first] * count
        if kind in _SECOND_IS_INDEX and count > 1:
            found[1] = _INDICES
        return found
    if kind in _SECOND_IS_INDEX:
        return [first, *[_INDICES] * (count - 1)][:count]
    return [None] * count


def _dtype_of(param: dict[str, Any]) -> Dtype | None:
    """The parameter of TypeCvt is the table DType itself."""
    name = DTYPES.get(str(param.get("type")))
    if name is None:
        return None
    quantized: dict[str, Any] = param.get("param") or {}
    return Dtype(name, quantized.get("scale"), quantized.get("zero_point") if name.startswith("qu") else None)


def _named(name: Any) -> Dtype | None:
    return Dtype(DTYPES[name]) if name in DTYPES else None


class Reach(NamedTuple):
    """How many pixels of the input one pixel sees, and how far apart in the input neighbours are."""

    height: int
    width: int
    stride_h: int
    stride_w: int


START = Reach(1, 1, 1, 1)
_POINTWISE = frozenset(
    (
        "Elemwise", "ElemwiseMultiType", "BatchNorm", "Identity", "Copy", "TypeCvt", "Dropout", "PowC", "LRN", "Concat",
        "FakeQuant", "TQT", "LSQ", "MarkNoBroadcastElemwise", "Broadcast",
    )
)  # fmt: skip


def reach(operator: Operator, inputs: Sequence[Reach | None], shapes: Sequence[tuple[int, ...] | None]) -> Reach | None:
    """The receptive field of a result, from those of what is read. `None`: it sees everything, or is not known."""
    kind = plain(operator.type)
    param = operator.param or {}
    before = [found for found in inputs if found is not None]
    if not before:
        return None
    joined = Reach(*map(max, zip(*before, strict=True)))
    if kind in _POINTWISE:
        return joined
    if kind in ("Convolution", "ConvBiasForward", "Pooling") and param.get("format") == "NCHW":
        kernel = _kernel(kind, param, shapes)
        if kernel is None or inputs[0] is None:
            return None
        dilate = (param.get("dilate_h", 1), param.get("dilate_w", 1))
        stride = (param.get("stride_h", 1), param.get("stride_w", 1))
        now = inputs[0]
        return Reach(
            now.height + dilate[0] * (kernel[0] - 1) * now.stride_h,
            now.width + dilate[1] * (kernel[1] - 1) * now.stride_w,
            now.stride_h * stride[0],
            now.stride_w * stride[1],
        )
    return None


def _kernel(kind: str, param: dict[str, Any], shapes: Sequence[tuple[int, ...] | None]) -> tuple[int, int] | None:
    if kind == "Pooling":
        return param["window_h"], param["window_w"]
    weight = shapes[1] if len(shapes) > 1 else None
    return (weight[-2], weight[-1]) if weight is not None and len(weight) in (4, 5) else None
