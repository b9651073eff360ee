"""PaddlePaddle: operators as they are called (`conv2d`), of PIR (`pd_op.conv2d`, `pd_op.conv2d_grad`), and the nodes of
its backward graph (`Conv2dGradNodeFinal`, which is looked for as `conv2d_grad`).

A gradient node is handed `grad[0]`; a gradient operator of PIR has the gradient behind what it keeps of the forward
pass. A gradient that nobody wants is an output without a type.
"""

from __future__ import annotations

import re
from math import prod

from opscope.ops.call import Call, NotKnown, size_of
from opscope.ops.cost import Cost
from opscope.ops.kinds import KINDS, kind

from . import Spelled

TABLE = """
# -- products ------------------------------------------------------------------------------------------------
paddle_matmul x y transpose_x transpose_y < matmul bmm mv dot
paddle_linear x:input weight bias < linear
paddle_matmul_gradient x:x|input y:y|weight grad:grad[0]|grad@2 < matmul_grad bmm_grad mv_grad linear_grad
conv x:input weight:filter < conv2d conv3d depthwise_conv2d
conv_transpose x:x weight:filter < conv2d_transpose conv3d_transpose depthwise_conv2d_transpose
paddle_conv_gradient x:input weight:filter grad:grad[0]|grad@2 < conv2d_grad conv3d_grad depthwise_conv2d_grad
# -- normalization -------------------------------------------------------------------------------------------
paddle_batch_norm x running_mean:mean running_var:variance weight:scale bias is_test < batch_norm
layer_norm x weight:scale bias < layer_norm
group_norm x weight:scale bias < group_norm
layer_norm x weight:scale bias < instance_norm
paddle_norm_gradient x < batch_norm_grad layer_norm_grad group_norm_grad instance_norm_grad
# -- pooling -------------------------------------------------------------------------------------------------
paddle_pool x kernel_size < pool2d pool3d
max_pool x kernel_size < max_pool2d_with_index max_pool3d_with_index
paddle_pool_gradient x out grad:grad[0]|grad@2 kernel_size@3 < pool2d_grad pool3d_grad
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
paddle_scale x scale bias < scale
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
mul < exp_grad square_grad sqrt_grad log_grad sin_grad cos_grad abs_grad scale_grad
mul < mean_grad mean_all_grad
cast < cast_grad
paddle_sum_gradient grad:grad[0]|grad@2 < add_grad subtract_grad
paddle_product_gradient grad:grad[0]|grad@2 < multiply_grad divide_grad maximum_grad minimum_grad
# -- softmax, losses, dropout --------------------------------------------------------------------------------
softmax_backward < softmax_grad
log_softmax_backward < log_softmax_grad
cross_entropy self:input target:label < cross_entropy_with_softmax
softmax_backward < cross_entropy_with_softmax_grad
paddle_dropout x is_test < dropout
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
broadcast_copy < sum_grad expand_grad
pad < pad pad3d
# -- views, and what computes nothing ------------------------------------------------------------------------
view < reshape flatten squeeze unsqueeze view_shape view_dtype as_strided
    reshape_grad flatten_grad squeeze_grad unsqueeze_grad
transpose < transpose transpose_grad
split < split split_with_num unbind
slice < slice strided_slice
expand < expand
questions < shape shape64 shape_sr numel builtin.combine builtin.split builtin.slice
    cf.stack_create cf.tuple_push cf.tuple_pop data
alias < GradNodeAccumulation
detach < detach
# -- optimizers ----------------------------------------------------------------------------------------------
paddle_adam param < adam_ adamw_ adam adamw
paddle_sgd param < sgd_ sgd
paddle_momentum param < momentum_ momentum
"""


def _wanted(call: Call, count: int = 2) -> list[int]:
    """The sizes of the gradients that are computed."""
    made = call.outputs[:count]
    if _is_eager(call) and any(one.shape is None for one in made):
        raise NotKnown("the size of a gradient")
    return [size_of(one) for one in made if one.shape is not None]


def _computed(call: Call, count: int = 2) -> int:
    """How many gradients are computed. In a static graph, one that nobody asked for has no type; the nodes of eager
    autograd list only those that they compute, but not always with a shape."""
    made = call.outputs[:count]
    return len(made) if _is_eager(call) else sum(one.shape is not None for one in made)


def _is_eager(call: Call) -> bool:
    return "ptr" in call.attrs  # where the node lies in memory


