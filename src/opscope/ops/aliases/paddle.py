"""PaddlePaddle: operators as they are called (`conv2d`), of PIR (`pd_op.conv2d`, `pd_op.conv2d_grad`), and the nodes of
its backward graph (`Conv2dGradNodeFinal`, which is looked for as `conv2d_grad`).

A gradient node is handed `grad[0]`; a gradient operator of PIR has the gradient behind what it keeps of the forward
pass. There, a gradient that nobody wants is an output without a type; a gradient node lists only those that it
computes, but not always with a shape.
"""

from __future__ import annotations

import re

from . import Framework, Spelled

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
matmul/by-result a:x b:y transpose_a:transpose_x < matmul bmm mv dot
linear/by-result x:input weight bias < linear
matmul_backward a:x b:y grad:grad[0]|grad@2 < matmul_grad bmm_grad mv_grad
linear_backward/by-outputs x:input weight grad:grad[0]|grad@2 < linear_grad
conv x:input weight:filter < conv2d conv3d depthwise_conv2d
conv_transpose x:x weight:filter < conv2d_transpose conv3d_transpose depthwise_conv2d_transpose
conv_backward/by-outputs x:input weight:filter grad:grad[0]|grad@2 < conv2d_grad conv3d_grad depthwise_conv2d_grad
# -- normalization -------------------------------------------------------------------------------------------
batch_norm/by-is-test x running_mean:mean running_var:variance weight:scale bias is_test < batch_norm
layer_norm x weight:scale bias < layer_norm
group_norm x weight:scale bias < group_norm
instance_norm x weight:scale bias < instance_norm
batch_norm_backward/by-outputs x < batch_norm_grad
layer_norm_backward/by-outputs x < layer_norm_grad
group_norm_backward/by-outputs x < group_norm_grad
instance_norm_backward/by-outputs x < instance_norm_grad
# -- pooling -------------------------------------------------------------------------------------------------
pool x kernel_size < pool2d pool3d
max_pool x kernel_size < max_pool2d_with_index max_pool3d_with_index
pool_backward x out grad:grad[0]|grad@2 kernel_size@3 < pool2d_grad pool3d_grad
max_pool_backward grad:grad[0]|grad@2 < max_pool2d_with_index_grad
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
threshold_backward < relu_grad
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
add_backward grad:grad[0]|grad@2 < add_grad
sub_backward grad:grad[0]|grad@2 < subtract_grad
mul_backward grad:grad[0]|grad@2 < multiply_grad
div_backward grad:grad[0]|grad@2 < divide_grad
maximum_backward grad:grad[0]|grad@2 < maximum_grad
minimum_backward grad:grad[0]|grad@2 < minimum_grad
# -- softmax, losses, dropout --------------------------------------------------------------------------------
softmax_backward < softmax_grad
log_softmax_backward < log_softmax_grad
cross_entropy self:input target:label < cross_entropy_with_softmax
softmax_backward < cross_entropy_with_softmax_grad
dropout/by-is-test x is_test < dropout
dropout_backward < dropout_grad
# -- reductions ----------------------------------------------------------------------------------------------
mean < mean_all
amax < max
amin < min
sum < add_n reduce_as
vector_norm < p_norm frobenius_norm
# -- indices -------------------------------------------------------------------------------------------------
embedding indices:x weight < embedding
embedding_backward grad:grad[0]|grad@2 < embedding_grad
gather < gather gather_nd index_select take_along_axis getitem
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
slice_backward < slice_grad getitem_grad concat_grad split_grad split_with_num_grad stack_grad unbind_grad
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
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", node[1]).lower()
        return Spelled((f"{name}_grad",), only_computed=True)
    name = op.removeprefix("pd_op.")
    in_place = name.endswith("_") and not name.endswith("__")
    return Spelled((op, name, *((name[:-1],) if in_place else ())), in_place)


FRAMEWORK = Framework(TABLE, "PaddlePaddle", spelled)
