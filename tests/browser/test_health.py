"""The Health tab: the story of a NaN as a path, gradients along the layers, weights, and histograms of tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect
from steps import ready, state

import opscope
from opscope.ir import Capture, GraphBuilder, Origin, Pools, Stage
from opscope.ir.measurements import EXPONENTS, Figures, figures_table


def recording(path: Path) -> Path:
    """y = x · w; z = y / |y|, which is NaN where y is zero; a gradient that is finite, and one that is not."""
    b = GraphBuilder(Pools())
    matrix = b.pools.type("float32", (4, 4))
    x = b.input(matrix, name="x")
    first = b.value(matrix, name="first.weight", role="parameter")
    second = b.value(matrix, name="second.weight", role="parameter")
    scope = b.pools.scope(0, "norm", "Norm")
    y = b.output(b.node("aten.mm", [x, first], phase="forward"), matrix)
    z = b.output(b.node("aten.div.Tensor", [y, y], scope=scope, phase="forward"), matrix)
    loss = b.output(b.node("aten.mm", [z, second], phase="forward"), matrix, name="loss")
    grads = [
        b.output(b.node("aten.mm", [loss, y], phase="backward"), matrix, name="second.weight.grad", role="gradient"),
        b.output(b.node("aten.mm", [x, y], phase="backward"), matrix, name="first.weight.grad", role="gradient"),
    ]
    b.outputs.append(loss)
    counts = tuple(5 if i in (31, 32) else 0 for i in range(EXPONENTS))
    fine = Figures(size=16, min=-1.0, max=2.0, mean=0.1, norm=2.0, rms=0.5, exponents=counts)
    bad = Figures(size=16, nan=3)
    found = dict.fromkeys((x, first, second, y, grads[1]), fine) | dict.fromkeys((z, loss, grads[0]), bad)
    capture = Capture(b.pools, [Stage("graph", b.freeze())], origin=Origin("PyTorch", how="recorder"))
    capture.tables["value statistics"] = figures_table(0, found)
    opscope.Capture.of(capture).save(path)
    return path


def test_the_story_of_a_nan_is_a_path(page: Page, serve: Callable[..., str], tmp_path: Path) -> None:
    path = recording(tmp_path / "nan.opscope")
    assert [(origin.op, origin.kind) for origin in opscope.open(path).origins()] == [("aten.div.Tensor", "nan")]
    ready(page, serve(path))
    page.get_by_role("tab", name="Health").click()
    expect(page.locator(".story-head")).to_contain_text("NaN from aten.div.Tensor")
    expect(page.locator(".story-way .link")).to_have_text(["div", "mm", "mm"])
    page.get_by_role("button", name="Show the path").click()
    assert len(state(page)["selection"]) == 3
    page.get_by_role("radio", name="Gradients").click()
    bars = page.locator(".gradient-bars button")
    expect(bars).to_have_count(2)  # in the order of the layers; the second one holds NaN
    expect(page.locator(".gradient-bars button.bad")).to_have_attribute(
        "title", "second.weight.grad 4×4 float32: NaN / Inf"
    )
    page.get_by_role("radio", name="Weights").click()
    page.locator(".health .table-row").filter(has_text="first.weight").click()
    expect(page.locator(".right .histogram")).to_have_attribute("aria-label", "2^-4 … 2^4")
    page.locator("[data-key=colour]").select_option("tensor rms")
    expect(page.locator("[data-key=roll]")).to_have_value("max")