@kind("paddle_matmul")
def matmul(call: Call) -> Cost:
    x = call.shape("x")
    if not x:
        raise NotKnown("the shape of a matrix")
    inner = x[len(x) - 2] if call.attr("transpose_x", False) and len(x) > 1 else x[len(x) - 1]
    return Cost(macs=size_of(call.out()) * inner)


@kind("paddle_linear")
def linear(call: Call) -> Cost:
    """x @ weight + bias: the weight lies as [in, out]."""
    results = size_of(call.out())
    return Cost(macs=results * call.shape("x")[-1], other=results if call.given("bias") is not None else 0)


@kind("paddle_matmul_gradient")
def matmul_gradient(call: Call) -> Cost:
    """Each gradient has as many products as the forward pass: for every result, one along the side summed over."""
    grad = call.shape("grad")
    if not grad:
        raise NotKnown("the shape of a matrix")
    rows, width = prod(grad[:-1]), grad[-1]
    if call.size("x") % max(rows, 1) == 0:
        inner = call.size("x") // max(rows, 1)
    else:  # the first matrix serves a whole batch
        inner = call.size("y") // max(prod(grad[:-2]) * width, 1)
    if not inner:
        raise NotKnown("the side that is summed over")
    return Cost(macs=prod(grad) * inner * _computed(call))


@kind("paddle_conv_gradient")
def conv_gradient(call: Call) -> Cost:
    weight = call.shape("weight")
    return Cost(macs=call.size("grad") * prod(weight[1:]) * _computed(call))


@kind("paddle_batch_norm")
def batch_norm(call: Call) -> Cost:
    return KINDS["batch_norm_apply" if call.attr("is_test", False) else "batch_norm_training"](call)


@kind("paddle_norm_gradient")
def norm_gradient(call: Call) -> Cost:
    """See normalization.py: 10 for the input's gradient, 2 for the scale's, 1 for the shift's."""
    known = [made.shape is not None for made in call.outputs[:3]]
    each = sum(part for part, is_known in zip((10, 2, 1), known, strict=False) if is_known)
    return Cost(other=call.size("x") * each)


@kind("paddle_pool")
def pool(call: Call) -> Cost:
    if call.attr("global_pooling", False) or call.attr("adaptive", False):
        return KINDS["adaptive_pool"](call)
    return KINDS["max_pool"](call)


@kind("paddle_pool_gradient")
def pool_gradient(call: Call) -> Cost:
    """For a gradient node the kind of pooling is not known; the gradients of a maximum go to one place each."""
    if call.attr("pooling_type", "max") == "max":
        return Cost(other=call.size("grad"))
    if call.attr("adaptive", False) or call.attr("global_pooling", False):
        return KINDS["adaptive_avg_pool_backward"](call)
    return KINDS["avg_pool_backward"](call)


@kind("paddle_scale")
def scale(call: Call) -> Cost:
    return Cost(other=call.made() * (1 if call.attr("bias", 0) in (0, 0.0) else 2))


@kind("paddle_sum_gradient")
def sum_gradient(call: Call) -> Cost:
    """Nothing but adding up where an input was broadcast."""
    grad = call.size("grad")
    return Cost(other=sum(grad for size in _wanted(call) if size != grad))


@kind("paddle_product_gradient")
def product_gradient(call: Call) -> Cost:
    grad = call.size("grad")
    return Cost(other=sum(grad if size == grad else 2 * grad for size in _wanted(call)))


@kind("paddle_dropout")
def dropout(call: Call) -> Cost:
    return KINDS["alias" if call.attr("is_test", False) else "dropout"](call)


# For each element of a parameter, as in optimizers.py.
@kind("paddle_adam")
def adam(call: Call) -> Cost:
    return Cost(other=13 * call.size("param"))


@kind("paddle_sgd")
def sgd(call: Call) -> Cost:
    return Cost(other=2 * call.size("param"))


@kind("paddle_momentum")
def momentum(call: Call) -> Cost:
    return Cost(other=5 * call.size("param"))


def spelled(op: str) -> Spelled:
    """`pd_op.batch_norm_` is `batch_norm`; `Conv2dGradNodeFinal` is `conv2d_grad`."""
    node = re.fullmatch(r"(\w+?)GradNode(?:Final)?", op)
    if node is not None and not op.startswith("GradNode"):
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", node[1]).lower()
        return Spelled((f"{name}_grad",))
    name = op.removeprefix("pd_op.")
    in_place = name.endswith("_") and not name.endswith("__")
    return Spelled((op, name, *((name[:-1],) if in_place else ())), in_place)
