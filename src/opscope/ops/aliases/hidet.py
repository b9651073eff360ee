"""Hidet: operators are classes (`MatmulOp` is `Matmul`). Views are only `Reshape` and its like; others move data.

A fused operator is known by what is inside of it.
"""

from __future__ import annotations

import re

from . import Framework, Spelled

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
matmul/by-result a:0 b:1 < Matmul MatmulF16 MatmulF16Cute MatmulF16SM90 Matmulx86 BatchMatmul BatchMatmulHip
    CudaBatchMatmul CublasMatmul MatmulF8
conv x:0 weight:1 < Conv1d Conv2d Conv3d
conv_transpose x:0 weight:1 < Conv1dTranspose Conv2dTranspose Conv3dTranspose
# -- element by element --------------------------------------------------------------------------------------
add < Add AddScalar
sub < Subtract SubScalar RSubScalar
mul < Multiply MultiplyScalar
div < Divide DivideScalar RDivideScalar
remainder < Mod
pow < Pow
neg < Negative
reciprocal < Reciprocal
sqrt < Sqrt
rsqrt < Rsqrt
exp < Exp
expm1 < Expm1
log < Log
log2 < Log2
log10 < Log10
log1p < Log1p
erf < Erf
sin < Sin
cos < Cos
tan < Tan
sinh < Sinh
cosh < Cosh
tanh < Tanh
asin < Asin
acos < Acos
atan < Atan
atan2 < Atan2
asinh < Asinh
acosh < Acosh
atanh < Atanh
square < Square
abs < Abs
floor < Floor
ceil < Ceil
round < Round
trunc < Trunc
sign < Sign
isfinite < IsFinite
isinf < IsInf
isnan < IsNan
clamp < Clamp Clip
maximum < Max
minimum < Min
eq < Equal
ne < NotEqual
lt < Less
le < LessEqual
gt < Greater
ge < GreaterEqual
logical_not < LogicalNot
logical_and < LogicalAnd
logical_or < LogicalOr
logical_xor < LogicalXor
bitwise_not < BitwiseNot
bitwise_and < BitwiseAnd
bitwise_or < BitwiseOr
bitwise_xor < BitwiseXor
bitwise_left_shift < LeftShift
bitwise_right_shift < RightShift
relu < Relu
relu6 < Relu6
leaky_relu < LeakyRelu
sigmoid < Sigmoid
hardsigmoid < HardSigmoid
hardswish < HardSwish
hardtanh < HardTanh
hardshrink < HardShrink
gelu < Gelu
silu < Silu
elu < Elu
selu < Selu
celu < Celu
log_sigmoid < LogSigmoid
tanhshrink < TanhShrink
softsign < SoftSign
softplus < SoftPlus
softshrink < SoftShrink
where < Where WhereScalarScalar WhereScalarTensor WhereTensorScalar
cast < Cast
softmax x:0 < Softmax
# -- normalization, pooling ----------------------------------------------------------------------------------
layer_norm x:0 < Normalize
max_pool x:0 kernel_size:kernel < MaxPool1d MaxPool2d MaxPool3d MaxPool1dChannelLast MaxPool2dChannelLast
    MaxPool3dChannelLast
avg_pool x:0 kernel_size:kernel < AvgPool1d AvgPool2d AvgPool3d AvgPool1dChannelLast AvgPool2dChannelLast
    AvgPool3dChannelLast
adaptive_pool x:0 < AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
    AdaptiveMaxPool3d AdaptiveAvgPool2dChannelLast
# -- reductions ----------------------------------------------------------------------------------------------
sum < ReduceSum
mean < ReduceMean
amax < ReduceMax
amin < ReduceMin
prod < ReduceProd
any < ReduceOr
all < ReduceAnd
argmax < ArgMax
argmin < ArgMin
cumsum < CumulativeSum
# -- data ----------------------------------------------------------------------------------------------------
view < Reshape View Squeeze Unsqueeze Flatten Barrier
reindex < Rearrange
permute/copied < PermuteDims TransposeOp2D
slice/copied < StridedSlice
expand/copied < Broadcast
as_strided/copied < AsStrided
repeat < Tile
im2col < Im2Col Conv1dGemmImageTransform Conv2dGemmImageTransform Conv3dGemmImageTransform
cat < Concat
gather < Take Gather IdxSel
pad < Pad
flip < Flip
roll < Roll
tril < Tril
triu < Triu
copy < Transfer
fill < Full Arange LinSpace Tri
repeat_interleave < RepeatInterleave
all_reduce < AllReduce
all_gather < AllGather
reduce_scatter < ReduceScatter
"""


def spelled(op: str) -> Spelled:
    """`MatmulOp` is `Matmul`."""
    return Spelled((op, re.sub(r"(Op|Operator)$", "", op)))


FRAMEWORK = Framework(TABLE, "Hidet", spelled, composes=True)
