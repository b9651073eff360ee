"""The timeline of a measured profile, used as a person would: one selection, zoom and pan, what could be won."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from steps import ready, reopen
from test_access import axe

import opscope

PROFILES = Path(__file__).parent.parent / "data" / "torch" / "profile"
PAGE = Path(__file__).parent.parent / "data" / "page"
SELECTED, SEVERAL = 1, 4


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A training step of GPT-2 on an H200."""
    path = tmp_path_factory.mktemp("timeline") / "step.html"
    opscope.open(PROFILES / "eager.et.json.gz", profile=PROFILES / "eager.trace.json.gz").save(path)
    return path.as_uri()


def timeline(page: Page) -> dict[str, Any]:
    page.evaluate("opscope.idle()")
    return page.evaluate("opscope.state().timeline")


def open_timeline(page: Page, url: str) -> dict[str, float]:
    ready(page, url)
    page.get_by_role("tab", name="Timeline").click()
    page.evaluate("opscope.idle()")
    box = page.locator(".timeline canvas").bounding_box()
    assert box is not None
    return box


def zoom_to(page: Page, box: dict[str, float], share: float, steps: int) -> None:
    page.mouse.move(box["x"] + 168 + (box["width"] - 168) * share, box["y"] + 150)
    for _ in range(steps):
        page.mouse.wheel(0, -120)
        page.evaluate("opscope.idle()")


def test_a_kernel_is_selected_everywhere(page: Page, step: str) -> None:
    box = open_timeline(page, step)
    found = timeline(page)
    assert found["events"] == 19288
    assert [lane["kind"] for lane in found["lanes"]][:2] == ["phase", "module"]
    zoom_to(page, box, 0.385, 9)  # into the products of the vocabulary
    spans = [s for s in timeline(page)["spans"] if s["kind"] == "event" and s["title"].startswith("cutlass")]
    kernel = max(spans, key=lambda span: span["width"])
    x, y = box["x"] + kernel["x"] + min(kernel["width"] / 2, 60), box["y"] + kernel["y"] + 8
    page.mouse.move(x, y)
    page.evaluate("opscope.idle()")
    expect(page.locator(".timeline .tip")).to_contain_text("kernel · backward")
    expect(page.locator(".timeline .tip")).to_contain_text("after its launch")
    page.mouse.click(x, y)
    now = timeline(page)
    assert now["current"]["launch"] is not None
    (node,) = page.evaluate("opscope.state().selection")
    assert now["current"]["nodes"] == [node]
    assert now["marked"]["kernels"] == 1
    assert now["marked"]["gpu"] > 0.001
    expect(page.locator(".right h2, .right .title").first).to_contain_text("aten.mm")
    expect(page.locator(".panel-body [aria-selected=true], .panel-body .selected").first).to_be_visible()


def test_a_selection_lights_its_spans_and_is_fitted(page: Page, step: str) -> None:
    open_timeline(page, step)
    whole = timeline(page)
    page.evaluate("opscope.select(['forward:step/GPT2LMHeadModel_0/GPT2Model_0/GPT2Block_3'])")
    marked = timeline(page)["marked"]
    assert marked["kernels"] == 29
    page.get_by_role("button", name="Fit selection").click()
    now = timeline(page)
    assert now["from"] <= marked["from"] < marked["to"] <= now["to"]
    assert now["to"] - now["from"] < 0.1 * (whole["to"] - whole["from"])
    lit = [s for s in now["spans"] if s["flags"] & SELECTED]
    assert any(s["title"].startswith("GPT2Block_3") for s in lit)
    page.get_by_role("button", name="Whole run").click()
    assert timeline(page)["to"] == pytest.approx(whole["to"])


def test_a_module_is_selected_by_its_span(page: Page, step: str) -> None:
    box = open_timeline(page, step)
    span = next(s for s in timeline(page)["spans"] if s["kind"] == "module" and s["title"] == "GPT2Model_0")
    page.mouse.click(box["x"] + span["x"] + span["width"] / 2, box["y"] + span["y"] + 6)
    page.evaluate("opscope.idle()")
    (item,) = page.evaluate("opscope.state().selection")
    assert item >= 3142  # a group
    expect(page.locator(".right")).to_contain_text("GPT2Model_0")


