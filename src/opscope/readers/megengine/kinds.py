"""What MegEngine's operators are called in its files, and what opscope calls them."""

from __future__ import annotations

import re
from functools import cache

# Every operator that MegEngine 1.13 can write. Files of the first format name them by a hash only.
_TYPES = """
    AdaptivePoolingBackwardV1 AdaptivePoolingV1 AddUpdate AffineInt Alloc Argmax Argmin Argsort ArgsortBackward
    AssertEqual AtlasRuntimeOpr AxisAddRemove BatchConvBiasForwardV1 BatchNormBackwardV1 BatchNormV1
    BatchedIncrMeshIndexing BatchedMatrixMulV2 BatchedMeshIndexing BatchedSetMeshIndexing BetaRNG Broadcast
    CambriconRuntimeOpr CheckNonFinite Concat CondExecMark CondExecMarkIfNeed CondExecMerge CondExecPred
    CondExecPredLogical CondTake ConvBiasForwardV4 Convolution3D Convolution3DBackwardData
    Convolution3DBackwardFilter ConvolutionBackwardDataV2 ConvolutionBackwardFilterV2 ConvolutionV2 Copy
    CorrelationBackwardData1 CorrelationBackwardData2 CorrelationForward Cross CumsumV1 CustomOpNode CvtColor
    DctChannelSelectV1 DeformableConvBackwardDataV1 DeformableConvBackwardFilterV1 DeformableConvForwardV1
    DeformablePSROIPoolingBackward DeformablePSROIPoolingForward Diag DiagBackward Dimshuffle Dot Dropout
    DropoutBackward Elemwise ElemwiseMultiType ExponentialRNG ExternCOprRunner Eye FakeQuant FakeQuantBackward Flip
    GammaRNG GaussianBlur GaussianRNGV1 GeneralNorm GeneralNormBackward GetVarShapeV1 GroupLocalBackwardDataV2
    GroupLocalBackwardFilterV2 GroupLocalV2 GroupNorm GroupNormBackward Host2DeviceCopy Identity Images2Neibs
    Images2NeibsBackward ImmutableTensor IncrMeshIndexing IncrSubtensor IndexingIncrMultiAxisVec
    IndexingMultiAxisVec IndexingOneHot IndexingRemap IndexingRemapBackward IndexingSetMultiAxisVec
    IndexingSetOneHot InputMaker InstanceNorm InstanceNormBackward LRN LRNBackward LSQ LSQBackward LSTMBackward
    LSTMCellForward LSTMForward LayerNorm LayerNormBackward Linspace LocalBackwardDataV2 LocalBackwardFilterV2
    LocalShareBackwardDataV1 LocalShareBackwardFilterV1 LocalShareForwardV1 LocalV2 Loop LoopGrad
    MagicMindRuntimeOpr MarkDynamicVar MarkNoBroadcastElemwise MaskConvolutionV2 MaskPropagate MaskedFill
    MatrixInverse MatrixMulV2 MeshIndexing MultiHeadAttn MultiHeadAttnBackward MultinomialRNG
    MultipleDeviceTensorHolder MultipleDeviceTensorWithFormatHolder NMSKeepMGB NonZero NvOf Padding PaddingBackward
    PermutationRNG PersistentOutputStorage PoissonRNG PoolingBackwardV1 PoolingV1 PowC RNNBackward RNNCellForward
    RNNForward ROIAlignBackwardV1 ROIAlignV1 ROIPooling ROIPoolingBackward ReduceV2 RegionRestrictedConvolution
    RegionRestrictedConvolutionBackwardData RegionRestrictedConvolutionBackwardFilter RelayoutFormatV1
    RemapBackwardDataV1 RemapBackwardMatV1 RemapV1 ReshapeV1 Resize3D ResizeBackward ResizeV2 Rotate SVD
    SetMeshIndexing SetSubtensor SharedDeviceTensor SharedDeviceTensorWithFormat ShuffleRNG ShuffleRNGBackward
    Sleep SlidingWindowTranspose SlidingWindowTransposeBackward Softmax SoftmaxBackward Split Subtensor TQT
    TQTBackward TensorRTRuntimeOpr TopK TypeCvtV2 UniformRNGV1 VirtualDep VirtualGrad VolatileSharedDeviceTensor
    WarpAffineV2 WarpPerspectiveBackwardDataV2 WarpPerspectiveBackwardMatV2 WarpPerspectiveV2 Where WhereBackward
"""
_SEED = 20160701
_VERSIONS = ("", "V0", "V1", "V2", "V3", "V4")

