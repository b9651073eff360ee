"""MegEngine: operators of files and of live captures by the same names; what `Elemwise`, `Reduce` and `Pooling` compute
is in their mode (`Elemwise.RELU`). Reshapes, slices and broadcasts share memory.
"""

from __future__ import annotations

from . import Framework, Spelled

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
matmul/by-result a:0 b:1 transpose_a:transposeA < MatrixMul BatchedMatmul Dot
conv/grouped-weight x:0 weight:1 bias:2 z:3 layout:format sparse activation:nonlineMode < Convolution Convolution3D
    ConvBias ConvolutionForward Conv3DBias
conv_transpose/grouped-weight weight:0 x:1 layout:format sparse < ConvTranspose Convolution3DBackwardData
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
batch_norm/by-mode x:0 weight:1 bias:2 mode:fwd_mode < BatchNorm
layer_norm x:0 weight:1 bias:2 < LayerNormForward GeneralNorm
group_norm x:0 weight:1 bias:2 < GroupNormForward
instance_norm x:0 weight:1 bias:2 < InstanceNormForward
softmax x:0 < SoftmaxForward
max_pool/by-sides height:window_h width:window_w < Pooling.MAX
avg_pool/by-sides height:window_h width:window_w < Pooling.AVERAGE Pooling.AVERAGE_COUNT_EXCLUDE_PADDING
pool/by-sides height:window_h width:window_w < Pooling
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


FRAMEWORK = Framework(TABLE, "MegEngine", spelled)
