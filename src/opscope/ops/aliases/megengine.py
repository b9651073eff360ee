"""MegEngine: operators of files and of live captures by the same names; what `Elemwise`, `Reduce` and `Pooling` compute
is in their mode (`Elemwise.RELU`). Reshapes, slices and broadcasts share memory.
"""

from __future__ import annotations

from math import prod

from opscope.ops.call import Call, NotKnown, Type, shape_of, size_of
from opscope.ops.cost import Cost
from opscope.ops.kinds import KINDS, kind

from . import Spelled

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
matmul_transposable a:0 b:1 < MatrixMul BatchedMatmul
vecdot a:0 b:1 < Dot
grouped_conv x:0 weight:1 bias:2 z:3 < Convolution Convolution3D ConvBias ConvolutionForward Conv3DBias
grouped_conv_transpose weight:0 x:1 < ConvTranspose Convolution3DBackwardData
# -- element by element --------------------------------------------------------------------------------------
add < Elemwise.ADD
sub < Elemwise.SUB
mul < Elemwise.MUL
div < Elemwise.TRUE_DIV
floor_divide < Elemwise.FLOOR_DIV
remainder < Elemwise.MOD
pow < Elemwise.POW PowC
maximum < Elemwise.MAX
minimum < Elemwise.MIN
neg < Elemwise.NEGATE
abs < Elemwise.ABS
sqrt < Elemwise.SQRT
square < Elemwise.SQUARE
sign < Elemwise.SIGN
exp < Elemwise.EXP
expm1 < Elemwise.EXPM1
log < Elemwise.LOG
log1p < Elemwise.LOG1P
logaddexp < Elemwise.LOG_SUM_EXP
floor < Elemwise.FLOOR
ceil < Elemwise.CEIL
round < Elemwise.ROUND
sin < Elemwise.SIN
cos < Elemwise.COS
tan < Elemwise.TAN
asin < Elemwise.ASIN
acos < Elemwise.ACOS
atan2 < Elemwise.ATAN2
sinh < Elemwise.SINH
cosh < Elemwise.COSH
tanh < Elemwise.TANH Elemwise.FAST_TANH
asinh < Elemwise.ASINH
acosh < Elemwise.ACOSH
atanh < Elemwise.ATANH
erf < Elemwise.ERF
erfc < Elemwise.ERFC
erfinv < Elemwise.ERFINV
relu < Elemwise.RELU
relu6 < Elemwise.RELU6
prelu < Elemwise.PRELU
sigmoid < Elemwise.SIGMOID
hardsigmoid < Elemwise.HSIGMOID
hardswish < Elemwise.H_SWISH
log_sigmoid < Elemwise.LOGSIGMOID
softplus < Elemwise.SOFTPLUS
silu < Elemwise.SILU
gelu < Elemwise.GELU
clamp < Elemwise.CLIP
fma < Elemwise.FUSE_MUL_ADD3
add_relu < Elemwise.FUSE_ADD_RELU
eq < Elemwise.EQ
ne < Elemwise.NEQ
lt < Elemwise.LT
le < Elemwise.LEQ
isnan < Elemwise.ISNAN
isinf < Elemwise.ISINF
logical_not < Elemwise.NOT
logical_and < Elemwise.AND
logical_or < Elemwise.OR
logical_xor < Elemwise.XOR
bitwise_left_shift < Elemwise.SHL
bitwise_right_shift < Elemwise.SHR
sigmoid_backward < Elemwise.SIGMOID_GRAD
tanh_backward < Elemwise.TANH_GRAD
gelu_backward < Elemwise.GELU_GRAD
silu_backward < Elemwise.SILU_GRAD
where < Where Elemwise.COND_LEQ_MOV Elemwise.COND_LT_MOV Elemwise.SWITCH_GT0
masked_fill < MaskedFill
cast < TypeCvt
fake_quantize < FakeQuant
# -- normalization, pooling ----------------------------------------------------------------------------------
batch_norm_by_mode x:0 weight:1 bias:2 running_mean:3 < BatchNorm
layer_norm x:0 weight:1 bias:2 < LayerNormForward GroupNormForward InstanceNormForward GeneralNorm
softmax x:0 < SoftmaxForward
windowed_pool < Pooling
adaptive_pool x:0 < AdaptivePooling
dropout < DropoutForward
# -- reductions ----------------------------------------------------------------------------------------------
sum < Reduce.SUM
mean < Reduce.MEAN
prod < Reduce.PRODUCT
amax < Reduce.MAX
amin < Reduce.MIN
squared_sum < Reduce.SUM_SQR
argmax < Argmax
argmin < Argmin
cumsum < Cumsum
sort < Argsort
topk < TopK
# -- data ----------------------------------------------------------------------------------------------------
view < Reshape AxisAddRemove AddAxis RemoveAxis Identity MarkDynamicVar MarkNoBroadcastElemwise VirtualDep
permute < Dimshuffle
slice < Subtensor
expand < Broadcast
size < GetVarShape
cat < Concat
split < Split
copy < Copy SetSubtensor IndexingSetMultiAxisVec IndexingSetOneHot SetMeshIndexing RelayoutFormat
gather < IndexingMultiAxisVec IndexingOneHot IndexingRemap MeshIndexing BatchedMeshIndexing
scatter_add self:0 src:1 < IncrSubtensor IndexingIncrMultiAxisVec IncrMeshIndexing
fill < Fill FillLike Linspace Eye Alloc
random < UniformRNG GaussianRNG GammaRNG BetaRNG PoissonRNG PermutationRNG ExponentialRNG
shuffle < ShuffleRNG
masked_select < CondTake
nonzero < NonZero
diag < Diag
flip < Flip
rot90 < Rotate
pad < Padding
inverse < MatrixInverse
svd < SVD
cross < Cross
im2col < Images2Neibs
"""


def spelled(op: str) -> Spelled:
    """`Pooling.MAX`; an operator whose mode is not in the table is known without it, and `QADD` of the quantized ones
    is ADD."""
    name, _, mode = op.partition(".")
    if name == "ElemwiseMultiType":
        return Spelled((op, f"Elemwise.{mode.removeprefix('Q')}"))
    return Spelled((op,) if name == "Elemwise" else (op, name))


@kind("matmul_transposable")
def matmul_transposable(call: Call) -> Cost:
    """`transposeA` says how the first matrix lies; the result says the rest."""
    a = call.shape("a")
    if len(a) < 2:
        raise NotKnown("the first matrix")
    return Cost(macs=size_of(call.out()) * a[-2 if call.attr("transposeA", False) else -1])


def _kernel(call: Call) -> int:
    """Products for one element: the weight is [out, in, kernel…], in groups [groups, out, in, kernel…]."""
    weight = shape_of(call.tensor("weight"))
    if call.attr("format", "NCHW") not in ("NCHW", "NCDHW") or len(weight) < 3:
        raise NotKnown("the layout of the weight")
    return prod(weight[2 if call.attr("sparse", "DENSE") == "GROUP" else 1 :])


def _there(found: Type | None) -> bool:
    return found is not None and found.elements not in (None, 0)


@kind("grouped_conv")
def grouped_conv(call: Call) -> Cost:
    made = size_of(call.out())
    more = _there(call.given("bias")) + _there(call.given("z"))
    more += call.attr("nonlineMode", "IDENTITY") == "RELU"
    return Cost(macs=made * _kernel(call), other=made * more)


@kind("grouped_conv_transpose")
def grouped_conv_transpose(call: Call) -> Cost:
    return Cost(macs=call.size("x") * _kernel(call))


@kind("windowed_pool")
def windowed_pool(call: Call) -> Cost:
    return Cost(other=size_of(call.out()) * int(call.attr("window_h")) * int(call.attr("window_w")))


@kind("squared_sum")
def squared_sum(call: Call) -> Cost:
    return Cost(other=2 * call.taken())


@kind("batch_norm_by_mode")
def batch_norm_by_mode(call: Call) -> Cost:
    return KINDS["batch_norm_training" if call.attr("fwd_mode") == "TRAINING" else "batch_norm_apply"](call)
