"""PaddlePaddle: operators as they are called (`conv2d`), of PIR (`pd_op.conv2d`, `pd_op.conv2d_grad`), and the nodes of
its backward graph (`Conv2dGradNodeFinal`, which is looked for as `conv2d_grad`).

A gradient node is handed `grad[0]`; a gradient operator of PIR has the gradient behind what it keeps of the forward
pass. There, a gradient that is not wanted is an output without a type; a gradient node lists only those that it
computes, but not always with a shape.
"""

from __future__ import annotations

import re

from . import Framework, Spelled

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
matmul/by-result a:x b:y transpose_a:transpose_x < matmul bmm mv dot
linear/by-result x:input weight bias < linear
matmul_backward a:x|input b:y|weight grad:grad[0]|grad@2 < matmul_grad bmm_grad mv_grad
linear_backward/by-outputs x:input weight grad:grad[0]|grad@2 < linear_grad
conv x:input weight:filter < conv2d conv3d depthwise_conv2d
conv_transpose x:x weight:filter < conv2d_transpose conv3d_transpose depthwise_conv2d_transpose
conv_backward/by-outputs x:input weight:filter grad:grad[0]|grad@2 < conv2d_grad conv3d_grad depthwise_conv2d_grad
conv_backward/transposed-by-outputs x weight:filter grad:grad[0]|grad@2 < conv2d_transpose_grad conv3d_transpose_grad
    depthwise_conv2d_transpose_grad
matmul bias:input a:x b:y < addmm baddbmm
bilinear x1:x x2:y weight bias < bilinear
fused_rnn x params:weight_list mode@10 < rnn
fused_rnn_backward/by-outputs grad:grad[0]|grad < rnn_grad
matmul_double_backward < matmul_double_grad
conv_double_backward < conv2d_double_grad depthwise_conv2d_double_grad
# -- normalization -------------------------------------------------------------------------------------------
batch_norm/by-is-test x running_mean:mean running_var:variance weight:scale bias is_test < batch_norm
layer_norm x weight:scale bias < layer_norm
group_norm x weight:scale bias < group_norm
instance_norm x weight:scale bias < instance_norm
batch_norm_backward/by-outputs x < batch_norm_grad
layer_norm_backward/by-outputs x < layer_norm_grad
group_norm_backward/by-outputs x:x|grad[0] < group_norm_grad
instance_norm_backward/by-outputs x:x|grad[0] < instance_norm_grad
# -- pooling -------------------------------------------------------------------------------------------------
pool x kernel_size < pool2d pool3d
max_pool x kernel_size < max_pool2d_with_index max_pool3d_with_index
pool_backward x out grad:grad[0]|grad@2 kernel_size@3 < pool2d_grad pool3d_grad
max_pool_backward grad:grad[0]|grad@2 < max_pool2d_with_index_grad max_pool3d_with_index_grad maxout_grad
upsample_nearest < nearest_interp
upsample_linear < linear_interp
upsample_bilinear < bilinear_interp
upsample_trilinear < trilinear_interp
upsample_bicubic < bicubic_interp
upsample_nearest_backward grad:grad[0]|grad@2 < nearest_interp_grad
upsample_linear_backward grad:grad[0]|grad@2 < linear_interp_grad
upsample_bilinear_backward grad:grad[0]|grad@2 < bilinear_interp_grad
upsample_trilinear_backward grad:grad[0]|grad@2 < trilinear_interp_grad
upsample_bicubic_backward grad:grad[0]|grad@2 < bicubic_interp_grad
# -- element by element --------------------------------------------------------------------------------------
sub < subtract
mul < multiply
div < divide
pow < elementwise_pow
neg < negative
eq < equal
ne < not_equal
lt < less_than
le < less_equal
gt < greater_than
ge < greater_equal
scale x scale bias < scale
clamp < clip
silu < swish
cast < cast
threshold < thresholded_relu
tanhshrink < tanh_shrink
log_sigmoid < logsigmoid
threshold_backward < relu_grad relu_double_grad thresholded_relu_grad
prelu_backward < prelu_grad
rrelu_backward < rrelu_grad
tanhshrink_backward < tanh_shrink_grad
softsign_backward < softsign_grad
erf_backward < erf_grad
tan_backward < tan_grad
sinh_backward < sinh_grad
cosh_backward < cosh_grad
asin_backward < asin_grad
acos_backward < acos_grad
atan_backward < atan_grad
asinh_backward < asinh_grad
acosh_backward < acosh_grad
atanh_backward < atanh_grad
expm1_backward < expm1_grad
log1p_backward < log1p_grad
log2_backward < log2_grad
log10_backward < log10_grad
fill < sign_grad ceil_grad floor_grad round_grad trunc_grad
hardtanh_backward < relu6_grad clip_grad hardtanh_grad
pow_backward < pow_grad
reciprocal_backward < reciprocal_grad
rsqrt_backward < rsqrt_grad
elu_backward < elu_grad celu_grad selu_grad
mish_backward < mish_grad
softplus_backward < softplus_grad
softshrink_backward < softshrink_grad
hardshrink_backward < hardshrink_grad
log_sigmoid_backward < logsigmoid_grad
logit_backward < logit_grad
sigmoid_backward < sigmoid_grad
tanh_backward < tanh_grad
leaky_relu_backward < leaky_relu_grad
gelu_backward < gelu_grad
silu_backward < silu_grad swish_grad
hardswish_backward < hardswish_grad
hardsigmoid_backward < hardsigmoid_grad
exp_backward < exp_grad
log_backward < log_grad
square_backward < square_grad
sqrt_backward < sqrt_grad
sin_backward < sin_grad
cos_backward < cos_grad
abs_backward < abs_grad
scale_backward < scale_grad
mean_backward < mean_grad mean_all_grad
cast < cast_grad
add_backward grad:grad[0]|grad@2 < add_grad add_double_grad
sub_backward grad:grad[0]|grad@2 < subtract_grad
mul_backward grad:grad[0]|grad@2 < multiply_grad
div_backward grad:grad[0]|grad@2 < divide_grad
maximum_backward grad:grad[0]|grad@2 < maximum_grad
minimum_backward grad:grad[0]|grad@2 < minimum_grad
sum_double_backward < sum_double_grad
mean_double_backward < mean_double_grad
abs_double_backward < abs_double_grad
leaky_relu_double_backward < leaky_relu_double_grad
sub_double_backward < subtract_double_grad
exp_double_backward < exp_double_grad
square_double_backward < square_double_grad
sin_double_backward < sin_double_grad
cos_double_backward < cos_double_grad
mul_double_backward < multiply_double_grad
log_double_backward < log_double_grad
tanh_double_backward < tanh_double_grad
sigmoid_double_backward < sigmoid_double_grad
sqrt_double_backward < sqrt_double_grad
elu_double_backward < elu_double_grad
softplus_double_backward < softplus_double_grad
pow_double_backward < pow_double_grad
rsqrt_double_backward < rsqrt_double_grad
celu_double_backward < celu_double_grad
div_double_backward < divide_double_grad
silu_double_backward < silu_double_grad
# -- softmax, losses, dropout --------------------------------------------------------------------------------
softmax_backward < softmax_grad
log_softmax_backward < log_softmax_grad
cross_entropy self:input target:label < cross_entropy_with_softmax
softmax_backward < cross_entropy_with_softmax_grad
dropout/by-is-test x is_test < dropout
dropout_backward < dropout_grad
# -- reductions ----------------------------------------------------------------------------------------------
mean < mean_all
amax < max maxout
amin < min
sum < add_n reduce_as
vector_norm < p_norm frobenius_norm
vector_norm_backward < p_norm_grad frobenius_norm_grad
amax_backward < amax_grad max_grad
amin_backward < amin_grad min_grad
logsumexp_backward < logsumexp_grad
cumsum_backward < cumsum_grad
# -- indices -------------------------------------------------------------------------------------------------
embedding indices:x weight < embedding
embedding_backward grad:grad[0]|grad@2 < embedding_grad
gather < gather gather_nd index_select take_along_axis getitem index_sample
embedding_backward grad:grad[0]|grad@2 < gather_grad gather_nd_grad index_select_grad take_along_axis_grad
    index_sample_grad
