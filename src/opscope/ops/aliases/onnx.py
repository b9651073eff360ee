"""ONNX: the standard's operators, and those that ONNX Runtime fuses (`com.microsoft.FusedMatMul`).

An operator of another domain that is called like one of the standard's is that, unless it has a line of its own.
"""

from __future__ import annotations

from . import Framework, Spelled

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
matmul a:A b:B < MatMul MatMulInteger
matmul a:a b:b < QLinearMatMul
matmul/with-flags a:A b:B bias:C transpose_a:transA < Gemm FusedGemm
matmul/with-flags a:A b:B transpose_a:transA < FusedMatMul TransposeMatMul FusedMatMulActivation
matmul/by-result a:A b:B bias < MatMulNBits MatMulBnb4 MatMulFpQ4 MatMulIntegerToFloat DynamicQuantizeMatMul
    MatMulInteger16 MatMulBlockQuantizedFp8Weight MatMulBlockQuantizedFp4Weight QOrderedMatMul SparseToDenseMatMul
matmul/with-flags a:A b:B bias:C transpose_a:transA < QGemm GemmFloat8
matmul/by-result a:X b:W bias < GemmFastGelu
einsum equation tensors:Inputs < Einsum
cdist x1:A x2:B < CDist
conv x:X weight:W bias:B < Conv NhwcConv
conv/fused x:X weight:W bias:B z:Z|Sum < FusedConv NhwcFusedConv
conv x:x weight:w bias:B < QLinearConv
conv x:x weight:w < ConvInteger
conv x:X weight:W bias:B < DeformConv
conv_transpose x:X weight:W bias:B < ConvTranspose ConvTransposeWithDynamicPads
conv_transpose x:x weight:w bias:B < QLinearConvTranspose
conv x:input weight bias < CausalConvWithState
lstm/stacked x:X weight:W hidden:R bias:B < LSTM
gru/stacked x:X weight:W hidden:R bias:B < GRU
rnn/stacked x:X weight:W hidden:R bias:B < RNN
# -- attention -----------------------------------------------------------------------------------------------
attention/by-heads q:Q k:K v:V mask:attn_mask past:past_key q_heads:q_num_heads kv_heads:kv_num_heads causal:is_causal <
    Attention FlexAttention
attention/projecting x:input in_weight:weights mask:mask_index|attention_bias past q_heads:num_heads
    causal:unidirectional < com.microsoft.Attention
attention/projecting x:input in_weight:weight mask:mask_index past q_heads:num_heads causal:unidirectional <
    com.microsoft.QAttention
attention/by-heads q:query k:key v:value mask:key_padding_mask|attention_bias past:past_key q_heads:num_heads
    causal:unidirectional < com.microsoft.MultiHeadAttention
attention/by-heads q:query k:key v:value past:past_key q_heads:num_heads kv_heads:kv_num_heads <
    com.microsoft.GroupQueryAttention
