"""Convolutions. A weight is [out, in / groups, kernel…], of a transposed one [in, out / groups, kernel…].

Every element on the side that the kernel is applied from takes weight / first size products: for each result of an
ordinary convolution, for each input of a transposed one. So stride, padding, dilation and groups need not be known.
Products with padding count, as in every library that pads.
"""

from __future__ import annotations

from math import prod

from opscope.ops.call import Call, NotKnown, Type, shape_of, size_of
from opscope.ops.cost import Cost
from opscope.ops.kinds import kind


def _macs(applied: Type, weight: Type) -> int:
    sizes = shape_of(weight)
    if len(sizes) < 2:
        raise NotKnown("the weight")
    return size_of(applied) * prod(sizes[1:])


def _bias(call: Call) -> int:
    return call.made() if call.given("bias") is not None else 0


@kind("conv")
def conv(call: Call) -> Cost:
    if call.attr("transposed", False):
        return conv_transpose(call)
    return Cost(macs=_macs(call.out(), call.tensor("weight")), other=_bias(call))


@kind("conv_transpose")
def conv_transpose(call: Call) -> Cost:
    return Cost(macs=_macs(call.tensor("x"), call.tensor("weight")), other=_bias(call))


@kind("conv/grouped-weight")
def conv_grouped_weight(call: Call) -> Cost:
    """May add a bias and another tensor `z`, and end in a relu."""
    made = size_of(call.out())
    more = _there(call.given("bias")) + _there(call.given("z")) + (call.attr("activation") == "RELU")
    return Cost(macs=made * _kernel(call), other=made * more)


@kind("conv_transpose/grouped-weight")
def conv_transpose_grouped_weight(call: Call) -> Cost:
    return Cost(macs=call.size("x") * _kernel(call))


def _kernel(call: Call) -> int:
    """Products for one element. A weight in groups has a dimension more: [groups, out, in, kernel…]."""
    weight = call.shape("weight")
    if call.attr("layout", "NCHW") not in ("NCHW", "NCDHW") or len(weight) < 3:
        raise NotKnown("the layout of the weight")
    return prod(weight[2 if call.attr("sparse") == "GROUP" else 1 :])


def _there(found: Type | None) -> bool:
    """Whether an argument is given: one that is left out may be an empty tensor."""
    return found is not None and found.elements not in (None, 0)


@kind("conv/time-first")
def conv_time_first(call: Call) -> Cost:
    """[time, batch, channels]; the weight is [kernel, in, out]."""
    kernel, inside, _ = call.shape("weight")
    return Cost(macs=call.made() * kernel * inside, other=_bias(call))


@kind("conv/fused")
def conv_fused(call: Call) -> Cost:
    """May add a bias and another tensor `z`, and end in an activation, which is counted as one operation."""
    cost = conv(call)
    more = (call.given("z") is not None) + (call.attr("activation") not in (None, ""))
    return cost._replace(other=cost.other + more * call.made())


@kind("conv/out-last")
def conv_out_last(call: Call) -> Cost:
    """A weight of [kernel…, in / groups, out]: a depthwise one has one kernel for each channel. May end in an
    activation, which is counted as one operation."""
    weight = call.shape("weight")
    more = _there(call.given("bias")) + (call.attr("activation", "NONE") != "NONE")
    return Cost(macs=call.made() * prod(weight[:-1]), other=call.made() * more)


@kind("conv/depthwise-last")
def conv_depthwise_last(call: Call) -> Cost:
    """A weight of [height, width, in, results of each]: every result is made from one channel."""
    weight = call.shape("weight")
    return Cost(macs=call.made() * prod(weight[:2]), other=_bias(call))


@kind("conv/activated")
def conv_activated(call: Call) -> Cost:
    """A weight of [out, kernel…, in], and an activation at the end."""
    more = _there(call.given("bias")) + (call.attr("activation", "NONE") != "NONE")
    return Cost(macs=_macs(call.out(), call.tensor("weight")), other=call.made() * more)


@kind("conv_transpose/out-first")
def conv_transpose_out_first(call: Call) -> Cost:
    """A weight of [out, kernel…, in], or [kernel…, out, in]: every input is multiplied with all but its last side."""
    weight = call.shape("weight")
    return Cost(macs=call.size("x") * prod(weight[:-1]), other=_bias(call))


@kind("conv_backward")
def conv_backward(call: Call) -> Cost:
    """The gradients of input and weight each have as many products as the forward pass."""
    grad, weight = call.tensor("grad"), call.tensor("weight")
    one = _macs(call.tensor("x") if call.attr("transposed", False) else grad, weight)
    asked = call.mask(3)
    return Cost(macs=one * (asked[0] + asked[1]), other=size_of(grad) if asked[2] else 0)


@kind("conv_backward/by-outputs")
def conv_backward_by_outputs(call: Call) -> Cost:
    return Cost(macs=_macs(call.tensor("grad"), call.tensor("weight")) * sum(call.computed(2)))


@kind("conv_backward/transposed-by-outputs")
def conv_backward_transposed_by_outputs(call: Call) -> Cost:
    return Cost(macs=_macs(call.tensor("x"), call.tensor("weight")) * sum(call.computed(2)))


@kind("conv_backward/of-input")
def conv_backward_of_input(call: Call) -> Cost:
    """The gradient of the input alone."""
    return Cost(macs=_macs(call.tensor("grad"), call.tensor("weight")))


@kind("conv_backward/of-weight")
def conv_backward_of_weight(call: Call) -> Cost:
    return Cost(macs=_macs(call.tensor("grad"), call.out()))


@kind("conv_relu")
def conv_relu(call: Call) -> Cost:
    cost = conv(call)
    return cost._replace(other=cost.other + call.made())


@kind("conv_add_relu")
def conv_add_relu(call: Call) -> Cost:
    cost = conv(call)
    return cost._replace(other=cost.other + 2 * call.made())
