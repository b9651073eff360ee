"""Stepping through the passes of a compiler: what each changed, on a real Hidet run; and two files compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from steps import ready, reopen, state

import opscope
from opscope.export.html import render_compared

HIDET = Path(__file__).parent.parent / "data" / "hidet" / "0.2.1"
COUNTS = [20, 20, 19, 19, 35, 7, 7]
QKV = "3 Matmul + 3 Add → Matmul + Add + 3 StridedSlice"


@pytest.fixture(scope="module")
def passes(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("pages") / "passes.html"
    opscope.open(HIDET / "outs").save(out)
    return out.as_uri()


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two files that were opened each by itself."""
    out = tmp_path_factory.mktemp("pages") / "compared.html"
    sides = []
    for name in ("1_FoldConstantPass", "2_SubgraphRewritePass"):
        capture = opscope.open(HIDET / "outs" / f"{name}.json")
        sides.append((capture, capture.stages[0], f"{name}.json"))
    out.write_text(render_compared(sides[0], sides[1], "compared"), encoding="utf-8")
    return out.as_uri()


def stage(page: Page, number: int) -> None:
    page.locator(f".stage[data-stage='{number}']").click()
    page.evaluate("opscope.idle()")


def changed(page: Page) -> list[tuple[str, str]]:
    return sorted((box["title"], box["change"]) for box in state(page)["boxes"] if box["change"])


def operators(page: Page) -> int:
    """Boxes that are operators, open or closed: not inputs."""
    return sum(box["kind"] != 3 for box in state(page)["boxes"])


def press(page: Page, key: str) -> None:
    page.keyboard.press(key)
    page.evaluate("opscope.idle()")


def test_arrow_keys_step_through_the_passes(page: Page, passes: str) -> None:
    ready(page, f"{passes}#w=vi")  # with views, and arithmetic on integers
    stages = state(page)["stages"]
    assert [entry["nodes"] for entry in stages] == COUNTS
    assert [entry["seconds"] for entry in stages][1:4] == [0.02, 0.027, 0.015]
    page.locator(".stage.on").focus()
    seen = [operators(page)]
    for _ in COUNTS[1:]:
        press(page, "ArrowRight")
        seen.append(operators(page))
    assert seen == COUNTS
    assert state(page)["stage"] == "6_EliminateBarrierPass"
    press(page, "ArrowRight")  # the last one
    press(page, "ArrowLeft")
    assert state(page)["stage"] == "5_FuseOperatorPass"
    page.locator("canvas.graph").focus()
    press(page, ",")
    assert state(page)["stage"] == "4_ResolveVariantPass"
    press(page, ".")
    assert state(page)["stage"] == "5_FuseOperatorPass"


def test_passes_that_changed_nothing_are_dimmed_and_can_be_hidden(page: Page, passes: str) -> None:
    ready(page, passes)
    dimmed = page.locator(".stage.unchanged .stage-name")
    assert dimmed.all_text_contents() == ["1_FoldConstantPass20", "3_AutoMixPrecisionPass19", "6_EliminateBarrierPass7"]
    expect(page.locator(".stage.unchanged").first).to_have_css("border-style", "dashed")
    rewrite = page.locator(".stage[data-stage='2']")
    expect(rewrite.locator(".change-badge")).to_have_text("R1")
    expect(rewrite.locator(".change-fill.rewritten")).to_have_count(1)
    expect(rewrite).to_contain_text("27.0 ms")
    page.get_by_role("button", name="Hide 3 unchanged").click()
    expect(page.locator(".stage")).to_have_count(4)
    page.locator(".stage.on").focus()
    press(page, "ArrowRight")  # steps over what is hidden
    assert state(page)["stage"] == "2_SubgraphRewritePass"


def test_changes_are_marked_listed_and_lead_to_their_operators(page: Page, passes: str) -> None:
    ready(page, passes)
    stage(page, 2)
    expected = [("Add", "rewritten"), ("Matmul", "rewritten"), *3 * [("StridedSlice", "rewritten")]]
    assert changed(page) == expected
    expect(page.locator(".legend")).to_have_text("Rrewritten")
    page.get_by_role("tab", name="Changes", exact=True).click()
    row = page.locator(".change-row")
    expect(row).to_have_count(1)
    expect(row).to_contain_text(QKV)
    expect(row).to_contain_text("6 → 5 · found by structure")
    row.click()
    page.evaluate("opscope.idle()")
    assert len(state(page)["selection"]) == 5
    expect(row).to_have_class("change-row selected lit")
    stage(page, 5)
    expect(row).to_have_count(7)
    expect(row.first).to_contain_text("Reshape Rearrange BatchMatmul Reshape → FusedBatchMatmul")
    assert {change for _, change in changed(page)} == {"fused"}
    page.locator(".change-filter [data-kind=fused]").click()
    expect(row).to_have_count(0)


def test_one_operator_is_followed_through_all_stages(page: Page, passes: str) -> None:
    ready(page, passes)
    softmax = page.evaluate("opscope.find('op:Softmax').then((n) => opscope.find('').then(() => n[0]))")
    page.evaluate(f"opscope.select(['#{softmax}'])")
    fates = page.locator(".through .fate")
    expect(fates).to_have_count(7)
    expect(fates.nth(5)).to_contain_text("FusedSoftmax")
    expect(fates.nth(5).locator(".change-badge")).to_have_text("F")
    for number in (1, 2, 3, 4):
        stage(page, number)
        expect(page.locator(".right h2")).to_have_text("Softmax")
    stage(page, 5)
    expect(page.locator(".right h2")).to_have_text("FusedSoftmax")
    assert operators(page) == 7  # it did not have to be opened
    fates.nth(0).click()
    page.evaluate("opscope.idle()")
    now = state(page)
    assert (now["stage"], softmax in now["selection"]) == ("0_Origin", True)


