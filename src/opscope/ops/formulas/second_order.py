"""Gradients of gradients, as operators of their own: Paddle's `MatmulDoubleGradNode` and its kind.

Such an operator is handed the gradients of the gradients that a backward operator made. It makes gradients of what that
one read: first of the operands, then of the gradient that came in. How it computes them differs between libraries, so
all of these are estimates: the products that the formula has, and so many operations for each element.
"""

from __future__ import annotations

from math import prod

from opscope.ir.pools import Type
from opscope.ops.call import Call, NotKnown, Shape, shape_of, size_of
from opscope.ops.cost import ESTIMATED, Cost
from opscope.ops.kinds import Rule, kind, table

# For each element of the gradient that is handed in.
ELEMENTWISE = table("""
1: sum_double_backward mean_double_backward abs_double_backward
2: leaky_relu_double_backward sub_double_backward exp_double_backward
4: square_double_backward sin_double_backward cos_double_backward
5: mul_double_backward log_double_backward
6: tanh_double_backward sigmoid_double_backward sqrt_double_backward elu_double_backward softplus_double_backward
7: pow_double_backward
8: rsqrt_double_backward celu_double_backward
10: div_double_backward
12: silu_double_backward
""")


def _elementwise(each: int) -> Rule:
    return lambda call: Cost(other=each * call.taken(), how=ESTIMATED)


for _name, _each in ELEMENTWISE.items():
    kind(_name)(_elementwise(_each))


def _products(call: Call, one: int) -> Cost:
    """`one` product for each operand's gradient; that of the result's takes one for each gradient that is handed in,
    and these are as many as there are operands with a gradient."""
    operands = sum(call.computed(2))
    return Cost(macs=one * (operands + max(operands, 1) * call.computed(3)[2]), how=ESTIMATED)


@kind("matmul_double_backward")
def matmul_double_backward(call: Call) -> Cost:
    result = shape_of(call.out(2))
    if len(result) < 2:
        raise NotKnown("the shape of a matrix")
    matrices = [made for made in call.outputs[:2] if made.shape is not None and len(made.shape) > 1]
    return _products(call, prod(result) * _inner(result, [shape_of(made) for made in matrices] + _given(call)))


def _given(call: Call) -> list[Shape]:
    types: list[Type] = [a.type for a in call.inputs if a.type is not None]
    return [shape_of(t) for t in types if t.shape is not None and len(t.shape) > 1]


def _inner(result: Shape, operands: list[Shape]) -> int:
    """The side that is summed over: that of an operand which the result does not have."""
    rows, width = result[-2:]
    for shape in operands:
        one, other = shape[-2:]
        if width in (one, other) and rows not in (one, other):
            return one if other == width else other
        if rows in (one, other):
            return other if one == rows else one
    raise NotKnown("the side that is summed over")


@kind("conv_double_backward")
def conv_double_backward(call: Call) -> Cost:
    weight = next((made for made in call.outputs[1:2] if made.shape is not None), None)
    if weight is None:
        raise NotKnown("the weight")
    return _products(call, size_of(call.out(2)) * prod(shape_of(weight)[1:]))