rotary_embedding x:X|input < RotaryEmbedding
# -- normalization -------------------------------------------------------------------------------------------
batch_norm/by-training-mode x:X weight:scale bias:B training_mode < BatchNormalization
layer_norm x:X weight:Scale bias:B < LayerNormalization
layer_norm/skip x:input weight:gamma bias:beta added:bias < SkipLayerNormalization
layer_norm/of-embeddings weight:gamma bias:beta position_embedding segment_embedding < EmbedLayerNormalization
group_norm x:X weight:scale bias < GroupNormalization
group_norm x:X weight:gamma bias:beta < GroupNorm
layer_norm/skip x:X weight:gamma bias:beta added:bias < SkipGroupNorm
instance_norm x:input weight:scale bias:B < InstanceNormalization
rms_norm x:X weight:scale < RMSNormalization SimplifiedLayerNormalization
rms_norm/skip x:input weight:gamma added:bias < SkipSimplifiedLayerNormalization
layer_norm x:X < MeanVarianceNormalization
local_response_norm size < LRN
vector_norm < LpNormalization GlobalLpPool
# -- pooling and resampling ----------------------------------------------------------------------------------
max_pool x:X kernel_size:kernel_shape < MaxPool NhwcMaxPool MaxpoolWithMask
avg_pool x:X kernel_size:kernel_shape < AveragePool LpPool QLinearAveragePool
adaptive_pool x:X < GlobalAveragePool GlobalMaxPool QLinearGlobalAveragePool
max_unpool < MaxUnpool
interpolate/by-sizes x:X mode < Resize Upsample
grid_sample x:X grid:grid|Grid mode < GridSample
affine_grid < AffineGrid
im2col < UnfoldTensor
col2im < Col2Im
# -- element by element --------------------------------------------------------------------------------------
add < Add QLinearAdd BiasAdd
sub < Sub
mul < Mul QLinearMul
div < Div
remainder < Mod
pow < Pow
add/all < Sum
mean/all < Mean
maximum/all < Max
minimum/all < Min
neg < Neg
abs < Abs
sqrt < Sqrt
sign < Sign
exp < Exp
log < Log
floor < Floor
ceil < Ceil
round < Round
reciprocal < Reciprocal
erf < Erf
sin < Sin
cos < Cos
tan < Tan
asin < Asin
acos < Acos
atan < Atan
sinh < Sinh
cosh < Cosh
tanh < Tanh
asinh < Asinh
acosh < Acosh
atanh < Atanh
isnan < IsNaN
isinf < IsInf
eq < Equal
lt < Less
le < LessOrEqual
gt < Greater
ge < GreaterOrEqual
logical_not < Not
logical_and < And
logical_or < Or
logical_xor < Xor
bitwise_not < BitwiseNot
bitwise_and < BitwiseAnd
bitwise_or < BitwiseOr
bitwise_xor < BitwiseXor
bitwise_left_shift < BitShift
clamp < Clip
relu < Relu
leaky_relu < LeakyRelu QLinearLeakyRelu
prelu < PRelu
elu < Elu
celu < Celu
selu < Selu
threshold < ThresholdedRelu
hardshrink < Shrink
sigmoid < Sigmoid QLinearSigmoid
hardsigmoid < HardSigmoid
hardswish < HardSwish
mish < Mish
silu < Swish
silu/quick < QuickGelu
swiglu < SwiGLU
gelu approximate < Gelu
gelu/of-sum bias:B < BiasGelu
gelu/tanh-of-sum bias < FastGelu
softplus < Softplus
softsign < Softsign
softmax < Softmax QLinearSoftmax BiasSoftmax
log_softmax < LogSoftmax
argmax < Hardmax
where < Where QLinearWhere
cast < Cast CastLike
quantize < QuantizeLinear
quantize/dynamic < DynamicQuantizeLinear
dequantize < DequantizeLinear
dropout/by-input training:training_mode < Dropout
# -- reductions and losses -----------------------------------------------------------------------------------
sum < ReduceSum ReduceSumInteger
mean < ReduceMean QLinearReduceMean
amax < ReduceMax
amin < ReduceMin
prod < ReduceProd
vector_norm < ReduceL1 ReduceL2
squared_sum < ReduceSumSquare
logsumexp < ReduceLogSumExp
sum/then-log < ReduceLogSum
argmax < ArgMax
argmin < ArgMin
cumsum < CumSum
cumprod < CumProd
topk dim:axis < TopK
unique < Unique
det < Det
inverse < Inverse
cross_entropy x:scores target:labels < SoftmaxCrossEntropyLoss
nll_loss target < NegativeLogLikelihoodLoss
multinomial < Multinomial
# -- data ----------------------------------------------------------------------------------------------------
empty < Constant
fill < ConstantOfShape Range EyeLike HannWindow HammingWindow BlackmanWindow
random < RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli
size < Shape Size SequenceLength OptionalHasElement
view < Reshape Flatten Squeeze Unsqueeze ExpandDims BitCast
identity < Identity SequenceConstruct SequenceEmpty SequenceAt SequenceInsert SequenceErase SplitToSequence Optional
    OptionalGetElement
permute/copied < Transpose
slice/copied < Slice
split/copied < Split
expand/copied < Expand
cat < Concat ConcatFromSequence QLinearConcat
gather index:indices < Gather GatherElements GatherND GatherBlockQuantized
embedding weight:weight indices < TorchEmbedding
scatter/by-updates index:indices src:updates < Scatter ScatterElements ScatterND
scatter/by-updates index:write_indices src:update < TensorScatter
pad < Pad CenterCropPad
repeat < Tile
tril < Trilu
one_hot < OneHot
nonzero < NonZero
masked_select < Compress
reindex < DepthToSpace SpaceToDepth ReorderInput ReorderOutput
flip < ReverseSequence
"""


def spelled(op: str) -> Spelled:
    """`com.microsoft.FusedMatMul`, then `FusedMatMul`. Only where ONNX Runtime's own domains say so: another's `Conv`
    may be anything."""
    own = op.startswith(("com.microsoft.", "com.ms.internal."))
    return Spelled((op, op.rpartition(".")[2]) if own else (op,))


FRAMEWORK = Framework(TABLE, "ONNX", spelled)