def test_zoom_and_pan_by_hand_and_by_keys(page: Page, step: str) -> None:
    box = open_timeline(page, step)
    before = timeline(page)
    zoom_to(page, box, 0.5, 3)
    zoomed = timeline(page)
    assert zoomed["to"] - zoomed["from"] < 0.5 * (before["to"] - before["from"])
    middle = box["x"] + 168 + (box["width"] - 168) / 2
    page.mouse.move(middle, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(middle - 100, box["y"] + 150)
    page.mouse.up()
    panned = timeline(page)
    assert panned["from"] > zoomed["from"]
    assert panned["to"] - panned["from"] == pytest.approx(zoomed["to"] - zoomed["from"])
    assert page.evaluate("opscope.state().selection") == []  # a drag is no click
    page.locator(".timeline canvas").focus()
    for key, wider in (("s", True), ("w", False)):
        was = timeline(page)
        page.keyboard.press(key)
        now = timeline(page)
        assert (now["to"] - now["from"] > was["to"] - was["from"]) == wider
    page.keyboard.press("0")
    assert timeline(page)["from"] == 0
    page.keyboard.press("ArrowRight")
    page.evaluate("opscope.idle()")
    first = timeline(page)["current"]
    page.keyboard.press("ArrowRight")
    assert timeline(page)["current"]["start"] >= first["end"] - 1e-9
    page.keyboard.press("Enter")
    assert timeline(page)["marked"]["spans"] > 0


def test_functions_of_python_are_shown_on_request(page: Page, step: str) -> None:
    open_timeline(page, step)
    few = len(timeline(page)["lanes"])
    button = page.get_by_role("button", name="Python functions")
    button.click()
    assert len(timeline(page)["lanes"]) > few
    expect(button).to_have_attribute("aria-pressed", "true")


def test_what_a_search_finds_is_marked(page: Page, step: str) -> None:
    open_timeline(page, step)
    found = page.evaluate("opscope.find('op:_log_softmax')")
    assert len(found) == 2  # it, and its gradient
    assert timeline(page)["marked"]["found"] >= 4  # their calls and their kernels


def test_the_address_holds_what_is_in_view(page: Page, step: str) -> None:
    box = open_timeline(page, step)
    zoom_to(page, box, 0.5, 4)
    before = timeline(page)
    reopen(page, "t=timeline", "k=")
    now = timeline(page)
    assert now["to"] - now["from"] == pytest.approx(before["to"] - before["from"], rel=0.25)
    assert now["from"] == pytest.approx(before["from"], rel=0.1)


def test_axe_finds_nothing(page: Page, step: str) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    open_timeline(page, step)
    page.locator(".won-row").nth(4).click()
    page.evaluate("opscope.idle()")
    assert axe(page) == []
    page.emulate_media(color_scheme="dark")
    assert axe(page) == []


def test_where_time_could_be_won_selects(page: Page, step: str) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    open_timeline(page, step)
    rows = page.locator(".won-row")
    expect(rows.first).to_contain_text("GPU waits for the CPU")
    expect(page.locator(".won-used")).to_contain_text("MFU")
    row = page.locator(".won-row", has_text="Far from the peak").first
    row.click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".won-why")).to_contain_text("50,257 is no multiple")
    assert page.evaluate("opscope.state().selection") == [605]
    page.get_by_role("button", name="Hide this list").click()
    expect(rows).to_have_count(0)
    page.get_by_role("button", name="Where time could be won").click()
    expect(rows.first).to_be_visible()


def test_the_roofline_has_what_was_reached(page: Page, step: str) -> None:
    ready(page, step)
    page.get_by_role("tab", name="Cost").click()
    page.get_by_role("radio", name="Roofline").click()
    page.evaluate("opscope.idle()")
    cost = page.evaluate("opscope.state().cost")
    assert cost["device"] == "h200"  # the profile says so
    assert all(point["took"] > 0 for point in cost["points"][:20])
    expect(page.locator(".chart-total")).to_contain_text("MFU 11 %")
    page.evaluate("opscope.select(['#605'])")
    page.evaluate("opscope.idle()")
    expect(page.locator(".chart-total")).to_contain_text("Selected: 3.36 ms")
    page.get_by_label("device").select_option("a100")
    page.evaluate("opscope.idle()")
    expect(page.locator(".roof-note")).to_contain_text("Measured on NVIDIA H200")


def test_kernels_of_compiled_graphs_lead_to_their_stage(page: Page, tmp_path: Path) -> None:
    capture = opscope.open(PROFILES / "compile.log.gz", profile=PROFILES / "compile.trace.json.gz")
    capture.save(tmp_path / "compiled.html")
    box = open_timeline(page, (tmp_path / "compiled.html").as_uri())
    zoom_to(page, box, 0.42, 9)
    lanes = timeline(page)["lanes"]
    spans = [s for s in timeline(page)["spans"] if lanes[s["lane"]]["kind"] == "event" and s["title"]]
    kernel = next(s for s in spans if s["lane"] < 12 and s["title"].startswith("triton"))
    page.mouse.click(box["x"] + kernel["x"] + 4, box["y"] + kernel["y"] + 8)
    page.evaluate("opscope.idle()")
    state = page.evaluate("opscope.state()")
    assert "post-grad" in state["stage"]
    assert len(state["selection"]) >= 1
    assert state["timeline"]["marked"]["kernels"] >= 1


def test_times_without_beginnings_say_so(page: Page, tmp_path: Path) -> None:
    opscope.open(PAGE / "times_torch.opscope").save(tmp_path / "times.html")
    ready(page, (tmp_path / "times.html").as_uri())
    page.get_by_role("tab", name="Timeline").click()
    expect(page.locator(".timeline")).to_contain_text("does not say when each operator began")
    opscope.open(PAGE / "step.opscope").save(tmp_path / "step.html")
    ready(page, (tmp_path / "step.html").as_uri())
    expect(page.get_by_role("tab", name="Timeline")).to_have_count(0)
