"""What operators cost, in the page: on real captures, against what `opscope stats` says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from steps import ready, reopen

import opscope
from opscope.ir import Capture as IrCapture
from opscope.ir import Gap, GraphBuilder, Origin, Pools, Stage
from opscope.ir.gaps import note

DATA = Path(__file__).parent.parent / "data"
STEP = DATA / "page" / "step.opscope"
RESNET = DATA / "jittor" / "resnet_train.pkl"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    folder = tmp_path_factory.mktemp("pages")

    def page(file: Path) -> str:
        out = folder / f"{file.stem}.html"
        if not out.exists():
            opscope.open(file).save(out)
        return out.as_uri()

    return page


def stats(file: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "opscope", "stats", str(file), "--json"]
    done = subprocess.run(command, capture_output=True, check=True)
    return json.loads(done.stdout)["total"]


def cost(page: Page) -> dict[str, Any]:
    return page.evaluate("opscope.idle().then(() => opscope.state().cost)")


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()
    page.evaluate("opscope.idle()")


def view(page: Page, name: str) -> dict[str, Any]:
    page.get_by_role("radio", name=name, exact=True).click()
    page.evaluate("opscope.idle()")
    return cost(page)


@pytest.mark.parametrize("file", [STEP, RESNET], ids=lambda file: file.stem)
def test_what_all_of_it_costs_stands_beside_it(page: Page, pages: Callable[[Path], str], file: Path) -> None:
    """Before anything is picked, the panel at the right has the totals of `opscope stats`."""
    ready(page, pages(file))
    total, found = stats(file), page.evaluate("opscope.state().totals")
    assert found == {
        "macs": total["macs"],
        "other": total["other_flops"],
        "parameters": total["params"],
        "peak": total["peak_bytes"],
        "atLeast": total["at_least"],
        "parametersAtLeast": total["params_at_least"],
        "time": None,
    }
    shown = page.locator(".right section", has_text="Peak memory")
    assert ("≥" in shown.locator("dt", has_text="MACs").locator("+ dd").inner_text()) == total["at_least"]


def test_what_is_missing_from_the_graph_makes_totals_lower_bounds(page: Page, tmp_path: Path) -> None:
    b = GraphBuilder(Pools())
    x = b.input(b.pools.type("float32", (4, 8)), name="x")
    w = b.value(b.pools.type("float32", (8, 8)), name="w", role="parameter")
    scopes = [b.pools.scope(0, name, "Linear") for name in ("whole", "partly")]
    for scope in scopes:
        x = b.output(b.node("aten.mm", [x, w], scope=scope, phase="forward"), b.pools.type("float32", (4, 8)))
    b.outputs.append(x)
    capture = IrCapture(b.pools, [Stage("graph", b.freeze())], origin=Origin("test", "torch"))
    note(capture, 0, [Gap("nobody saw it", 2, scopes[1], phase="forward")])
    opscope.Capture.of(capture).save(tmp_path / "gaps.html")
    ready(page, (tmp_path / "gaps.html").as_uri())
    found = page.evaluate("opscope.state().totals")
    assert (found["macs"], found["atLeast"], found["parametersAtLeast"]) == (2 * 4 * 8 * 8, True, True)
    shown = page.locator(".right section", has_text="Peak memory")
    for figure in ("MACs", "Parameters"):
        assert "≥" in shown.locator("dt", has_text=figure).locator("+ dd").inner_text()
    expect(page.locator(".right .warning")).to_contain_text("nobody saw it")


def show_all_phases(page: Page) -> None:
    for chip in page.locator(".chips .phase:not(.on)").all():
        chip.click()
        page.evaluate("opscope.idle()")


def click(page: Page, x: float, y: float) -> None:
    page.locator(".chart canvas").click(position={"x": x, "y": y})
    page.evaluate("opscope.idle()")


def selection(page: Page) -> list[int]:
    return page.evaluate("opscope.state().selection")


FIGURES = {
    "macs": "macs",
    "other": "other_flops",
    "parameters": "params",
    "activations": "activation_bytes",
}


@pytest.mark.parametrize("file", [STEP, RESNET], ids=lambda path: path.stem)
def test_the_treemap_has_the_totals_of_opscope_stats(page: Page, pages: Callable[[Path], str], file: Path) -> None:
    total = stats(file)
    ready(page, pages(file))
    show_all_phases(page)
    tab(page, "Cost")
    for figure, name in FIGURES.items():
        page.get_by_label("figure").select_option(figure)
        found = cost(page)
        assert (found["figure"], found["total"]) == (figure, total[name]), name
        drawn = [cell["figure"] for cell in found["cells"][1:] if cell["figure"] > total[name]]
        assert not drawn
    page.get_by_label("figure").select_option("bytes")
    assert cost(page)["total"] == total["read"] + total["written"]


def test_hidden_phases_are_left_out(page: Page, pages: Callable[[Path], str]) -> None:
    ready(page, pages(STEP))
    tab(page, "Cost")
    both = cost(page)["total"]
    page.locator(".chips .phase", has_text="backward").click()
    assert 0 < cost(page)["total"] < both


def test_a_module_of_the_treemap_is_selected_in_the_graph_and_the_other_way(
    page: Page, pages: Callable[[Path], str]
) -> None:
    ready(page, pages(RESNET))
    tab(page, "Cost")
    cells = cost(page)["cells"]
    cell = next(cell for cell in cells if cell["title"] == "layer4")
    click(page, cell["x"] + 10, cell["y"] + 8)
    assert selection(page) == [cell["item"]]
    expect(page.locator(".right h2")).to_have_text("layer4")
    expect(page.locator(".right")).to_contain_text("MACs")

    canvas = page.locator(".chart canvas")
    before = canvas.screenshot()
    page.evaluate("opscope.select(['forward:resnet18/layer1'])")
    assert canvas.screenshot() != before
    canvas.focus()
    page.keyboard.press("ArrowDown")  # into it
    page.evaluate("opscope.idle()")
    inside = selection(page)
    assert inside != [cell["item"]]
    page.keyboard.press("Enter")  # alone
    assert cost(page)["cells"][0]["item"] == inside[0]
    page.keyboard.press("Backspace")
    page.evaluate("opscope.idle()")
    expect(page.locator(".chart-head .crumbs")).to_contain_text("layer1")


def test_hovering_says_path_figure_and_share(page: Page, pages: Callable[[Path], str]) -> None:
    ready(page, pages(RESNET))
    tab(page, "Cost")
    cell = next(cell for cell in cost(page)["cells"] if cell["title"] == "layer4")
    page.locator(".chart canvas").hover(position={"x": cell["x"] + 10, "y": cell["y"] + 8})
    tip = page.locator(".chart-tip")
    expect(tip).to_contain_text("resnet18 / layer4")
    expect(tip).to_contain_text("GMACs")
    expect(tip).to_contain_text("% of total")


def test_unknown_is_a_question_mark_and_a_lower_bound(page: Page, pages: Callable[[Path], str]) -> None:
    sized = RESNET.parent.parent / "torch" / "sized.pt2"
    unknown = stats(sized)["unknown_ops"]
    assert unknown == {"aten.nonzero": 1, "aten.index.Tensor": 1}
    ready(page, pages(sized))
    tab(page, "Cost")
    expect(page.locator(".chart-total")).to_contain_text("≥")
    expect(page.locator(".chart-warning")).to_contain_text("2 unknown: aten.")
    page.evaluate("opscope.find('op:nonzero')")
    tab(page, "Table")
    rows = page.locator(".virtual .table-row")
    expect(rows).to_have_count(1)
    cells = rows.first.locator(".cell").all_text_contents()
    assert cells[6:8] == ["?", "?"]
    assert cells[-1] == "unknown"


def test_the_table_sorts_by_a_figure_the_most_first(page: Page, pages: Callable[[Path], str]) -> None:
    ready(page, pages(RESNET))
    tab(page, "Table")
    rows = page.locator(".virtual .table-row")
    head = page.locator(".table-row.head .cell", has_text="MACs").first
    head.click()
    expect(rows.first.locator(".cell").nth(6)).to_have_text("236 M")
    head.click()
    expect(rows.first.locator(".cell").nth(6)).to_have_text("0")


def test_memory_has_the_peak_and_what_is_alive(page: Page, pages: Callable[[Path], str]) -> None:
    total = stats(RESNET)
    ready(page, pages(RESNET))
    tab(page, "Cost")
    found = view(page, "Memory")
    assert (found["bytes"], found["peak"]) == (total["peak_bytes"], total["peak_at"])
    assert set(found["classes"]) >= set(total["peak_by_class"])
    alive = page.locator(".alive-row")
    expect(alive.first).to_contain_text("9.44 MB")  # 512×512×3×3 of four bytes
    box = page.locator(".chart canvas").bounding_box()
    assert box is not None
    page.locator(".chart canvas").hover(position={"x": box["width"] / 2, "y": 60})
    expect(page.locator(".chart-tip")).to_contain_text("layer4.0.conv2.weight")
    click(page, box["width"] / 2, 60)
    (step,) = selection(page)
    assert cost(page)["listed"] == step
    page.get_by_role("button", name="Live at the peak").click()
    assert cost(page)["listed"] == total["peak_at"]
    alive.first.click()
    page.evaluate("opscope.idle()")
    assert selection(page) != [step]
    page.locator(".chart canvas").focus()
    page.keyboard.press("End")
    page.evaluate("opscope.idle()")
    assert selection(page) == [opscope.open(RESNET).graph.n_nodes - 1]


def test_roofline_points_select_their_operators(page: Page, pages: Callable[[Path], str]) -> None:
    ready(page, pages(RESNET))
    show_all_phases(page)
    tab(page, "Cost")
    found = view(page, "Roofline")
    least = opscope.open(RESNET).stats().roofline("h100").total
    assert found["seconds"] == pytest.approx(least, rel=1e-6)
    assert found["unknown"] == 0
    point = found["points"][-1]
    click(page, point["x"], point["y"])
    assert any(set(selection(page)) == set(other["nodes"]) for other in found["points"])
    page.get_by_label("device").select_option("a100")
    assert cost(page)["seconds"] > found["seconds"]
    expect(page.locator(".roof-note")).to_contain_text("A100")
    page.locator(".chart canvas").focus()
    page.keyboard.press("ArrowDown")
    page.evaluate("opscope.idle()")
    assert selection(page)


def test_the_url_holds_what_is_shown(page: Page, pages: Callable[[Path], str]) -> None:
    ready(page, pages(RESNET))
    tab(page, "Cost")
    view(page, "Roofline")
    page.get_by_label("device").select_option("mi300x")
    reopen(page, "t=cost", "k=roofline.mi300x")
    found = cost(page)
    assert (found["view"], found["device"]) == ("roofline", "mi300x")


def test_boxes_are_coloured_by_macs_with_sums_in_the_legend(page: Page, pages: Callable[[Path], str]) -> None:
    ready(page, pages(RESNET))
    page.locator("select.tool").select_option("MACs")
    page.evaluate("opscope.idle()")
    expect(page.locator(".legend")).to_contain_text("GMACs")


def test_causal_attention_has_a_column_of_its_own(page: Page, tmp_path: Path) -> None:
    """An attention that is causal, and one whose mask was not seen: "?", as its causal count is not known."""
    builder = GraphBuilder(Pools())
    kind = builder.pools.type("float32", (2, 4, 8, 16))
    q = builder.input(kind, name="q")
    mask = builder.input(builder.pools.type("bool", (8, 8)), name="mask")
    names = ["query", "key", "value", "attn_mask"]
    for attrs, inputs in (({"is_causal": True}, [q, q, q]), ({}, [q, q, q, mask])):
        node = builder.node("aten.scaled_dot_product_attention", inputs, args=names[: len(inputs)], attrs=attrs)
        builder.output(node, kind)
    plain = IrCapture(pools=builder.pools, stages=[Stage("graph", builder.freeze())], origin=Origin(framework="torch"))
    opscope.Capture.of(plain).save(tmp_path / "page.html")
    ready(page, (tmp_path / "page.html").as_uri())
    tab(page, "Table")
    columns = page.locator(".low [role=columnheader]").all_inner_texts()
    rows = [row.locator("[role=gridcell]").all_inner_texts() for row in page.locator(".low [role=row]").all()]
    place = next(i for i, text in enumerate(columns) if text.startswith("causal MACs"))
    found = [row[place] for row in rows if len(row) > place]
    assert found == ["9.22 kMACs", "?"]  # 2 × 4 heads × 36 of 64 scores × 32
    page.locator("select.tool").select_option("causal MACs")
    page.evaluate("opscope.idle()")
    expect(page.locator(".legend")).to_contain_text("causal MACs")


def test_a_file_without_costs_says_how_to_get_them(page: Page, pages: Callable[[Path], str]) -> None:
    ready(page, pages(RESNET))
    tab(page, "Cost")
    data = list(STEP.read_bytes())
    page.evaluate("(bytes) => opscope.open(new Uint8Array(bytes), 'step.opscope')", data)
    expect(page.locator(".cost .hint")).to_contain_text("opscope view")


def test_a_large_graph_is_counted_after_it_is_shown(
    page: Page, serve: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "sitecustomize.py"  # in the process of the server: everything is large
    started.write_text("import opscope.server.shelf as shelf\nshelf._MANY_NODES = 0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ready(page, serve(RESNET))
    tab(page, "Cost")
    expect(page.locator(".chart-total")).to_contain_text("GMACs")
