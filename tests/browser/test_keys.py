"""The page by keyboard: Enter and Space press every control, the focus stays where it is, tips and menus go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from steps import ready

import opscope

DATA = Path(__file__).parent.parent / "data"
JITTOR = DATA / "jittor"
CONTROLS = "button:visible, summary:visible, a:visible, [role=tab]:visible"

# Says which control a key clicked, and lets nothing else come of it.
ONLY_SAY = """() => addEventListener('click', (event) => {
    window.clicked.push(event.target.closest('button, summary, a, [role=tab]'));
    event.preventDefault();
    event.stopImmediatePropagation();
}, true)"""


@pytest.fixture(scope="module")
def simple(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("keys") / "simple.html"
    opscope.open(JITTOR / "simple_model_train.pkl", sources=[JITTOR]).save(out)
    return out.as_uri()


@pytest.fixture(scope="module")
def passes(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("keys") / "passes.html"
    opscope.open(DATA / "page" / "passes.opscope").save(out)
    return out.as_uri()


def state(page: Page) -> dict[str, Any]:
    return page.evaluate("opscope.state()")


def focused(page: Page) -> str | None:
    return page.evaluate("document.activeElement.getAttribute('data-key')")


def press(page: Page, key: str) -> None:
    page.keyboard.press(key)
    page.evaluate("opscope.idle()")


@pytest.mark.parametrize("tab", ["Source", "Kernel code", "Cost", "Table"])
def test_enter_and_space_work_every_control(page: Page, simple: str, tab: str) -> None:
    ready(page, simple)
    page.evaluate("opscope.select(['forward:model/linear1'])")
    page.get_by_role("tab", name=tab, exact=True).click()
    page.evaluate("opscope.idle()")
    check_controls(page, least=30)


def test_enter_and_space_work_every_control_of_stages(page: Page, passes: str) -> None:
    ready(page, passes)
    page.evaluate("opscope.stage(2)")
    page.get_by_role("tab", name="Changes", exact=True).click()
    page.get_by_role("tab", name="IR", exact=True).click()
    page.evaluate("opscope.idle()")
    check_controls(page, least=30)


def check_controls(page: Page, least: int) -> None:
    page.evaluate(f"({ONLY_SAY})()")
    controls = page.locator(CONTROLS).all()
    assert len(controls) >= least
    for control in controls:
        for key in ("Enter", *([] if control.evaluate("one => one.tagName === 'A'") else [" "])):
            page.evaluate("window.clicked = []")
            control.focus()
            page.keyboard.press(key)
            clicked = control.evaluate("one => window.clicked.length === 1 && window.clicked[0] === one")
            assert clicked, (key, control.evaluate("one => one.outerHTML"))


def test_the_focus_stays_on_what_was_pressed(page: Page, simple: str) -> None:
    ready(page, simple)
    page.evaluate("opscope.select(['forward:model/linear1'])")  # what Enter would open, were it not on a control
    boxes = state(page)["boxCount"]
    for name in ("language", "language", "theme", "direction", "more"):
        page.locator(f".toolbar [data-key={name}]").focus()
        press(page, "Enter")
        assert focused(page) == name
    assert state(page)["theme"] == "dark"
    page.locator(".chips [data-key=backward]").focus()
    press(page, " ")
    assert focused(page) == "backward"
    assert state(page)["hidden"] == ["init", "backward"]
    press(page, "Enter")
    assert (focused(page), state(page)["hidden"]) == ("backward", ["init"])
    for name in ("table", "cost", "source"):
        page.locator(f".low-tabs [data-key={name}]").focus()
        press(page, "Enter")
        assert (focused(page), state(page)["tab"]) == (name, name)
    assert boxes > 0
    # What is not there any more leaves the focus in its place.
    page.locator(".right button.ref").first.focus()
    press(page, "Enter")
    assert page.evaluate("document.querySelector('.right').contains(document.activeElement)")


def test_the_view_menu_keeps_the_focus_and_closes_by_escape(page: Page, simple: str) -> None:
    ready(page, simple)
    page.locator(".menu summary").focus()
    press(page, "Enter")
    expect(page.locator(".menu-body")).to_be_visible()
    box = page.get_by_label("Shapes on edges")
    box.focus()
    press(page, " ")
    expect(box).to_be_checked()
    expect(box).to_be_focused()
    box = page.get_by_label("Parameters and constants as boxes")
    box.focus()
    press(page, " ")
    expect(box).to_be_checked()
    expect(box).to_be_focused()
    expect(page.locator(".menu-body")).to_be_visible()
    press(page, "Escape")
    expect(page.locator(".menu-body")).to_be_hidden()


def test_the_view_menu_cannot_come_back(page: Page, simple: str) -> None:
    """Escape right after a change, at any moment of the answer to it, on a thread that is busy then."""
    ready(page, simple)
    page.evaluate(
        """async () => {
            const menu = document.querySelector('.menu');
            const tasks = (n) => new Promise((done) => {
                const { port1, port2 } = new MessageChannel();
                port1.onmessage = () => (n-- > 0 ? port2.postMessage(0) : (port1.close(), done()));
                port2.postMessage(0);
            });
            for (let moment = 0; moment < 40; moment++) {
                menu.querySelector('summary').click();
                if (!menu.open) throw new Error(`not open at ${moment}`);
                menu.querySelectorAll('input')[moment % 3].click();
                await tasks(moment);
                document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
                for (let i = 0, until = Date.now() + 30; Date.now() < until; i++);
                await opscope.idle();
                if (menu.open || !document.contains(menu)) throw new Error(`open again at ${moment}`);
            }
        }"""
    )


def test_a_tip_goes_when_its_box_does(page: Page, simple: str) -> None:
    ready(page, simple)
    page.evaluate("opscope.expandAll()")
    tip = page.locator(".tip.on")
    boxes = [box for box in state(page)["boxes"] if box["title"] == "ternary"]
    canvas = page.locator("canvas.graph").bounding_box()
    assert canvas is not None

    def point() -> None:
        view = state(page)["view"]
        x = canvas["x"] + canvas["width"] / 2 + (boxes[0]["x"] + boxes[0]["width"] / 2 - view["x"]) * view["zoom"]
        y = canvas["y"] + canvas["height"] / 2 + (boxes[0]["y"] + boxes[0]["height"] / 2 - view["y"]) * view["zoom"]
        page.mouse.move(x - 1, y)
        page.mouse.move(x, y)
        expect(tip).to_contain_text("ternary")

    point()
    press(page, "u")  # a key
    expect(tip).to_have_count(0)
    point()
    page.mouse.wheel(0, 120)  # the camera
    page.evaluate("opscope.idle()")
    expect(tip).to_have_count(0)
    point()
    page.evaluate("opscope.collapse('forward:model/linear1')")  # another layout
    expect(tip).to_have_count(0)
