"""Recurrent layers. In every step each sample is multiplied with every weight matrix of its layer once.

Element-wise, for each unit and step: LSTM 9 (four functions, tanh of the cell, four products and sums), GRU 9, plain
1; and for each gate one sum of the two products and two biases.
"""

from __future__ import annotations

from math import prod

from opscope.ops.call import Call, NotKnown, Shape, shape_of
from opscope.ops.cost import Cost
from opscope.ops.kinds import kind

_GATES = {"lstm": 4, "gru": 3, "rnn": 1}
_UNIT = {"lstm": 9, "gru": 9, "rnn": 1}
_MODES = {0: "rnn", 1: "rnn", 2: "lstm", 3: "gru", "LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn", "RNN_RELU": "rnn"}


def _layer(cell: str, rows: int, weights: list[Shape], has_bias: bool) -> Cost:
    """`rows` steps of single samples through all of the weight matrices."""
    matrices = [w for w in weights if len(w) == 2]
    if not matrices:
        raise NotKnown("weights")
    # Two matrices with a row for each gate in each layer and direction; a third, if it projects, has fewer rows.
    most = max(w[0] for w in matrices)
    gates = sum(w[0] for w in matrices if w[0] == most) // 2
    units = gates // _GATES[cell]
    other = rows * (gates * (3 if has_bias else 1) + units * _UNIT[cell])
    return Cost(macs=rows * sum(map(prod, matrices)), other=other)


def _weights(call: Call) -> list[Shape]:
    """Everything that is called a weight or parameter: `params[0]`, `weight_ih_l0`, `weight0`, `w_ih`."""
    found = call.listed("params")
    if not found:
        found = [
            a.type for a in call.inputs if a.type is not None and a.name.startswith(("weight", "w_", "bias", "b_"))
        ]
    return [shape_of(t) for t in found]


def _run(call: Call, cell: str) -> Cost:
    x = call.shape("x")
    weights = _weights(call)
    return _layer(cell, prod(x[:-1]), weights, any(len(w) == 1 for w in weights))


@kind("lstm/stacked", "gru/stacked", "rnn/stacked")
def stacked(call: Call) -> Cost:
    """[time, batch, in], and weights of both directions in one tensor: [directions, gates · units, in or units]. What
    is written for each unit and gate is that of the other layout."""
    x, weight, hidden = call.shape("x"), call.shape("weight"), call.shape("hidden")
    if len(weight) != 3 or len(hidden) != 3 or not hidden[2]:
        raise NotKnown("weights")
    rows, gates, units = prod(x[:-1]), weight[0] * weight[1], weight[0] * hidden[2]
    each = _UNIT[{4: "lstm", 3: "gru", 1: "rnn"}[weight[1] // hidden[2]]]
    other = rows * (gates * (3 if call.given("bias") is not None else 1) + units * each)
    return Cost(macs=rows * (prod(weight) + prod(hidden)), other=other)


def _cell_of(call: Call) -> str:
    mode = call.attr("mode")
    if mode not in _MODES:
        raise NotKnown("mode")
    return _MODES[mode]


@kind("lstm", "lstm_cell")
def lstm(call: Call) -> Cost:
    return _run(call, "lstm")


@kind("gru", "gru_cell")
def gru(call: Call) -> Cost:
    return _run(call, "gru")


@kind("rnn", "rnn_cell")
def rnn(call: Call) -> Cost:
    return _run(call, "rnn")


@kind("fused_rnn")
def fused_rnn(call: Call) -> Cost:
    """One operator for any of them: `mode` says which."""
    return _run(call, _cell_of(call))


@kind("fused_rnn_backward")
def fused_rnn_backward(call: Call) -> Cost:
    """The gradients of inputs and of weights, each as many products as the forward pass."""
    cost = _run(call, _cell_of(call))
    return Cost(macs=2 * cost.macs, other=2 * cost.other)


@kind("fused_rnn_backward/by-outputs")
def fused_rnn_backward_by_outputs(call: Call) -> Cost:
    """The gradients of the weights, and those of the states, which every step needs; of the inputs of the first layer
    only where somebody wants them. What it makes says which cell it is: the hidden matrix has a row for each gate."""
    rows = prod(call.shape("grad")[:-1])
    weights = [shape_of(made) for made in call.outputs if made.shape is not None and len(made.shape) in (1, 2)]
    matrices = [w for w in weights if len(w) == 2]
    if len(matrices) < 2:
        raise NotKnown("weights")
    hidden = matrices[1]
    cell = next((name for name, gates in _GATES.items() if hidden[0] == gates * hidden[1]), None)
    if cell is None:
        raise NotKnown("the cell")
    forward = _layer(cell, rows, weights, any(len(w) == 1 for w in weights))
    directions = 2 if call.shape("grad")[-1] == 2 * hidden[1] else 1
    unwanted = 0 if call.computed(1)[0] else sum(map(prod, matrices[: 2 * directions : 2]))
    return Cost(macs=2 * forward.macs - rows * unwanted, other=2 * forward.other)


@kind("lstm_gates")
def lstm_gates(call: Call) -> Cost:
    """What is left of an LSTM cell when its matrix products are done: `cx` has one element for each unit."""
    units = call.size("cx")
    return Cost(other=units * (_UNIT["lstm"] + 4 * (3 if call.given("input_bias") is not None else 1)))


@kind("lstm_gates_backward")
def lstm_gates_backward(call: Call) -> Cost:
    return Cost(other=24 * call.size("cx"))


@kind("gru_gates")
def gru_gates(call: Call) -> Cost:
    units = call.size("hx")
    return Cost(other=units * (_UNIT["gru"] + 3 * (3 if call.given("input_bias") is not None else 1)))


@kind("gru_gates_backward")
def gru_gates_backward(call: Call) -> Cost:
    return Cost(other=20 * call.size("grad_hy"))
