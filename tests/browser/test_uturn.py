"""A training step as a U: rows, the View menu that changes it, what is hidden from it, headers that stay in view."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from steps import ready, reopen, state

import opscope

DATA = Path(__file__).parent.parent / "data"
IN_ROWS = "Backward in the rows of forward"


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("uturn") / "step.html"
    opscope.open(DATA / "page" / "step.opscope").save(out)
    return out.as_uri()


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("uturn") / "resnet.html"
    opscope.open(DATA / "jittor" / "resnet_train.pkl").save(out)
    return out.as_uri()


@pytest.mark.parametrize(("name", "losses"), [("step", ["loss"]), ("resnet", [])])
def test_a_training_step_is_a_u_that_can_be_read(
    page: Page, request: pytest.FixtureRequest, name: str, losses: list[str]
) -> None:
    ready(page, request.getfixturevalue(name))
    now = state(page)
    assert (now["layout"], now["backEdgeCount"], now["cutTitles"]) == ("u", 0, 0)
    assert now["rows"] >= 4
    assert now["titlePx"] >= 11
    assert [box["title"] for box in now["boxes"] if box["kind"] == 5] == losses
    at = {(box["title"], round(box["y"])) for box in now["boxes"] if box["kind"] in (0, 1)}
    assert len(at) < sum(box["kind"] in (0, 1) for box in now["boxes"])  # forward and backward of a module are level


def test_the_view_menu_sets_the_u_and_the_url_holds_it(page: Page, step: str) -> None:
    ready(page, step)
    assert state(page)["layout"] == "u"
    page.locator(".menu summary").click()
    page.get_by_label(IN_ROWS).uncheck()
    page.evaluate("opscope.idle()")
    assert state(page)["layout"] == "columns"
    assert state(page)["rows"] == 0
    reopen(page, "w=u")
    assert state(page)["layout"] == "columns"
    page.locator(".menu summary").click()
    page.get_by_label(IN_ROWS).check()
    page.evaluate("opscope.idle()")
    assert state(page)["layout"] == "u"


def test_the_view_menu_shows_what_is_passed_over(page: Page, step: str) -> None:
    ready(page, step)
    page.evaluate("opscope.expandAll()")
    before = state(page)["boxCount"]
    page.locator(".menu summary").click()
    page.get_by_label("Views and copies (19 ops").check()
    page.evaluate("opscope.idle()")
    assert state(page)["boxCount"] > before
    reopen(page, "w=v")
    assert state(page)["boxCount"] > before


def test_the_view_menu_has_only_lines_that_do_something(page: Page, step: str) -> None:
    ready(page, step)
    page.locator(".menu summary").click()
    expect(page.get_by_label(IN_ROWS)).to_be_visible()
    expect(page.get_by_label("integers and masks")).to_be_hidden()  # there are none


def test_headers_of_open_boxes_stay_in_view_and_lead_back(page: Page, resnet: str) -> None:
    ready(page, resnet)
    headers = page.locator(".sticky button")
    expect(headers).to_have_count(0)
    page.evaluate("opscope.select(['backward:resnet18/layer1'])")
    now = state(page)
    box = next(box for box in now["boxes"] if box["item"] == now["selection"][0])
    page.evaluate("([x, y]) => opscope.view(x, y, 1.5)", [box["x"] + box["width"] / 2, box["y"]])
    expect(headers).to_have_text(["backward", "resnet18"])
    headers.last.click()
    expect(headers).to_have_text(["backward"])
    page.evaluate("opscope.idle()")
    assert state(page)["selection"] == page.evaluate(
        "opscope.select(['backward:resnet18']).then(() => opscope.state().selection)"
    )