# -- new tensors ---------------------------------------------------------------------------------------------
fill < full full_ full_like full_int_array full_with_tensor arange eye assign_value assign_value_ linspace tril_indices
random < gaussian gaussian_ gaussian_inplace uniform uniform_inplace randint randperm bernoulli
    truncated_gaussian_random
empty < empty empty_like
# -- copies --------------------------------------------------------------------------------------------------
copy < assign assign_out_ share_data share_data_ memcpy memcpy_h2d memcpy_d2h copy_to assign_grad set_value setitem
    set_value_with_tensor set_value_grad
cat < concat
stack < stack
repeat < tile
im2col < unfold
col2im < unfold_grad fold
copy < flip_grad roll_grad tril_grad triu_grad diag_grad diagonal_grad where_grad pixel_shuffle_grad
    channel_shuffle_grad pixel_unshuffle pixel_unshuffle_grad fold_grad meshgrid_grad
slice/copied < pad_grad pad3d_grad
slice_backward < strided_slice_grad slice_grad getitem_grad concat_grad split_grad split_with_num_grad
    stack_grad unbind_grad
expand/copied < sum_grad expand_grad
pad < pad pad3d
# -- views, and what computes nothing ------------------------------------------------------------------------
view < reshape flatten squeeze unsqueeze view_shape view_dtype as_strided
    reshape_grad flatten_grad squeeze_grad unsqueeze_grad
permute < transpose transpose_grad
split < split split_with_num unbind
slice < slice strided_slice
expand < expand
questions < shape shape64 shape_sr numel builtin.combine builtin.split builtin.slice
    cf.stack_create cf.tuple_push cf.tuple_pop data
alias < GradNodeAccumulation
detach < detach
# -- optimizers ----------------------------------------------------------------------------------------------
adam param < adam_ adamw_ adam adamw
sgd param < sgd_ sgd
sgd/with-momentum param < momentum_ momentum
"""


def spelled(op: str) -> Spelled:
    """`pd_op.batch_norm_` is `batch_norm`; `Conv2dGradNodeFinal` is `conv2d_grad`."""
    node = re.fullmatch(r"(\w+?)GradNode(?:Final)?", op)
    if node is not None and not op.startswith("GradNode"):
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", node[1]).lower()
        return Spelled((f"{name}_grad",), only_computed=True)
    name = op.removeprefix("pd_op.")
    in_place = name.endswith("_") and not name.endswith("__")
    return Spelled((op, name, *((name[:-1],) if in_place else ())), in_place)


FRAMEWORK = Framework(TABLE, "PaddlePaddle", spelled)
