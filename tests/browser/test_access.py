"""The page for everyone: nothing that axe finds in any panel or sheet, light and dark; headings; a narrow window."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from steps import ready
from test_health import recording

import opscope

TESTS = Path(__file__).parent.parent
AXE = Path(os.environ.get("OPSCOPE_AXE", TESTS.parent / "viewer/node_modules/axe-core/axe.min.js"))
RUN = """async () => {
    const found = await axe.run(document, { resultTypes: ['violations'] });
    const why = ({ html, any, all, none }) => [html.slice(0, 200), [...any, ...all, ...none].map((one) => one.message)];
    return found.violations.map(({ id, impact, nodes }) => [id, impact, nodes.slice(0, 3).map(why)]);
}"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("access")
    found: dict[str, str] = {}
    for name, path in {
        "train": TESTS / "data/jittor/simple_model_train.pkl",
        "passes": TESTS / "data/page/passes.opscope",
        "breaks": TESTS / "data/page/breaks.opscope",
        "times": TESTS / "data/page/times_torch.opscope",
        "values": TESTS / "data/measured/torch.opscope",
        "health": recording(folder / "nan.opscope"),
        "compiled": TESTS / "data/torch/trace/loss-h200.log.gz",
    }.items():
        opscope.open(path, sources=[path.parent]).save(folder / f"{name}.html")
        found[name] = (folder / f"{name}.html").as_uri()
    return found


def axe(page: Page) -> list[Any]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))  # as a script of its own, which the policy of the page forbids
    page.evaluate("opscope.idle()")
    return page.evaluate(RUN)


def low_tabs(page: Page) -> list[str]:
    return page.locator(".low-tabs button").evaluate_all("all => all.map((one) => one.dataset.key)")


@pytest.mark.skipif(not AXE.is_file(), reason=f"{AXE} is not installed: npm install in viewer/")
@pytest.mark.parametrize("name", ["train", "passes", "breaks", "times", "values", "health", "compiled"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_panel(page: Page, pages: dict[str, str], name: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    ready(page, pages[name])
    found = {"first": axe(page)}
    page.evaluate("opscope.select(['#1'])")
    found["details"] = axe(page)
    for tab in page.locator(".left .panel-tabs button").all():
        tab.click()
        found[f"left {tab.get_attribute('data-key')}"] = axe(page)
    for key in low_tabs(page):
        page.locator(f".low-tabs [data-key='{key}']").click()
        found[key] = axe(page)
        for inner in page.locator(".low-body [role=tab], .low-body [role=radio]").all():
            inner.click()
            found[f"{key} {inner.inner_text()}"] = axe(page)
    if name == "passes":
        for how in ("overlay", "split"):
            page.evaluate(f"opscope.stage(5), opscope.compare('{how}')")
            found[how] = axe(page)
    for sheet in ("export", "compare", "help", "palette"):
        page.locator(f".toolbar [data-key={sheet}]").click()
        found[sheet] = axe(page)
        page.keyboard.press("Escape")
    page.locator(".toolbar [data-key=play]").click()
    found["play"] = axe(page)
    assert {place: wrong for place, wrong in found.items() if wrong} == {}


@pytest.mark.skipif(not AXE.is_file(), reason=f"{AXE} is not installed: npm install in viewer/")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_opens_for_a_while(page: Page, pages: dict[str, str], scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    ready(page, pages["train"])
    found: dict[str, list[Any]] = {}
    page.locator(".low-tabs [data-key=cost]").click()
    for view in page.locator(".low-body [role=radio]").all():
        view.click()
        found[f"cost {view.inner_text()}"] = axe(page)
    page.locator(".search").fill("linear ph")
    page.locator(".offers [role=option]").first.wait_for()
    found["a search that is relaxed, with offers"] = axe(page)
    page.evaluate("opscope.select(['forward:model/linear1', 'forward:model/linear2'])")
    found["two selected"] = axe(page)
    page.locator("canvas.graph").focus()
    page.keyboard.press("b")
    found["bookmarks"] = axe(page)
    page.keyboard.press("u")
    found["followed data"] = axe(page)
    page.keyboard.press("Shift+F10")
    found["menu of a box"] = axe(page)
    page.keyboard.press("Escape")
    page.locator("select.tool").select_option("MACs")
    found["colours"] = axe(page)
    page.locator(".toolbar [data-key=language]").click()
    found["Chinese"] = axe(page)
    page.locator("canvas.graph").focus()
    page.keyboard.press("i")
    found["isolated"] = axe(page)
    assert {place: wrong for place, wrong in found.items() if wrong} == {}
