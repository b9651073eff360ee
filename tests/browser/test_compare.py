"""Two graphs beside each other under one camera: dropped files, open tabs, and stages of a compiler."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from steps import ready, state

import opscope
from opscope.ir import Capture as IrCapture
from opscope.ir import GraphBuilder, Origin, Pools, Stage

DATA = Path(__file__).parent.parent / "data"
DROP = """([text, name, alt]) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], name));
    const event = { dataTransfer, altKey: alt, bubbles: true, cancelable: true };
    document.getElementById('opscope').dispatchEvent(new DragEvent('drop', event));
}"""


def network(other: bool) -> IrCapture:
    """A chain of blocks; the other one has two other activations, and a stem."""
    b = GraphBuilder(Pools())
    kind = b.pools.type("float32", (4, 8))
    last = b.input(kind, name="x")
    net = b.pools.scope(0, "net", "Net")
    if other:
        weight = b.value(b.pools.type("float32", (8, 8)), name="stem", role="parameter")
        made = b.node("aten.mm", [last, weight], scope=b.pools.scope(net, "stem", "Stem"), phase="forward")
        last = b.output(made, kind)
    for i in range(4):
        block = b.pools.scope(net, f"block{i}", "Block")
        weight = b.value(b.pools.type("float32", (8, 8)), name=f"w{i}", role="parameter")
        made = b.node("aten.linear", [last, weight], scope=b.pools.scope(block, "fc", "Linear"), phase="forward")
        hidden = b.output(made, kind)
        name = "aten.silu" if other and i in (1, 2) else "aten.relu"
        step = b.node(name, [hidden], scope=b.pools.scope(block, "act", "Act"), phase="forward")
        last = b.output(step, kind)
    b.outputs.append(last)
    return IrCapture(b.pools, [Stage("graph", b.freeze())], origin=Origin("test", "torch"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    for name, capture in {"one": network(False), "other": network(True)}.items():
        opscope.Capture.of(capture).save(folder / f"{name}.opscope")
        opscope.Capture.of(capture).save(folder / f"{name}.html")
    return folder


def drop(page: Page, path: Path, alt: bool) -> None:
    page.evaluate(DROP, [base64.b64encode(path.read_bytes()).decode(), path.name, alt])
    page.evaluate("opscope.idle()")


def check_comparison(page: Page) -> None:
    expect(page.locator(".before-pane")).to_be_visible()
    page.evaluate("opscope.idle()")
    now = state(page)
    assert now["compare"] == "split"
    assert now["stages"][1]["changes"] == {"changed": 2, "added": 1}
    before = now["before"]
    assert before["level"] == before["pairs"] > 5  # every counterpart stands in one row
    assert [(one["kind"], one["sizes"]) for one in before["ribbons"]] == [("changed", [1, 1])] * 2
    assert before["view"]["zoom"] == now["view"]["zoom"]
    assert before["view"]["y"] == now["view"]["y"]
    expect(page.locator(".strip")).to_contain_text("parameters")
    expect(page.locator(".strip")).to_contain_text("256 → 320+64")
    page.locator(".left [data-key=changes]").click()
    page.evaluate("opscope.idle()")
    rows = page.locator(".change-row")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("net/block1/act, net/block2/act")
    expect(rows.first).to_contain_text("×2")
    expect(rows.first).to_contain_text("operator: aten.relu → aten.silu")
    expect(rows.nth(1)).to_contain_text("net/stem")


def test_two_dropped_files_are_compared_without_a_server(page: Page, files: Path) -> None:
    ready(page, (files / "one.html").as_uri())
    drop(page, files / "one.opscope", alt=False)
    assert [one["name"] for one in state(page)["captures"]] == ["one", "one.opscope"]
    drop(page, files / "other.opscope", alt=True)
    check_comparison(page)
    # Equal changes together: one selects all, the arrow keys open them.
    page.locator(".change-row").first.click()
    page.evaluate("opscope.idle()")
    assert len(state(page)["selection"]) == 2
    assert len(state(page)["before"]["selection"]) == 2
    page.locator(".left .virtual").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".change-row.inner")).to_have_count(2)


def test_open_tabs_are_compared_by_the_server(page: Page, files: Path, serve: Callable[..., str]) -> None:
    ready(page, serve(files / "one.opscope", files / "other.opscope"))
    page.locator(".toolbar [data-key=compare]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("dialog.sheet")).to_be_visible()
    assert page.evaluate("document.querySelector('dialog.sheet').contains(document.activeElement)")
    texts = page.locator("dialog select option:checked").all_inner_texts()
    assert texts == ["one.opscope", "other.opscope"]
    page.locator("dialog button[type=submit]").focus()
    page.keyboard.press("Enter")
    check_comparison(page)
    assert [one["name"] for one in state(page)["captures"]][2] == "one.opscope ↔ other.opscope"
    # The server has it now, so that the page can be loaded again.
    ready(page, page.url.split("#")[0])
    assert len(state(page)["captures"]) == 3


def test_moving_one_drawing_moves_the_other_and_opening_opens_both(page: Page, files: Path) -> None:
    ready(page, (files / "one.html").as_uri())
    drop(page, files / "other.opscope", alt=True)
    page.evaluate("opscope.view(120, 300, 1.1)")
    now = state(page)
    assert (now["before"]["view"]["zoom"], now["before"]["view"]["y"]) == (1.1, 300)
    canvas = page.locator(".before-pane canvas").bounding_box()
    assert canvas is not None
    page.mouse.move(canvas["x"] + 200, canvas["y"] + 200)
    page.mouse.wheel(0, 120)
    page.wait_for_function("opscope.state().view.zoom !== 1.1 || opscope.state().view.y !== 300")
    page.evaluate("opscope.idle()")
    moved = state(page)
    assert moved["before"]["view"]["zoom"] == moved["view"]["zoom"]
    assert moved["before"]["view"]["y"] == moved["view"]["y"]
    count = moved["before"]["boxCount"]
    page.evaluate("opscope.collapse('net/block0')")
    both = state(page)
    assert both["before"]["boxCount"] == count - 2
    assert both["before"]["level"] == both["before"]["pairs"]


def test_fusions_have_numbers_and_ribbons(page: Page, tmp_path: Path) -> None:
    out = tmp_path / "passes.html"
    opscope.open(DATA / "hidet" / "0.2.1" / "outs").save(out)
    ready(page, out.as_uri())
    page.evaluate("opscope.stage(5)")
    page.evaluate("opscope.compare('split')")
    ribbons: list[dict[str, Any]] = state(page)["before"]["ribbons"]
    assert [one["number"] for one in ribbons] == [1, 2, 3, 4, 5, 6, 7]
    assert {one["kind"] for one in ribbons} == {"fused"}
    assert all(one["sizes"][0] > 1 and one["sizes"][1] == 1 for one in ribbons)
    painted = page.evaluate(
        """() => { const one = document.querySelector('.ribbons');
            return one.getContext('2d').getImageData(0, 0, one.width, one.height).data.some((byte) => byte > 0); }"""
    )
    assert painted
