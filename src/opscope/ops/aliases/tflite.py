"""TensorFlow Lite: weights lie with the channels of the result first, of depthwise convolutions last."""

from __future__ import annotations

from . import Framework

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
conv/activated x:input weight:filter bias activation:fused_activation_function < CONV_2D
conv/out-last x:input weight:filter bias activation:fused_activation_function < DEPTHWISE_CONV_2D CONV_3D
conv_transpose/out-first x:input weight:weights bias < TRANSPOSE_CONV CONV_3D_TRANSPOSE
linear/activated x:input weight:weights bias activation:fused_activation_function < FULLY_CONNECTED
matmul/by-result a:lhs b:rhs transpose_a:adj_x < BATCH_MATMUL
# -- element by element --------------------------------------------------------------------------------------
add < ADD STABLEHLO_ADD
add/all < ADD_N
sub < SUB STABLEHLO_SUBTRACT
sub/squared < SQUARED_DIFFERENCE
mul < MUL STABLEHLO_MULTIPLY
div < DIV STABLEHLO_DIVIDE
floor_divide < FLOOR_DIV
remainder < FLOOR_MOD STABLEHLO_REMAINDER
pow < POW STABLEHLO_POWER
maximum < MAXIMUM STABLEHLO_MAXIMUM
minimum < MINIMUM STABLEHLO_MINIMUM
neg < NEG STABLEHLO_NEGATE
abs < ABS STABLEHLO_ABS
exp < EXP STABLEHLO_EXPONENTIAL
log < LOG STABLEHLO_LOG
sqrt < SQRT
rsqrt < RSQRT STABLEHLO_RSQRT
square < SQUARE
sin < SIN
cos < COS STABLEHLO_COSINE
floor < FLOOR STABLEHLO_FLOOR
ceil < CEIL
round < ROUND
sign < SIGN
atan2 < ATAN2
tanh < TANH STABLEHLO_TANH
sigmoid < LOGISTIC STABLEHLO_LOGISTIC
relu < RELU
relu6 < RELU6
clamp < RELU_N1_TO_1 RELU_0_TO_1 STABLEHLO_CLAMP
leaky_relu < LEAKY_RELU
prelu < PRELU
elu < ELU
gelu < GELU
hardswish < HARD_SWISH
eq < EQUAL
ne < NOT_EQUAL
lt < LESS
le < LESS_EQUAL
gt < GREATER
ge < GREATER_EQUAL
logical_and < LOGICAL_AND
logical_or < LOGICAL_OR
logical_not < LOGICAL_NOT
bitwise_xor < BITWISE_XOR
bitwise_right_shift < RIGHT_SHIFT
where < SELECT SELECT_V2 STABLEHLO_SELECT
cast < CAST STABLEHLO_CONVERT
quantize < QUANTIZE
dequantize < DEQUANTIZE
fake_quantize < FAKE_QUANT
softmax < SOFTMAX
log_softmax < LOG_SOFTMAX
# -- normalization, pooling ----------------------------------------------------------------------------------
local_response_norm < LOCAL_RESPONSE_NORMALIZATION
vector_norm < L2_NORMALIZATION
max_pool/by-sides height:filter_height width:filter_width < MAX_POOL_2D
avg_pool/by-sides height:filter_height width:filter_width < AVERAGE_POOL_2D L2_POOL_2D
upsample_bilinear < RESIZE_BILINEAR
upsample_nearest < RESIZE_NEAREST_NEIGHBOR
# -- reductions ----------------------------------------------------------------------------------------------
sum < SUM
mean < MEAN
prod < REDUCE_PROD
amax < REDUCE_MAX
amin < REDUCE_MIN
any < REDUCE_ANY
all < REDUCE_ALL
argmax < ARG_MAX
argmin < ARG_MIN
cumsum < CUMSUM
topk < TOPK_V2
unique < UNIQUE
# -- data ----------------------------------------------------------------------------------------------------
view < RESHAPE SQUEEZE EXPAND_DIMS BITCAST STABLEHLO_RESHAPE
size < SHAPE RANK
permute/copied < TRANSPOSE STABLEHLO_TRANSPOSE
slice/copied < SLICE STRIDED_SLICE STABLEHLO_SLICE STABLEHLO_DYNAMIC_SLICE
split/copied < SPLIT SPLIT_V UNPACK
cat < CONCATENATION STABLEHLO_CONCATENATE
stack < PACK
expand/copied < BROADCAST_TO STABLEHLO_BROADCAST_IN_DIM
repeat < TILE
pad < PAD PADV2 MIRROR_PAD STABLEHLO_PAD DILATE
gather index:indices < GATHER GATHER_ND
embedding weight:values indices:lookup < EMBEDDING_LOOKUP
one_hot < ONE_HOT
nonzero < WHERE
reindex < DEPTH_TO_SPACE SPACE_TO_DEPTH BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND
flip < REVERSE_V2 REVERSE_SEQUENCE
fill < FILL ZEROS_LIKE RANGE SPARSE_TO_DENSE STABLEHLO_IOTA
diag < MATRIX_DIAG
copy < DYNAMIC_UPDATE_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE DENSIFY MATRIX_SET_DIAG
random < RANDOM_UNIFORM RANDOM_STANDARD_NORMAL
multinomial < MULTINOMIAL
identity < VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS
"""

FRAMEWORK = Framework(TABLE, "TensorFlow Lite")