def test_what_is_looked_at_stays_in_its_place(page: Page, passes: str) -> None:
    ready(page, passes)
    stage(page, 1)

    def place(title: str) -> tuple[float, float]:
        now = state(page)
        box = next(box for box in now["boxes"] if box["title"] == title)
        x, y, zoom = now["view"]["x"], now["view"]["y"], now["view"]["zoom"]
        return ((box["x"] + box["width"] / 2 - x) * zoom, (box["y"] + box["height"] / 2 - y) * zoom)

    softmax = next(box for box in state(page)["boxes"] if box["title"] == "Softmax")
    middle = (softmax["x"] + softmax["width"] / 2, softmax["y"] + softmax["height"] / 2)
    page.evaluate(f"opscope.view({middle[0]}, {middle[1]}, 1.2)")
    for number in (2, 3, 4):
        stage(page, number)
        assert place("Softmax") == pytest.approx((0, 0), abs=1)


def test_what_is_gone_stands_beside_as_a_ghost(page: Page, passes: str) -> None:
    ready(page, passes)
    stage(page, 2)
    page.get_by_role("radio", name="Overlay").click()
    page.evaluate("opscope.idle()")
    ghosts = [title for title, change in changed(page) if change == "before: rewritten"]
    assert ghosts == ["Add", "Add", "Add", "Matmul", "Matmul", "Matmul"]
    expect(page.locator(".legend")).to_contain_text("before")
    item = next(box["item"] for box in state(page)["boxes"] if box["change"] == "before: rewritten")
    page.evaluate(f"opscope.select([{item}])")
    expect(page.locator(".through .fate").first).to_contain_text("0_Origin")
    reopen(page, "s=2", "m=overlay")
    assert (state(page)["stage"], state(page)["compare"]) == ("2_SubgraphRewritePass", "overlay")
    assert len(changed(page)) == 11
    page.get_by_role("radio", name="After", exact=True).click()
    page.evaluate("opscope.idle()")
    assert len(changed(page)) == 5


def test_before_and_after_beside_each_other_share_the_selection(page: Page, passes: str) -> None:
    ready(page, passes)
    stage(page, 2)
    page.get_by_role("radio", name="Before | after").click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".before-pane")).to_be_visible()
    expect(page.locator(".before-pane .pane-label")).to_have_text("1_FoldConstantPass")
    page.evaluate("opscope.select(['#0'])")
    before = state(page)["before"]
    assert (before["stage"], len(before["selection"])) == ("1_FoldConstantPass", 6)
    stage(page, 4)
    expect(page.locator(".before-pane .pane-label")).to_have_text("3_AutoMixPrecisionPass")
    # The other way: a click in the picture of before.
    canvas = page.locator(".before-pane canvas")
    size = canvas.bounding_box()
    assert size is not None
    for y in range(40, int(size["height"]), 12):
        canvas.click(position={"x": size["width"] / 2, "y": y})
        page.evaluate("opscope.idle()")
        if state(page)["before"]["selection"]:
            break
    assert state(page)["before"]["selection"]
    assert state(page)["selection"]
    stage(page, 0)  # was made from nothing
    expect(page.locator(".before-pane")).to_be_hidden()
    assert state(page)["before"] is None


def test_a_change_that_only_removed_something_leads_to_its_ghosts(page: Page, tmp_path: Path) -> None:
    out = tmp_path / "joint.html"
    opscope.open(HIDET.parent.parent / "page" / "joint.opscope").save(out)
    ready(page, out.as_uri())
    stage(page, 1)
    page.get_by_role("tab", name="Changes", exact=True).click()
    page.locator(".change-row[data-kind=removed]").first.click()
    page.evaluate("opscope.idle()")
    now = state(page)
    assert now["compare"] == "overlay"
    assert now["selection"]
    chosen = {box["change"] for box in now["boxes"] if box["item"] in now["selection"]}
    assert chosen == {"before: removed"}


def test_two_files_are_compared_in_the_same_views(page: Page, compared: str) -> None:
    ready(page, compared)
    now = state(page)
    assert [(entry["name"], entry["nodes"]) for entry in now["stages"]] == [
        ("1_FoldConstantPass.json", 20),
        ("2_SubgraphRewritePass.json", 19),
    ]
    assert now["stage"] == "2_SubgraphRewritePass.json"  # it begins with what is different
    assert len(changed(page)) == 5
    page.get_by_role("tab", name="Changes", exact=True).click()
    expect(page.locator(".change-row")).to_contain_text(QKV)
    page.evaluate("opscope.compare('overlay')")
    assert len(changed(page)) == 11


def test_boxes_glide_to_their_new_places(browser: Browser, passes: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")  # with movement
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    ready(page, passes)
    for number in (1, 2, 4, 5, 6, 2):
        drawn = len(state(page)["frames"])
        page.evaluate(f"opscope.stage({number})")
        now = state(page)
        assert now["stage"] == now["stages"][number]["name"]
        assert len(now["frames"]) > min(drawn + 1, 239)  # not in one step
    context.close()
    assert not errors
