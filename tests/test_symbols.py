"""Sizes that a capture leaves open, and numbers for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import opscope
from commands import bad, good
from opscope.analysis.binding import open_sizes
from opscope.ir import Capture, GraphBuilder, Origin, Pools, Stage, verify_capture
from opscope.ir.pools import Dim
from opscope.ir.symbols import NotASize, evaluate, names


def linear(rows: Dim, framework: str = "torch", op: str = "aten.linear", more: Dim = None) -> opscope.Capture:
    """A linear layer, and its result in another shape."""
    b = GraphBuilder(Pools())
    x = b.input(b.pools.type("float32", (rows, 8)), name="x")
    w = b.value(b.pools.type("float32", (16, 8)), name="w", role="parameter")
    y = b.output(b.node(op, [x, w], phase="forward"), b.pools.type("float32", (rows, 16)))
    shape = {"shape": [more or -1, 4]} if framework == "torch" else {}
    flat = b.node("aten.reshape" if framework == "torch" else "pd_op.reshape", [y], attrs=shape, phase="forward")
    b.outputs.append(b.output(flat, b.pools.type("float32", (more, 4))))
    capture = Capture(b.pools, [Stage("graph", b.freeze())], origin=Origin("test", framework))
    verify_capture(capture)
    return opscope.Capture.of(capture)


@pytest.mark.parametrize(
    ("text", "sizes", "number"),
    [
        ("b", {"b": 4}, 4),
        ("4*s0", {"s0": 3}, 12),
        ("(n + 1)//2", {"n": 4}, 2),
        ("s0**2 - 1", {"s0": 3}, 8),
        ("Max(1, Mod(s0, 4))", {"s0": 8}, 1),
        ("CeilDiv(a, b)", {"a": 7, "b": 2}, 4),
        ("6/b", {"b": 3}, 2),
    ],
)
def test_sizes_are_arithmetic(text: str, sizes: dict[str, int], number: int):
    assert evaluate(text, sizes) == number
    assert names(text) == set(sizes)


@pytest.mark.parametrize(
    "text",
    ["b.real", "__import__('os')", "[b]", "b if b else 1", "b / 3", "b - 5", "1 // (b - 4)", "2**b**b", "b" * 600,
     "", "'b'", "1.5"],
)  # fmt: skip
def test_what_is_no_size_is_refused(text: str):
    with pytest.raises(NotASize):
        evaluate(text, {"b": 4})


def test_open_sizes_are_marked_and_not_zero():
    stats = linear("b", more="4*b").stats()
    assert stats.total.at_least
    assert stats.total.activations_at_least
    assert "Activations: ? numbers" in str(stats)
    rows = stats.by_module().rows
    assert all(row["memory_unknown"] for row in rows)
    assert "share of traffic" in str(stats.by_module())


@pytest.mark.parametrize("name", ["b", "x[0]"])
def test_a_number_for_a_symbol_makes_figures_exact(name: str):
    capture = linear("b", more="4*b")
    assert open_sizes(capture) == ["b"]
    stats = capture.stats(sizes={name: 5})
    assert (stats.total.macs, stats.total.at_least) == (5 * 8 * 16, False)
    assert (stats.total.activations, stats.total.activations_at_least) == (5 * 16, False)
    node = capture.bind({name: 5}).graph.node(1)
    assert node.attrs == {"shape": [20, 4]}
    assert node.outputs[0].type.shape == (20, 4)
    assert capture.graph.node(1).outputs[0].type.shape == ("4*b", 4)  # the capture itself is as it was


@pytest.mark.parametrize("name", ["?", "x[0]"])
def test_sizes_without_a_name_follow_from_those_of_the_inputs(name: str):
    capture = linear(None, "paddle", "pd_op.linear")
    stats = capture.stats(sizes={name: 5})
    assert (stats.total.macs, stats.total.activations) == (5 * 8 * 16, 5 * 16)
    assert capture.bind({name: 5}).graph.node(1).outputs[0].type.shape == (20, 4)
    assert not stats.total.at_least
    assert not stats.total.activations_at_least


def test_what_does_not_follow_stays_unknown():
    b = GraphBuilder(Pools())
    x = b.input(b.pools.type("float32", (None, 8)), name="x")
    kept = b.output(b.node("pd_op.masked_select", [x], phase="forward"), b.pools.type("float32", (None,)))
    b.outputs.append(kept)
    capture = opscope.Capture.of(Capture(b.pools, [Stage("graph", b.freeze())], origin=Origin("test", "paddle")))
    bound = capture.bind({"?": 5})
    assert bound.graph.value(kept).type.shape == (None,)
    assert bound.stats().total.activations_at_least


@pytest.mark.parametrize("sizes", [{"q": 4}, {"w[0]": 4}, {"b": -1}, {"b": 2.5}, {"?": 3}])
def test_a_name_that_is_none_is_an_error_that_lists_them(sizes: dict[str, int]):
    with pytest.raises(opscope.OpscopeError, match=r"there are: b, x\[0\]|whole number"):
        linear("b", more="4*b").stats(sizes=sizes)


def test_all_sizes_known_already():
    with pytest.raises(opscope.OpscopeError, match="none, all sizes are numbers"):
        linear(3, more=12).bind({"b": 4})


def test_the_commands_take_sizes(tmp_path: Path):
    file = tmp_path / "open.opscope"
    linear("b", more="4*b").save(file)
    found = json.loads(good("stats", file, "--size", "b=5", "--json"))
    assert found["total"]["macs"] == 5 * 8 * 16
    assert not found["total"]["at_least"]
    assert opscope.stats(file, sizes={"b": 5}).total.macs == 5 * 8 * 16
    good("info", file, "--size", "b=5")
    out = tmp_path / "out.opscope"
    good("export", file, "-o", out, "--size", "b=5")
    assert opscope.open(out).graph.node(0).outputs[0].type.shape == (5, 16)
    for wrong in ("q=4", "b", "b=x", "=4", "b=" + "9" * 40):
        assert "size" in bad("stats", file, "--size", wrong)


def test_a_size_without_a_name_is_that_of_a_picture(tmp_path: Path):
    file = tmp_path / "open.opscope"
    linear("b", more="4*b").save(file)
    assert "12z" in bad("export", file, "-o", tmp_path / "out.svg", "--size", "12z")
