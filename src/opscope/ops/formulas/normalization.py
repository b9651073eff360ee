"""Normalizations, for each element: statistics 4 (mean; subtract, square, sum), normalize 2, scale 1, shift 1.

Backward: 10 for the input's gradient (normalize again 2, times weight 1, two sums 3, put together 4), 2 for the
scale's, 1 for the shift's.
"""

from __future__ import annotations

from opscope.ops.call import Call, size_of
from opscope.ops.cost import ESTIMATED, EXACT, Cost
from opscope.ops.kinds import Rule, kind

_STATISTICS, _NORMALIZE = 4, 2


def _affine(call: Call) -> int:
    return (call.given("weight") is not None) + (call.given("bias") is not None)


@kind("layer_norm", "group_norm")
def layer_norm(call: Call) -> Cost:
    return Cost(other=call.size("x") * (_STATISTICS + _NORMALIZE + _affine(call)))


@kind("batch_norm", "instance_norm")
def batch_norm(call: Call) -> Cost:
    """Statistics are taken in training; otherwise the running ones are used."""
    training = call.attr("training", call.attr("use_input_stats"))
    if call.given("running_mean") is None:
        training = True
    each = (_STATISTICS if training else 0) + _NORMALIZE + _affine(call)
    # A module that fx left whole does not say in which mode it is.
    return Cost(other=call.size("x") * each, how=EXACT if training is not None else ESTIMATED)


@kind("batch_norm/training")
def batch_norm_training(call: Call) -> Cost:
    return Cost(other=call.size("x") * (_STATISTICS + _NORMALIZE + _affine(call)))


@kind("batch_norm/evaluation")
def batch_norm_evaluation(call: Call) -> Cost:
    return Cost(other=call.size("x") * (_NORMALIZE + _affine(call)))


@kind("batch_norm/by-is-test")
def batch_norm_by_is_test(call: Call) -> Cost:
    return (batch_norm_evaluation if call.attr("is_test", False) else batch_norm_training)(call)


@kind("batch_norm/by-mode")
def batch_norm_by_mode(call: Call) -> Cost:
    return (batch_norm_training if call.attr("mode") == "TRAINING" else batch_norm_evaluation)(call)


@kind("batch_norm/by-training-mode")
def batch_norm_by_training_mode(call: Call) -> Cost:
    return (batch_norm_training if call.attr("training_mode", 0) else batch_norm_evaluation)(call)


@kind("batch_norm/by-training-flag")
def batch_norm_by_training_flag(call: Call) -> Cost:
    return (batch_norm_training if call.attr("training", True) else batch_norm_evaluation)(call)


@kind("layer_norm/skip")
def layer_norm_skip(call: Call) -> Cost:
    """x + skip (+ bias), and the norm of that."""
    return _after_sums(call, layer_norm)


@kind("rms_norm/skip")
def rms_norm_skip(call: Call) -> Cost:
    return _after_sums(call, rms_norm)


def _after_sums(call: Call, norm: Rule) -> Cost:
    sums = 1 + (call.given("added") is not None)
    cost = norm(call)
    return cost._replace(other=cost.other + sums * call.size("x"))


@kind("layer_norm/of-embeddings")
def layer_norm_of_embeddings(call: Call) -> Cost:
    """Rows of two or three tables, added up, and the norm of that."""
    made = size_of(call.out())
    tables = 1 + sum(call.given(name) is not None for name in ("position_embedding", "segment_embedding"))
    return Cost(other=made * (tables - 1 + _STATISTICS + _NORMALIZE + _affine(call)))


@kind("batch_norm_statistics")
def batch_norm_statistics(call: Call) -> Cost:
    return Cost(other=call.size("x") * _STATISTICS)


@kind("rms_norm")
def rms_norm(call: Call) -> Cost:
    """Square, sum, scale: no mean is taken away."""
    return Cost(other=call.size("x") * (3 + (call.given("weight") is not None)))


@kind("rms_norm_backward")
def rms_norm_backward(call: Call) -> Cost:
    asked = call.mask(2)
    return Cost(other=call.size("x") * (7 * asked[0] + 2 * asked[1]))


_BACKWARD = ("layer_norm_backward", "group_norm_backward", "instance_norm_backward", "batch_norm_backward")


@kind(*_BACKWARD)
def norm_backward(call: Call) -> Cost:
    return _norm_backward(call, call.mask(3))


@kind(*(f"{name}/by-outputs" for name in _BACKWARD))
def norm_backward_by_outputs(call: Call) -> Cost:
    return _norm_backward(call, call.computed(3))


def _norm_backward(call: Call, asked: list[bool]) -> Cost:
    x = call.given("x") or call.out()  # what it normalized, or the gradient of that
    return Cost(other=size_of(x) * (10 * asked[0] + 2 * asked[1] + asked[2]))


@kind("weight_norm")
def weight_norm(call: Call) -> Cost:
    """The norm of each row, and the division by it."""
    return Cost(other=4 * size_of(call.first()))


@kind("weight_norm_backward")
def weight_norm_backward(call: Call) -> Cost:
    return Cost(other=6 * size_of(call.first()))


@kind("local_response_norm")
def local_response_norm(call: Call) -> Cost:
    """Square, sum over the neighbours, power, divide."""
    return Cost(other=call.made() * (call.attr("size", 5) + 4))
