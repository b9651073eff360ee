"""Formulas of operators as ONNX, TensorFlow Lite and TensorFlow write them, against what naive loops count."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest

from opscope.ir.pools import Type
from opscope.ops import Argument, Cost, cost_of


def cost(
    framework: str, op: str, inputs: dict[str, tuple[int, ...] | None], out: tuple[int, ...], **attrs: Any
) -> Cost:
    given = [Argument(name, None if shape is None else Type("float32", shape)) for name, shape in inputs.items()]
    return cost_of(framework, op, given, [Type("float32", out)], attrs)


def steps(*sizes: int) -> int:
    """How often the innermost line of so many loops runs."""
    return sum(1 for _ in product(*map(range, sizes)))


def test_products_whose_matrices_flags_turn_round() -> None:
    n, k, m = 3, 4, 5
    found = cost("onnx", "Gemm", {"A": (k, n), "B": (m, k), "C": (m,)}, (n, m), transA=1, transB=1, alpha=0.5, beta=1.0)
    assert found.macs == steps(n, m, k)
    assert found.other == 2 * steps(n, m)  # scaled, and the bias added
    fused = cost("onnx", "com.microsoft.FusedMatMul", {"A": (2, n, k), "B": (2, m, k)}, (2, n, m), alpha=0.5, transB=1)
    assert (fused.macs, fused.other) == (steps(2, n, m, k), steps(2, n, m))
    packed = cost("onnx", "com.microsoft.MatMulNBits", {"A": (2, k), "B": (m, 1, 2), "scales": (m,)}, (2, m), N=m, K=k)
    assert packed.macs == steps(2, m, k)


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_of_both_directions(op: str, gates: int) -> None:
    time, batch, width, units = 3, 2, 4, 5
    weights = {"W": (2, gates * units, width), "R": (2, gates * units, units), "B": (2, 2 * gates * units)}
    found = cost("onnx", op, {"X": (time, batch, width), **weights}, (time, 2, batch, units), hidden_size=units)
    assert found.macs == steps(2, time, batch, gates, units, width) + steps(2, time, batch, gates, units, units)


def test_attention_with_heads_in_one_dimension_and_shared_keys() -> None:
    batch, queries, keys, heads, groups, width = 2, 3, 5, 4, 2, 8
    inputs = {
        "Q": (batch, queries, heads * width),
        "K": (batch, keys, groups * width),
        "V": (batch, keys, groups * width),
    }
    out = (batch, queries, heads * width)
    found = cost("onnx", "Attention", inputs, out, q_num_heads=heads, kv_num_heads=groups)
    assert found.macs == 2 * steps(batch, heads, queries, keys, width)
    past = {**inputs, "past_key": (batch, groups, 7, width), "past_value": (batch, groups, 7, width)}
    later = cost("onnx", "Attention", past, out, q_num_heads=heads, kv_num_heads=groups, is_causal=1)
    assert later.macs == 2 * steps(batch, heads, queries, keys + 7, width)
    shown = sum(1 for q in range(queries) for k in range(keys + 7) if k <= 7 + q)
    assert later.causal == 2 * batch * heads * width * shown
    four = dict.fromkeys("QKV", (batch, heads, queries, width))
    assert cost("onnx", "Attention", four, four["Q"]).macs == 2 * steps(batch, heads, queries, queries, width)


def test_attention_that_projects_by_itself() -> None:
    batch, length, heads, width = 2, 3, 4, 8
    hidden = heads * width
    inputs = {"input": (batch, length, hidden), "weights": (hidden, 3 * hidden), "bias": (3 * hidden,)}
    found = cost("onnx", "com.microsoft.Attention", inputs, (batch, length, hidden), num_heads=heads)
    assert found.macs == steps(batch, length, hidden, 3 * hidden) + 2 * steps(batch, heads, length, length, width)


def test_convolutions_with_the_channels_of_the_result_last() -> None:
    out, kernel, inside = (2, 4, 4, 8), (3, 3), 5
    whole = steps(*out, *kernel, inside)
    assert cost("tensorflow", "Conv2D", {"input": (2, 8, 8, inside), "filter": (*kernel, inside, 8)}, out).macs == whole
    lite = {"input": (2, 8, 8, inside), "filter": (8, *kernel, inside), "bias": (8,)}
    found = cost("tflite", "CONV_2D", lite, out, fused_activation_function="RELU")
    assert (found.macs, found.other) == (whole, 2 * prod(out))
    depthwise = cost("tflite", "DEPTHWISE_CONV_2D", {"input": (2, 8, 8, 8), "filter": (1, *kernel, 8)}, out)
    assert depthwise.macs == steps(*out, *kernel)
    several = {"input": (2, 8, 8, 4), "filter": (*kernel, 4, 2)}
    assert cost("tensorflow", "DepthwiseConv2dNative", several, out).macs == steps(*out, *kernel)
    back = {"input_sizes": (4,), "filter": (*kernel, 8, inside), "out_backprop": (2, 4, 4, inside)}
    assert cost("tensorflow", "Conv2DBackpropInput", back, (2, 8, 8, 8)).macs == steps(2, 4, 4, inside, *kernel, 8)


def test_resizing_along_the_axes_that_change() -> None:
    found = cost("onnx", "Resize", {"X": (1, 3, 4, 4), "sizes": (4,)}, (1, 3, 8, 8), mode="linear")
    assert found.other == 7 * prod((1, 3, 8, 8))  # four neighbours: four products and three sums
    assert cost("onnx", "Resize", {"X": (1, 3, 4, 4)}, (1, 3, 8, 4), mode="linear").other == 3 * prod((1, 3, 8, 4))
    assert cost("onnx", "Resize", {"X": (1, 3, 4, 4)}, (1, 3, 8, 8), mode="nearest").other == 0


def test_fused_norms_count_what_they_add() -> None:
    size = (2, 3, 8)
    plain = cost("onnx", "LayerNormalization", {"X": size, "Scale": (8,), "B": (8,)}, size).other
    skip = {"input": size, "skip": size, "gamma": (8,), "beta": (8,), "bias": (8,)}
    assert cost("onnx", "com.microsoft.SkipLayerNormalization", skip, size).other == plain + 2 * prod(size)


def test_updates_are_written_into_a_copy() -> None:
    found = cost("onnx", "ScatterND", {"data": (4, 5), "indices": (2, 1), "updates": (2, 5)}, (4, 5), reduction="add")
    assert found.other == 10
    assert cost("onnx", "ScatterND", {"data": (4, 5), "indices": (2, 1), "updates": (2, 5)}, (4, 5)).other == 0