PARAMETERS = frozenset(
    (
        "ImmutableTensor",
        "SharedDeviceTensor",
        "SharedDeviceTensorWithFormat",
        "VolatileSharedDeviceTensor",
        "MultipleDeviceTensorHolder",
        "MultipleDeviceTensorWithFormatHolder",
    )
)
INPUT = "Host2DeviceCopy"

# As `Network` names them where that is not simply the name without its version.
_LIVE = {
    "BatchedMatrixMul": "BatchedMatmul",
    "ConvBiasForward": "ConvBias",
    "ConvolutionBackwardData": "ConvTranspose",
    "BatchConvBiasForward": "BatchConvBias",
    "DeformableConvForward": "DeformableConv",
    "DeformablePSROIPoolingForward": "DeformablePSROIPooling",
    "LayerNorm": "LayerNormForward",
    "Softmax": "SoftmaxForward",
    "GroupNorm": "GroupNormForward",
    "InstanceNorm": "InstanceNormForward",
    "NMSKeepMGB": "NMSKeep",
    "Dropout": "DropoutForward",
}
# What these compute is in their mode: `Elemwise.RELU`, `Reduce.SUM`.
_BY_MODE = frozenset(("Elemwise", "ElemwiseMultiType", "Reduce", "Pooling", "AdaptivePooling"))


def plain(kind: str) -> str:
    """`BatchNormV1` as `BatchNorm`: the version says how it was written, not what it does."""
    return re.sub(r"V\d$", "", kind)


def live(kind: str) -> str:
    """The type that `megengine.utils.network.Network` gives to an operator of this type in a file."""
    name = plain(kind)
    return _LIVE.get(name, name)


def op_name(kind: str, mode: object = None) -> str:
    """What opscope calls an operator: `Convolution`, `Elemwise.ADD`."""
    name = live(kind)
    if name in _BY_MODE and isinstance(mode, str):
        return f"{name}.{mode.rstrip('_')}"
    return name


@cache
def types_by_id() -> dict[int, str]:
    """The types by the ids of the first format: the XXH64 of the name, with its final zero or without."""
    found: dict[int, str] = {}
    for name in _TYPES.split():
        base = plain(name)
        for version in (name.removeprefix(base), *_VERSIONS):
            found.setdefault(xxh64(f"{base}{version}\0".encode()), base + version)
        found.setdefault(xxh64(base.encode()), base)
    return found


_MASK = 2**64 - 1
_P1, _P2, _P3, _P4, _P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)


def xxh64(data: bytes, seed: int = _SEED) -> int:
    """XXH64, as its specification has it; the names are short, so that speed does not matter."""
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data) - len(data) % 8, 8)]
    stripes = len(data) // 32 * 4
    if stripes:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        for i, word in enumerate(words[:stripes]):
            lanes[i % 4] = _round(lanes[i % 4], word)
        total = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        total = (seed + _P5) & _MASK
    total = (total + len(data)) & _MASK
    for word in words[stripes:]:
        total = (_rotated(total ^ _round(0, word), 27) * _P1 + _P4) & _MASK
    rest = data[len(words) * 8 :]
    if len(rest) >= 4:
        total = (_rotated(total ^ (int.from_bytes(rest[:4], "little") * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        total = _rotated(total ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    total = (total ^ total >> 33) * _P2 & _MASK
    total = (total ^ total >> 29) * _P3 & _MASK
    return total ^ total >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK
