"""TensorFlow: weights lie with the channels of the result last."""

from __future__ import annotations

from . import Framework

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
conv/out-last x:input weight:filter < Conv2D Conv3D _FusedConv2D
conv/depthwise-last x:input weight:filter < DepthwiseConv2dNative
conv_transpose/out-first x:out_backprop weight:filter < Conv2DBackpropInput
matmul/by-result a b transpose_a:transpose_a|adj_x < MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 _FusedMatMul
einsum equation < Einsum
# -- element by element --------------------------------------------------------------------------------------
add < Add AddV2 BiasAdd
add/all < AddN
sub < Sub
sub/squared < SquaredDifference
mul < Mul
div < RealDiv Div DivNoNan
floor_divide < FloorDiv
remainder < FloorMod Mod
pow < Pow
maximum < Maximum
minimum < Minimum
neg < Neg
abs < Abs
reciprocal < Reciprocal
exp < Exp
expm1 < Expm1
log < Log
log1p < Log1p
sqrt < Sqrt
rsqrt < Rsqrt
square < Square
sin < Sin
cos < Cos
tanh < Tanh
sigmoid < Sigmoid
erf < Erf
floor < Floor
ceil < Ceil
round < Round
sign < Sign
atan2 < Atan2
relu < Relu
relu6 < Relu6
leaky_relu < LeakyRelu
elu < Elu
selu < Selu
softplus < Softplus
softsign < Softsign
clamp < ClipByValue
eq < Equal
ne < NotEqual
lt < Less
le < LessEqual
gt < Greater
ge < GreaterEqual
logical_and < LogicalAnd
logical_or < LogicalOr
logical_not < LogicalNot
isnan < IsNan
where < Select SelectV2
cast < Cast
softmax < Softmax
log_softmax < LogSoftmax
fake_quantize < FakeQuantWithMinMaxVars FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVarsPerChannel
quantize < QuantizeV2
dequantize < Dequantize
# -- normalization, pooling ----------------------------------------------------------------------------------
batch_norm/by-training-flag x weight:scale bias:offset training:is_training < FusedBatchNorm FusedBatchNormV2
    FusedBatchNormV3
local_response_norm < LRN
max_pool/whole-window kernel_size:ksize < MaxPool
avg_pool/whole-window kernel_size:ksize < AvgPool
upsample_bilinear < ResizeBilinear
upsample_nearest < ResizeNearestNeighbor
# -- reductions ----------------------------------------------------------------------------------------------
sum < Sum
mean < Mean
prod < Prod
amax < Max
amin < Min
any < Any
all < All
argmax < ArgMax
argmin < ArgMin
cumsum < Cumsum
topk < TopKV2
unique < Unique
# -- data ----------------------------------------------------------------------------------------------------
identity < Identity IdentityN StopGradient NoOp ReadVariableOp Assert PreventGradient CheckNumerics Enter Exit
    NextIteration LoopCond Merge Switch AssignVariableOp VarIsInitializedOp
view < Reshape Squeeze ExpandDims Bitcast
size < Shape Size Rank
permute/copied < Transpose
slice/copied < Slice StridedSlice
split/copied < Split SplitV Unpack
cat < ConcatV2 Concat
stack < Pack
expand/copied < BroadcastTo
repeat < Tile
pad < Pad PadV2 MirrorPad
gather index:indices < GatherV2 Gather GatherNd ResourceGather
one_hot < OneHot
nonzero < Where
reindex < DepthToSpace SpaceToDepth BatchToSpaceND SpaceToBatchND
flip < ReverseV2
fill < Fill ZerosLike OnesLike Range
random < RandomUniform RandomStandardNormal TruncatedNormal
"""

FRAMEWORK = Framework(TABLE, "TensorFlow")
