"""A few states of the page as pictures: panels, boxes, colours and theme where they belong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pictures import Album
from playwright.sync_api import Browser, Page
from steps import ready

import opscope

DATA = Path(__file__).parent.parent / "data"
JITTOR = DATA / "jittor"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pictures")
    for name in ("simple_model_train", "resnet_train"):
        opscope.open(JITTOR / f"{name}.pkl", sources=[JITTOR]).save(folder / f"{name}.html")
    opscope.open(DATA / "page" / "joint.opscope").save(folder / "joint.html")
    return {path.stem: path.as_uri() for path in folder.iterdir()}


@pytest.fixture
def album(browser: Browser, overwrite: bool) -> Iterator[Album]:
    context = browser.new_context()
    yield Album(context.new_page(), overwrite)
    context.close()


def shot(page: Page) -> bytes:
    page.mouse.move(1, 1)  # nothing is hovered
    page.evaluate("opscope.idle()")
    return page.screenshot(animations="disabled", caret="hide")


def opened(page: Page, files: dict[str, str]) -> None:
    ready(page, files["simple_model_train"])


def matmul(page: Page, files: dict[str, str]) -> None:
    """An operator is selected: its backward is ringed, its details at the right, its kernel's code below."""
    opened(page, files)
    page.evaluate("opscope.expand('forward:model/linear1')")
    (row,) = page.evaluate("opscope.find('scope:model/linear1 phase:forward op:reduce.add')")
    page.evaluate(f"opscope.select(['#{row}'])")
    page.locator(".right section", has_text="Ran in kernels").locator("button").first.click()
    page.evaluate("opscope.idle()")


def dark(page: Page, files: dict[str, str]) -> None:
    """Dark, and data flows to the right."""
    opened(page, files)
    page.locator("canvas.graph").focus()
    page.keyboard.press("t")
    page.keyboard.press("d")


def resnet(page: Page, files: dict[str, str]) -> None:
    """A larger graph, coloured by a figure, with the table."""
    ready(page, files["resnet_train"])
    page.locator("select.tool").select_option("output size")
    page.get_by_role("tab", name="Table").click()


def listing(page: Page, files: dict[str, str]) -> None:
    """PyTorch's own code beside the graph, with the lines of a module; the stages in a row."""
    ready(page, files["joint"])
    page.get_by_role("tab", name="IR", exact=True).click()
    page.evaluate("opscope.idle()")
    page.evaluate("opscope.select(['backward:first'])")


State = Callable[[Page, dict[str, str]], None]
STATES: dict[str, State] = {"opened": opened, "matmul": matmul, "dark": dark, "resnet": resnet, "listing": listing}


@pytest.mark.parametrize("name", STATES)
def test_the_page_looks_as_it_did(page: Page, album: Album, files: dict[str, str], name: str) -> None:
    STATES[name](page, files)
    album.check(name, shot(page))


def test_no_state_is_taken_for_another(album: Album) -> None:
    for one in STATES:
        for other in STATES:
            assert album.apart(album.stored(one), album.stored(other)).small == (one == other), (one, other)


def hidden(selector: str) -> Callable[[Page], object]:
    # Not `display: none`: what is beside it would move too, which is easier to see.
    return lambda page: page.add_style_tag(content=f"{selector} {{ visibility: hidden !important }}")


DAMAGE: dict[str, Callable[[Page], object]] = {
    "no modules at the left": hidden(".left"),
    "no details at the right": hidden(".right"),
    "no code below": hidden(".low"),
    "no graph": hidden("canvas.graph"),
    "other theme": lambda page: (page.locator("canvas.graph").focus(), page.keyboard.press("t")),
    "a group closed": lambda page: page.evaluate("opscope.collapse('forward:model')"),
    "a phase hidden": lambda page: page.locator(".chip.phase", has_text="backward").click(),
    "a panel over another": lambda page: page.add_style_tag(
        content=".right { position: fixed !important; left: 300px; top: 100px; width: 400px; z-index: 9 }"
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_comparison_sees_damage(page: Page, album: Album, files: dict[str, str], damage: str) -> None:
    matmul(page, files)
    DAMAGE[damage](page)
    apart = album.compare("matmul", shot(page))
    assert not apart.small, f"{damage}: {apart}"


@pytest.mark.parametrize("font", ["monospace", "DejaVu Sans"])
def test_the_comparison_forgives_another_font(page: Page, album: Album, files: dict[str, str], font: str) -> None:
    matmul(page, files)
    page.add_style_tag(content=f"* {{ font-family: {font} !important }}")
    apart = album.compare("matmul", shot(page))
    assert apart.small, str(apart)
