"""The page as one works with it: what it says, what stays in place, what the keys and the URL do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from steps import ready, reopen, state

import opscope

DATA = Path(__file__).parent.parent / "data"
JITTOR = DATA / "jittor"
Serve = Callable[..., str]

# Texts as they are drawn, with the size of their letters.
RECORD = """
const drawn = (window.drawn = []);
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    if (this.canvas.classList.contains('graph')) drawn.push([text, parseFloat(this.font.match(/([\\d.]+)px/)[1])]);
    return fillText.call(this, text, ...rest);
};
"""
DROP = """async ([name, bytes]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(bytes)], name));
    document.getElementById('opscope').dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true }));
    await opscope.idle();
}"""


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
    page.evaluate("opscope.idle()")


def place(page: Page, title: str) -> tuple[float, float]:
    """The middle of a box, in pixels of the page."""
    now = state(page)
    box = next(box for box in now["boxes"] if box["title"] == title)
    canvas = page.locator("canvas.graph").bounding_box()
    assert canvas is not None
    view = now["view"]
    x = canvas["x"] + canvas["width"] / 2 + (box["x"] + box["width"] / 2 - view["x"]) * view["zoom"]
    y = canvas["y"] + canvas["height"] / 2 + (box["y"] + box["height"] / 2 - view["y"]) * view["zoom"]
    return x, y


@pytest.fixture(scope="module")
def simple(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("use") / "simple.html"
    opscope.open(JITTOR / "simple_model_train.pkl", sources=[JITTOR]).save(out)
    return out.as_uri()


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("use") / "resnet.html"
    opscope.open(JITTOR / "resnet_train.pkl", sources=[JITTOR]).save(out)
    return out.as_uri()


def test_small_boxes_have_titles_that_can_be_read(page: Page, simple: str) -> None:
    page.add_init_script(RECORD)
    ready(page, simple)
    page.evaluate("opscope.expandAll()")
    assert state(page)["view"]["zoom"] < 0.45
    page.evaluate("drawn.length = 0; opscope.view(...Object.values(opscope.state().view))")
    drawn = page.evaluate("drawn")
    texts = [text for text, _ in drawn]
    now = state(page)
    boxes = [box for box in now["boxes"] if box["kind"] == 0 and box["width"] * now["view"]["zoom"] >= 28]
    named = [text for text in texts if any(box["title"].startswith(text.rstrip("…")) for box in boxes)]
    assert len(named) >= len(boxes) > 30
    assert "add" in texts
    assert any(text.endswith("…") for text in texts)
    assert min(size for _, size in drawn) >= 7.5


def test_a_box_too_small_to_be_read_says_what_it_is(page: Page, simple: str) -> None:
    ready(page, simple)
    page.evaluate("opscope.expandAll()")
    page.mouse.move(*place(page, "ternary"))
    expect(page.locator(".tip.on")).to_contain_text("ternary · ")


def test_one_number_for_one_thing(page: Page, resnet: str) -> None:
    """Operators as `opscope info` counts them: in the chips, in the tree, in the details."""
    ready(page, resnet)
    for phase, count in (("forward", "819"), ("optimizer", "1,052")):
        expect(page.locator(".chip.phase", has_text=phase)).to_have_text(f"{phase} {count}")
        row = page.locator(".tree-row").filter(has=page.locator(".name", has_text=phase))
        expect(row.locator(".count")).to_have_text(count)
        page.evaluate(f"opscope.select(['{phase}:'])")
        expect(page.locator(".right .sub")).to_contain_text(f"{count} ops")


def test_a_search_leads_from_a_constant_to_its_reader(page: Page, simple: str) -> None:
    ready(page, simple)
    (constant,) = page.evaluate("opscope.find('op:array phase:forward')")
    page.evaluate(f"opscope.select(['#{constant}'])")
    expect(page.locator(".right")).to_contain_text("is drawn inside the operator that reads it")
    page.locator(".right section", has_text="Not drawn").locator("button.ref").click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".right h2")).to_have_text("broadcast_to")


def test_a_kernel_is_described_and_its_code_begins_where_it_matters(page: Page, simple: str) -> None:
    ready(page, simple)
    page.evaluate("opscope.kernel(24)")
    expect(page.locator(".right h2")).to_have_text("kernel #24")
    expect(page.locator(".right .ref", has_text="reduce.add")).to_be_visible()
    top = page.evaluate(
        """() => {
            const body = document.querySelector('.low .code-body');
            const y = body.getBoundingClientRect().top;
            const lines = [...body.querySelectorAll('.code-line')];
            return lines.find((line) => line.getBoundingClientRect().bottom > y + 2).textContent;
        }"""
    )
    assert "jit_run" in top
    page.locator("select.tool").select_option("kernel")
    page.evaluate("opscope.idle()")
    expect(page.locator(".kernel-row .swatch").first).to_be_visible()


def test_a_list_keeps_its_place_when_something_is_selected(page: Page, resnet: str) -> None:
    ready(page, resnet)
    page.evaluate("opscope.kernel(400)")
    page.evaluate("opscope.select(['forward:resnet18/conv1'])")
    expect(page.locator(".kernel-row").nth(6)).to_be_in_viewport()
    page.get_by_role("tab", name="Modules").click()
    page.get_by_role("tab", name="Kernels").click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".kernel-row").nth(6)).to_be_in_viewport()


def test_a_panel_that_opens_below_moves_nothing(page: Page, simple: str) -> None:
    ready(page, simple)
    before = place(page, "opt")
    page.get_by_role("tab", name="Table").click()
    page.evaluate("opscope.idle()")
    assert place(page, "opt") == pytest.approx(before, abs=0.6)


def test_what_is_selected_comes_out_from_under_a_panel(page: Page, simple: str) -> None:
    ready(page, simple)
    page.evaluate("opscope.select(['forward:model/linear2'])")
    page.get_by_role("tab", name="Cost").click()
    page.evaluate("opscope.idle()")
    canvas = page.locator("canvas.graph").bounding_box()
    assert canvas is not None
    now = state(page)
    box = next(box for box in now["boxes"] if box["item"] == now["selection"][0])
    y = canvas["height"] / 2 + (box["y"] + box["height"] - now["view"]["y"]) * now["view"]["zoom"]
    assert y < canvas["height"]


def test_the_url_holds_colours_options_and_depth(page: Page, resnet: str) -> None:
    ready(page, resnet)
    page.evaluate("opscope.expandAll()")
    page.locator("select.tool").select_option("output size")
    page.locator(".menu summary").click()
    page.get_by_label("Parameters and constants as boxes").check()
    page.get_by_label("Edge width by size").check()
    press(page, "Escape")
    expect(page.locator(".menu-body")).to_be_hidden()
    # The view is written a moment after it has come to rest.
    page.evaluate("opscope.idle()")
    page.wait_for_function(
        """() => { const { x, y, zoom } = opscope.state().view, v = /[#&]v=([^&]*)/.exec(location.hash);
            return v && v[1].split(',').every((n, i) => Math.abs(n - [x, y, zoom][i]) < [1, 1, 0.001][i]); }"""
    )
    before = state(page)
    reopen(page, "o=*", "f=output", "w=cw")
    after = state(page)
    for field in ("boxCount", "colour", "hidden"):
        assert after[field] == before[field], field
    assert after["view"] == pytest.approx(before["view"], rel=1e-3)
    assert before["boxCount"] > 2000
    page.locator(".menu summary").click()
    expect(page.get_by_label("Edge width by size")).to_be_checked()


def test_of_several_files_the_first_is_shown_or_the_one_in_the_url(page: Page, serve: Serve) -> None:
    address = serve(DATA / "torch" / "net.pt2", JITTOR / "simple_model.pkl", DATA / "torch" / "branches.pt2")
    ready(page, address)
    assert state(page)["capture"] == 0
    expect(page.locator(".tab")).to_have_count(3)
    page.locator(".tab", has_text="simple_model").click()
    page.evaluate("opscope.idle()")
    page.evaluate("opscope.select(['model/linear1'])")
    before = state(page)
    reopen(page, "c=1", "sel=")
    after = state(page)
    assert (after["capture"], after["selection"]) == (1, before["selection"])
    assert [capture["name"] for capture in after["captures"]] == ["net.pt2", "simple_model.pkl", "branches.pt2"]


def test_a_file_that_cannot_be_read_says_why(page: Page, simple: str) -> None:
    ready(page, simple)
    page.evaluate(DROP, ["weights.bin", [1, 2, 3]])
    note = page.locator(".note.bad")
    expect(note).to_contain_text("weights.bin: this page opens .opscope files")
    page.locator("canvas.graph").focus()
    press(page, "Escape")
    expect(note).to_have_count(0)


def test_help_has_the_focus_until_it_closes(page: Page, simple: str) -> None:
    ready(page, simple)
    page.locator("canvas.graph").focus()
    press(page, "?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("matmul -> * -> softmax")
    expect(dialog.get_by_role("button")).to_be_focused()
    press(page, "t", "E")
    assert state(page)["theme"] == "light"
    press(page, "?")
    expect(dialog).to_have_count(0)
    press(page, "t")
    assert state(page)["theme"] == "dark"


def test_rows_and_lines_by_the_keys(page: Page, simple: str) -> None:
    ready(page, simple)
    page.get_by_role("tab", name="Table").click()
    page.evaluate("opscope.idle()")
    page.locator(".low .virtual").focus()
    press(page, "ArrowDown", "ArrowDown")
    assert state(page)["selection"] == [1]
    page.evaluate("opscope.find('op:multiply phase:forward')")
    expect(page.locator(".table-tools")).to_contain_text("2 of 123 operators")
    page.get_by_role("listbox", name="results").focus()
    press(page, "ArrowDown")
    assert state(page)["selection"] == [page.evaluate("opscope.find('op:multiply phase:forward')")[0]]
    page.get_by_role("tab", name="Source").click()
    page.evaluate("opscope.idle()")
    page.locator(".low .code").focus()
    press(page, "ArrowDown")
    first = page.locator(".code-line.current").get_attribute("data-line")
    press(page, "ArrowDown")
    second = page.locator(".code-line.current").get_attribute("data-line")
    assert int(second or 0) > int(first or 0) > 0
    assert state(page)["related"]


def test_chinese_is_drawn_too(page: Page, simple: str) -> None:
    ready(page, simple)
    page.get_by_role("button", name="中文").click()
    page.evaluate("opscope.idle()")
    titles = {box["title"] for box in state(page)["boxes"]}
    assert {"前向", "反向", "优化器"} <= titles
    expect(page.locator(".tree-row").first).to_contain_text("其他")
    page.get_by_role("tab", name="表格").click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".virtual .table-row").first).to_contain_text("初始化")
    page.evaluate("opscope.select(['forward:model/linear1'])")
    expect(page.locator(".right")).to_contain_text("读取字节")
    words = page.locator("#opscope").inner_text()
    for english in ("Modules", "Expand", "Copy", "Inputs", "Figures", "operators"):
        assert english not in words, english
    page.get_by_role("button", name="EN", exact=True).click()
    page.evaluate("opscope.idle()")
    assert "forward" in {box["title"] for box in state(page)["boxes"]}


@pytest.mark.parametrize(("width", "height"), [(1000, 700), (700, 900)])
def test_a_narrow_window_has_everything(page: Page, simple: str, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    ready(page, simple)
    for button in page.locator(".toolbar button, .panel-tabs button, .chips button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width, button.inner_text()
    canvas = page.locator("canvas.graph").bounding_box()
    assert canvas is not None
    assert canvas["width"] * canvas["height"] > 0.25 * width * height


def test_every_panel_and_button_has_a_name(page: Page, simple: str) -> None:
    """For screen readers; the graph is named after the box that the arrow keys have led to."""
    ready(page, simple)
    unnamed = page.evaluate(
        """() => {
            const kinds = 'button, select, input, aside, canvas.graph, [role=tablist], [role=tree]';
            const words = (e) => e.textContent.trim() || e.labels?.[0]?.textContent.trim();
            const unnamed = (e) => !e.getAttribute('aria-label') && !words(e);
            return [...document.querySelectorAll(kinds)].filter(unnamed).map((e) => e.outerHTML.slice(0, 80));
        }"""
    )
    assert unnamed == []
    page.evaluate("opscope.select(['forward:model/linear1'])")
    page.locator("canvas.graph").focus()
    press(page, "ArrowDown")
    expect(page.locator("canvas.graph")).to_have_attribute("aria-label", "Graph: relu1")


def test_kernels_far_down_are_asked_for(page: Page, resnet: str) -> None:
    """Rows come by the hundred: a list of a million must not stop the page."""
    ready(page, resnet)
    page.get_by_role("tab", name="Kernels").click()
    page.evaluate("opscope.kernel(750)")
    expect(page.locator(".kernel-row.selected .count")).to_have_text("750")
