"""How one works with the page: the way back, commands, menus, bookmarks, panes, one's own figures, the search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from steps import ready, reopen, state

import opscope

DATA = Path(__file__).parent.parent / "data" / "page"
DROP = """([name, text]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], name));
    const event = { dataTransfer, bubbles: true, cancelable: true };
    document.getElementById('opscope').dispatchEvent(new DragEvent('drop', event));
}"""


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("habits") / "step.html"
    opscope.open(DATA / "step.opscope").save(out)
    return out.as_uri()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
    page.evaluate("opscope.idle()")


def look(page: Page) -> dict[str, Any]:
    now = state(page)
    view = {key: round(value, 3) for key, value in now["view"].items()}
    lit = page.locator(".lit-note").inner_text()
    return {key: now[key] for key in ("capture", "boxCount", "selection", "hidden")} | {"view": view, "lit": lit}


def select(page: Page, path: str) -> None:
    page.evaluate(f"opscope.select(['{path}'])")
    page.locator("canvas.graph").focus()


def drop(page: Page, name: str, text: str) -> None:
    page.evaluate(DROP, [name, text])
    page.evaluate("opscope.idle()")


def search(page: Page, text: str) -> Locator:
    page.locator(".search").fill(text)
    page.evaluate("opscope.idle()")
    return page.locator(".left")


def test_every_action_has_a_way_back(page: Page, step: str) -> None:
    ready(page, step)
    select(page, "forward:net/first")
    for name, act in {
        "expand all": lambda: press(page, "E"),
        "collapse all": lambda: press(page, "C"),
        "one level": lambda: press(page, "]"),
        "open": lambda: press(page, "Enter"),
        "neighbour": lambda: press(page, "ArrowDown"),
        "follow": lambda: press(page, "u"),
        "hide": lambda: press(page, "h"),
        "isolate": lambda: press(page, "i"),
        "direction": lambda: press(page, "d"),
        "zoom": lambda: press(page, "+"),
        "phase": lambda: page.locator(".chips [data-key=backward]").click(),
        "clear": lambda: press(page, "Escape"),
    }.items():
        before = look(page)
        act()
        page.evaluate("opscope.idle()")
        after = look(page)
        assert after != before, name
        press(page, "Control+z")
        assert look(page) == before, name
        press(page, "Control+Shift+Z")
        assert look(page) == after, name
        page.go_back()  # the browser's own way is the same
        page.evaluate("opscope.idle()")
        assert look(page) == before, name
        page.locator("canvas.graph").focus()
    # In a menu of ticks, too.
    before = look(page)
    page.locator(".menu summary").click()
    page.get_by_label("Parameters and constants as boxes").check()
    page.evaluate("opscope.idle()")
    assert look(page) != before
    press(page, "Control+z")
    assert look(page) == before
    expect(page.get_by_label("Parameters and constants as boxes")).not_to_be_checked()


def test_the_toast_of_a_large_step_undoes_it(page: Page, step: str) -> None:
    ready(page, step)
    before = look(page)
    select(page, "forward:net/first")
    press(page, "h")
    page.locator(".note button", has_text="Undo").click()
    page.evaluate("opscope.idle()")
    assert look(page)["boxCount"] == before["boxCount"]


def test_tab_reaches_every_control_and_leaves_none(page: Page, step: str) -> None:
    ready(page, step)
    select(page, "forward:net/first")
    page.locator(".low-tabs [data-key=cost]").click()
    page.evaluate("opscope.idle()")
    wanted = page.evaluate(
        """() => {
            const all = [...document.querySelectorAll('button, select, input, summary, a[href], [tabindex="0"]')];
            window.wanted = all.filter((one) => one.tabIndex >= 0 && one.checkVisibility() && !one.disabled);
            document.activeElement.blur();
            return window.wanted.length;
        }"""
    )
    assert wanted > 40
    seen: set[int] = set()
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("window.wanted.indexOf(document.activeElement)"))
    missed = page.evaluate(
        "(seen) => wanted.filter((_, i) => !seen.includes(i)).map((one) => one.outerHTML)", list(seen)
    )
    assert missed == []


def test_a_command_by_its_name_in_either_language(page: Page, step: str) -> None:
    ready(page, step)
    theme = page.locator(".toolbar [data-key=theme]")
    theme.focus()
    press(page, "Control+k")
    page.keyboard.type("colour macs")
    press(page, "Enter")
    assert state(page)["colour"] == "MACs"
    expect(theme).to_be_focused()
    press(page, "Control+k")
    page.keyboard.type("全部展开")
    press(page, "ArrowDown", "ArrowUp", "Enter")
    assert state(page)["boxCount"] > 25
    press(page, "Control+k")
    page.keyboard.type("no such thing")
    expect(page.locator(".palette")).to_contain_text("No such command")
    press(page, "Escape")
    expect(page.locator(".palette")).to_have_count(0)


def test_the_menu_of_a_box_by_keys(page: Page, step: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ready(page, step)
    select(page, "forward:net/first")
    press(page, "Shift+F10")
    menu = page.get_by_role("menu")
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("c")
    expect(menu.get_by_role("menuitem", name="Copy path")).to_be_focused()
    press(page, "Enter")
    expect(menu).to_have_count(0)
    expect(page.locator("canvas.graph")).to_be_focused()
    assert page.evaluate("navigator.clipboard.readText()") == "net/first"
    press(page, "Shift+F10")
    menu.get_by_role("menuitem", name="Find the same class").click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".left .module-row")).to_have_count(2)  # both are Linear
    expect(page.locator(".search")).to_have_value('class:"Linear"')


def test_a_part_by_itself_and_a_part_left_out(page: Page, step: str) -> None:
    ready(page, step)
    all_of_it = state(page)["boxCount"]
    select(page, "forward:net/first")
    press(page, "i")
    now = state(page)
    assert [one["name"] for one in now["captures"]] == ["step", "first"]
    titles = [box["title"] for box in now["boxes"]]
    assert "addmm" in titles  # what stands alone is open
    assert "second" not in titles
    # Figures are those of the part, and nothing says the whole's.
    expect(page.locator(".right")).to_contain_text("first")
    expect(page.locator(".chips .phase").first).to_have_text("forward")
    page.locator(".tab-close").click()
    page.evaluate("opscope.idle()")
    assert state(page)["boxCount"] == all_of_it
    # Hidden with what is open in it, a phase comes back as it was.
    chip = page.locator(".chips [data-key=backward]")
    chip.click()
    page.evaluate("opscope.idle()")
    assert state(page)["boxCount"] < all_of_it
    chip.click()
    page.evaluate("opscope.idle()")
    assert state(page)["boxCount"] == all_of_it


def test_what_is_selected_and_hidden_says_where_it_is(page: Page, step: str) -> None:
    ready(page, step)
    page.locator(".chips [data-key=backward]").click()
    page.evaluate("opscope.idle()")
    page.evaluate("opscope.select(['#25'])")  # sigmoid_backward
    note = page.locator(".lit-note")
    expect(note).to_contain_text("1 operator is hidden in backward")
    note.get_by_role("button", name="Show").click()
    page.evaluate("opscope.idle()")
    assert 25 in [box["item"] for box in state(page)["boxes"]]
    expect(note).to_be_empty()


def test_several_that_are_selected_are_summed(page: Page, step: str) -> None:
    ready(page, step)
    figure = page.locator(".right .figures dd").first

    def macs(*paths: str) -> float:
        page.evaluate(f"opscope.select({[*paths]})")
        page.evaluate("opscope.idle()")
        return float(figure.inner_text().split()[0])

    one, other = macs("forward:net/first"), macs("forward:net/second")
    assert macs("forward:net/first", "forward:net/second") == pytest.approx(one + other)
    # What is in another one that is selected counts once.
    both = macs("forward:net", "forward:net/second")
    assert both == pytest.approx(one + other)
    expect(page.locator(".right h2").first).to_contain_text("2 selected")
    expect(figure).to_be_visible()


def test_bookmarks_lead_back_and_are_remembered(page: Page, step: str) -> None:
    ready(page, step)
    page.evaluate("opscope.expandAll()")
    select(page, "forward:net/second")
    press(page, "b")
    marked = look(page)
    press(page, "C", "Escape", "0")
    assert look(page)["boxCount"] < marked["boxCount"]
    row = page.locator(".mark-row button").first
    expect(row).to_have_text("second")
    row.focus()
    press(page, "F2")
    page.keyboard.type("mine")
    press(page, "Enter")
    expect(row).to_have_text("mine")
    reopen(page)
    page.locator(".left [data-key=bookmarks]").click()
    row.click()
    page.evaluate("opscope.idle()")
    now = look(page)
    assert {key: now[key] for key in ("boxCount", "selection")} == {
        key: marked[key] for key in ("boxCount", "selection")
    }
    page.locator(".mark-row .tab-close").click()
    expect(page.locator(".left [data-key=bookmarks]")).to_have_count(0)


def test_panes_are_resized_by_keys_folded_and_remembered(page: Page, step: str) -> None:
    ready(page, step)
    width = "document.querySelector('.left').getBoundingClientRect().width"
    at_first = page.evaluate(width)
    splitter = page.locator("[data-key='splitter left']")
    splitter.focus()
    press(page, "ArrowRight", "ArrowRight")
    wider = page.evaluate(width)
    assert wider > at_first + 40
    reopen(page)
    assert page.evaluate(width) == wider
    page.locator("[data-key='splitter right']").dblclick()
    expect(page.locator(".right")).to_be_hidden()
    page.locator("canvas.graph").focus()
    press(page, "\\")
    expect(page.locator(".left")).to_be_hidden()
    press(page, "Escape")
    expect(page.locator(".left")).to_be_visible()
    expect(page.locator(".right")).to_be_hidden()


def test_figures_of_ones_own(page: Page, step: str) -> None:
    ready(page, step)
    drop(page, "mine.csv", "module,latency\nnet/first,3\nnet/second,5\nnowhere,1\n")
    assert state(page)["colour"] == "latency"
    expect(page.locator(".legend")).to_contain_text("latency")
    expect(page.locator(".right")).to_contain_text("2 of 3 rows joined as latency; no operator or module is nowhere")
    found = page.evaluate("opscope.find('latency:>4')")
    assert found
    assert found == page.evaluate("opscope.find('latency:5')")
    select(page, "forward:net")
    expect(page.locator(".right .figures")).to_contain_text("8")  # rolled up
    page.locator(".low-tabs [data-key=table]").click()
    page.get_by_role("columnheader", name="latency").locator("button").click()
    expect(page.get_by_role("columnheader", name="latency")).to_have_attribute("aria-sort", "descending")
    drop(page, "nodes.json", '{"step": {"name": "wrong", "results": {"6": {"value": 0.5}}}}')
    assert "wrong" in state(page)["colour"]


def test_a_search_relaxes_completes_and_has_modules_first(page: Page, step: str) -> None:
    ready(page, step)
    left = search(page, "addmm layer first")
    expect(left).to_contain_text("Nothing has all of this. Found without layer: addmm first")
    expect(left.locator(".result-row")).to_have_count(1)
    expect(search(page, "no such words")).to_contain_text("No results")
    assert page.evaluate("opscope.find('addmm layer first')") == []  # scripts get what they ask for
    left = search(page, "linear")
    expect(left.locator(".module-row")).to_have_count(2)
    left.locator(".module-row").first.click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".right h2")).to_have_text("first")
    # Fields, then their values, by keys.
    box = page.locator(".search")
    box.fill("sigmoid ph")
    offers = page.locator(".offers [role=option]")
    expect(offers.first).to_have_text("phase:")
    box.press("ArrowDown")
    box.press("Tab")
    expect(box).to_have_value("sigmoid phase:")
    expect(offers.filter(has_text="phase:backward")).to_be_visible()
    offers.filter(has_text="phase:backward").click()
    page.evaluate("opscope.idle()")
    expect(box).to_have_value("sigmoid phase:backward")
    expect(left.locator(".result-row")).to_have_count(1)
    # Escape once; what was searched for is offered again.
    box.press("Escape")
    expect(box).to_have_value("")
    expect(page.locator(".offers")).to_be_hidden()
    box.focus()
    expect(offers.first).to_have_text("sigmoid phase:backward")


def test_an_edge_is_a_tensor(page: Page, step: str) -> None:
    ready(page, step)
    now = state(page)
    box = next(one for one in now["boxes"] if one["title"] == "sigmoid")
    canvas = page.locator("canvas.graph").bounding_box()
    assert canvas is not None
    view = now["view"]
    x = canvas["x"] + canvas["width"] / 2 + (box["x"] + box["width"] / 2 - view["x"]) * view["zoom"]
    y = canvas["y"] + canvas["height"] / 2 + (box["y"] + box["height"] + 8 - view["y"]) * view["zoom"]
    page.mouse.click(x, y)
    page.evaluate("opscope.idle()")
    right = page.locator(".right")
    expect(right).to_contain_text("Made by")
    expect(right).to_contain_text("float32")
    expect(right).to_contain_text("alive during")
    assert state(page)["related"]  # both ends are lit
