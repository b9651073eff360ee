"""The framework's own texts beside the graph, stages, and the frames of an operator: on real captures of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from steps import ready, reopen, state

import opscope
from opscope.ir import Listing, add_listings

CAPTURES = Path(__file__).parent.parent / "data" / "page"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    folder = tmp_path_factory.mktemp("pages")

    def page(name: str) -> str:
        out = folder / f"{name}.html"
        if not out.exists():
            opscope.open(CAPTURES / f"{name}.opscope").save(out)
        return out.as_uri()

    return page


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()
    page.evaluate("opscope.idle()")


def kind(page: Page, name: str) -> None:
    page.get_by_role("radio", name=name, exact=True).click()
    page.evaluate("opscope.idle()")


def test_a_line_selects_its_operator_and_the_other_way(page: Page, pages: Callable[[str], str]) -> None:
    ready(page, pages("joint"))
    tab(page, "IR")
    kind(page, "Code")
    line = page.locator(".listing .code-line", has_text="sigmoid = torch.ops.aten.sigmoid.default")
    line.click()
    page.evaluate("opscope.idle()")
    (sigmoid,) = page.evaluate(
        "opscope.find('op:aten.sigmoid phase:forward').then((n) => opscope.find('').then(() => n))"
    )
    assert state(page)["selection"] == [sigmoid]
    expect(page.locator(".right h2")).to_have_text("aten.sigmoid")
    expect(page.locator(".listing .current")).to_have_count(1)

    page.evaluate("opscope.select(['#19'])")  # far below: it comes into view
    expect(page.locator(".listing .current")).to_contain_text("sum_2 = torch.ops.aten.sum.dim_IntList")
    expect(page.locator(".listing .current")).to_be_in_viewport()

    kind(page, "Table")
    expect(page.locator(".listing .current")).to_contain_text("sum_2")
    page.evaluate("opscope.select(['forward:first'])")  # a module: all its lines
    expect(page.locator(".listing .current")).to_have_count(2)


def test_keys_go_from_line_to_line(page: Page, pages: Callable[[str], str]) -> None:
    ready(page, pages("joint"))
    tab(page, "IR")
    page.locator(".listing .virtual").focus()
    chosen = []
    for _ in range(3):
        page.keyboard.press("ArrowDown")
        page.evaluate("opscope.idle()")
        chosen += state(page)["selection"]
    assert chosen == [0, 1, 2]
    page.keyboard.press("ArrowUp")
    page.evaluate("opscope.idle()")
    assert state(page)["selection"] == [1]


def test_the_url_holds_tab_and_kind(page: Page, pages: Callable[[str], str]) -> None:
    ready(page, pages("joint"))
    page.evaluate("opscope.stage('backward')")
    tab(page, "IR")
    kind(page, "Native IR")
    reopen(page, "s=2", "t=ir", "k=native")
    now = state(page)
    assert (now["stage"], now["tab"], now["listing"]) == ("backward", "ir", "native")
    expect(page.get_by_role("radio", name="Native IR")).to_have_attribute("aria-checked", "true")


def test_stages_stand_in_a_row_and_keep_the_selection(page: Page, pages: Callable[[str], str]) -> None:
    ready(page, pages("joint"))
    row = page.locator(".stages")
    assert row.locator(".stage-name").all_text_contents() == ["joint22", "forward6", "backward16"]
    page.evaluate("opscope.select(['#2'])")
    tab(page, "IR")
    row.get_by_role("tab", name="forward").click()
    page.evaluate("opscope.idle()")
    assert state(page)["stage"] == "forward"
    expect(page.locator(".right h2")).to_have_text("aten.sigmoid")
    expect(page.locator(".listing .current")).to_contain_text("sigmoid")


def test_a_graph_break_leads_to_its_line(page: Page, pages: Callable[[str], str]) -> None:
    ready(page, pages("breaks"))
    page.locator(".stages").get_by_text("graph break").click()
    page.evaluate("opscope.idle()")
    page.locator(".listing .code-line", has_text="graph break").click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".code-line.current")).to_contain_text("if x.sum() > 0:")


def test_frames_of_the_framework_are_folded(page: Page, pages: Callable[[str], str]) -> None:
    ready(page, pages("step"))
    assert page.get_by_role("tab", name="IR", exact=True).count() == 0  # nothing to show there
    page.evaluate("opscope.select(['#1'])")
    frames = page.locator(".right .frame")
    assert frames.all_text_contents() == ["make_captures.py:25 forward", "make_captures.py:56 main"]
    expect(frames.first).to_have_class("link row frame  innermost")
    tab(page, "Source")
    expect(page.locator(".code-line.current")).to_contain_text("x = torch.sigmoid(self.first(x))")
    page.locator(".right .fold").click()
    assert "linear.py" in (frames.first.text_content() or "")
    assert frames.count() > 2
    page.locator(".right .fold").click()
    assert frames.count() == 2


def test_what_an_operator_is_for_is_said_in_words(page: Page, pages: Callable[[str], str]) -> None:
    ready(page, pages("step"))
    page.evaluate("opscope.select(['#33'])")
    panel = page.locator(".right")
    expect(panel.get_by_text("No forward operator: adds to the gradient of first.weight.")).to_be_visible()
    expect(panel.locator("dt", has_text="gradient function")).to_be_visible()
    expect(panel.locator("dt", has_text="unpaired")).to_have_count(0)
    page.evaluate("opscope.select(['#3'])")
    expect(panel.locator("section", has_text="Not drawn")).to_contain_text("sigmoid")


def test_a_hundred_thousand_lines(page: Page, tmp_path: Path) -> None:
    capture = opscope.open(CAPTURES / "joint.opscope")
    capture.tables = {name: table for name, table in capture.tables.items() if table.fact != "lines"}
    text = "\n".join(f"v{i} = torch.ops.aten.relu.default(v{i - 1})" for i in range(100_000))
    add_listings(capture, 0, {"code": Listing(text, [(90000, 3), (1, 0)])})
    capture.save(tmp_path / "long.html")
    ready(page, (tmp_path / "long.html").as_uri())
    tab(page, "IR")
    expect(page.get_by_text("100,000 lines")).to_be_visible()
    page.evaluate("opscope.select(['#3'])")
    expect(page.locator(".listing .current")).to_contain_text("v89999 = ")
    slowest = page.evaluate(
        """async () => {
            const list = document.querySelector('.listing .virtual');
            let slowest = 0;
            for (let i = 0; i < 60; i++) {
                list.scrollTop = (i / 59) * list.scrollHeight;
                const begin = performance.now();
                list.dispatchEvent(new Event('scroll'));
                slowest = Math.max(slowest, performance.now() - begin);
                await new Promise(requestAnimationFrame);
            }
            return slowest;
        }"""
    )
    assert slowest < 100  # a few ms; the rows in view are all there is
    assert page.locator(".listing .code-line").count() < 100
    expect(page.locator(".listing .code-line").last).to_contain_text("v99999")
