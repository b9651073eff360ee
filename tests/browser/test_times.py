"""What was measured while a model ran is seen in the page, whatever framework it was measured in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from steps import ready

import opscope
from opscope.analysis.times import node_times

PAGE = Path(__file__).parent.parent / "data" / "page"
FRAMEWORKS = [
    "torch",
    "paddle",
    "jittor",
    "hidet",
    "megengine",
]  # Jittor's times are of kernels, the others' of operators


def state(page: Page) -> dict[str, Any]:
    return page.evaluate("opscope.state()")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_measured_times_are_everywhere(page: Page, tmp_path: Path, framework: str) -> None:
    capture = opscope.open(PAGE / f"times_{framework}.opscope")
    capture.save(tmp_path / "times.html")
    ready(page, (tmp_path / "times.html").as_uri())
    times = node_times(capture, 0)
    assert times is not None
    seconds = {node: float(times.seconds[node]) for node in np.flatnonzero(times.known)}
    slowest = max(seconds, key=lambda node: (seconds[node], node))

    # Colour, with its legend.
    page.locator("select.tool").select_option("time")
    page.evaluate("opscope.idle()")
    assert state(page)["colour"] == "time"
    expect(page.locator(".legend b")).to_have_text("time")
    expect(page.locator(".legend")).to_contain_text("s")
    expect(page.locator(".legend i")).to_be_visible()

    # Details.
    page.evaluate(f"opscope.select(['#{slowest}'])")
    shown = page.locator(".right section", has_text="Figures").locator("dt", has_text="time").first
    expect(shown.locator("xpath=following-sibling::dd[1]/span[1]")).to_have_text(text_of(seconds[slowest]))

    # The table: the slowest stands first.
    page.get_by_role("tab", name="Table").click()
    page.locator(".table-row.head button", has_text="time").click()
    page.evaluate("opscope.idle()")
    first = page.locator(".virtual .table-row").first
    expect(first.locator(".cell").first).to_have_text(str(slowest))
    expect(first).to_contain_text(text_of(seconds[slowest]))

    # The treemap: what is measured adds up.
    page.get_by_role("tab", name="Cost").click()
    page.get_by_label("figure").select_option("time")
    page.evaluate("opscope.idle()")
    cost = state(page)["cost"]
    assert cost["figure"] == "time"
    assert cost["total"] == pytest.approx(sum(seconds.values()))
    assert cost["unknown"] == capture.graph.n_nodes - len(seconds)


def test_a_capture_without_times_offers_none(page: Page, tmp_path: Path) -> None:
    opscope.open(PAGE / "step.opscope").save(tmp_path / "step.html")
    ready(page, (tmp_path / "step.html").as_uri())
    assert "time" not in page.locator("select.tool option").evaluate_all("all => all.map((one) => one.value)")
    page.get_by_role("tab", name="Cost").click()
    expect(page.get_by_label("figure").locator("option[value=macs]")).to_have_count(1)
    expect(page.get_by_label("figure").locator("option[value=time]")).to_have_count(0)


def text_of(seconds: float) -> str:
    """As text/figures.ts writes it."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size or unit == "ns":
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 100 else f"{number:#.3g} {unit}"
    raise AssertionError


@pytest.mark.parametrize("framework", ["torch", "paddle", "jittor", "hidet"])  # MegEngine refuses values=True
def test_recorded_values_have_a_panel(page: Page, tmp_path: Path, framework: str) -> None:
    capture = opscope.open(PAGE / f"times_{framework}.opscope")
    capture.save(tmp_path / "values.html")
    table = capture.tables["value statistics"]
    ready(page, (tmp_path / "values.html").as_uri())
    page.get_by_role("tab", name="Values").click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".table-tools .hint")).to_contain_text(f"{len(table.index)} tensor")
    mean = table.columns["mean"]
    made = [(row, capture.graph.value(int(value)).producer) for row, value in enumerate(table.index) if mean.known[row]]
    row, node = next((row, maker) for row, maker in made if maker is not None)
    page.evaluate(f"opscope.select(['#{node.index}'])")  # Hidet's weights are not set here: NaN, and not unknown
    shown = page.locator(".virtual .table-row.selected .cell:nth-child(6)").first
    assert float(shown.inner_text().replace("−", "-")) == pytest.approx(float(mean.values[row]), rel=1e-3, nan_ok=True)


def test_without_values_there_is_no_such_panel(page: Page, tmp_path: Path) -> None:
    opscope.open(PAGE / "times_megengine.opscope").save(tmp_path / "none.html")
    ready(page, (tmp_path / "none.html").as_uri())
    expect(page.get_by_role("tab", name="Table")).to_be_visible()
    expect(page.get_by_role("tab", name="Values")).to_have_count(0)
