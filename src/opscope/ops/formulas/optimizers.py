"""Optimizers that update a parameter, or a whole list of them, in one operator; for each element of a parameter.

SGD 2 (step), momentum 3, weight decay 2. Adam: first moment 3, second moment 4, root, division by the correction and
epsilon 3, step 3; weight decay 2, the largest second moment (amsgrad) 1. Adagrad 7, weight decay 2.
"""

from __future__ import annotations

from opscope.ops.call import Call, size_of
from opscope.ops.cost import Cost
from opscope.ops.kinds import kind


def _elements(call: Call) -> int:
    return sum(map(size_of, call.listed("param") or [call.tensor("param")]))


def _decay(call: Call) -> int:
    return 2 if call.attr("weight_decay", 0) else 0


@kind("adam")
def adam(call: Call) -> Cost:
    return Cost(other=_elements(call) * (13 + _decay(call) + (1 if call.attr("amsgrad", False) else 0)))


@kind("sgd")
def sgd(call: Call) -> Cost:
    return Cost(other=_elements(call) * (2 + _decay(call) + (3 if call.attr("momentum", 0) else 0)))


@kind("sgd/with-momentum")
def sgd_with_momentum(call: Call) -> Cost:
    return Cost(other=_elements(call) * 5)


@kind("adagrad")
def adagrad(call: Call) -> Cost:
    return Cost(other=_elements(call) * (7 + _decay(call)))


@kind("unscale")
def unscale(call: Call) -> Cost:
    """Gradients of mixed precision: look for infinities, divide by the scale."""
    return Cost(other=2 * _elements(call))
