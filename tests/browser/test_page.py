"""The page as a user meets it: open, expand, pick, search, colour, share."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from steps import ready, reopen, state

import opscope

JITTOR = Path(__file__).parent.parent / "data" / "jittor"
Serve = Callable[..., str]


def titles(page: Page) -> list[str]:
    return [box["title"] for box in state(page)["boxes"]]


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "simple.html"
    opscope.open(JITTOR / "simple_model_train.pkl", sources=[JITTOR]).save(out)
    return out


def test_the_walk_through_the_simple_model(page: Page, serve: Serve) -> None:
    """Down to a matmul: its op, its backward ops, its kernels with their C++, its Python line."""
    ready(page, serve(JITTOR / "simple_model_train.pkl", "--sources", JITTOR))
    page.evaluate("opscope.expand('forward:model/linear1')")
    (matmul,) = page.evaluate("opscope.find('scope:model/linear1 phase:forward op:reduce.add')")
    page.evaluate(f"opscope.select(['#{matmul}'])")
    panel = page.locator(".right")
    expect(panel.locator("h2")).to_have_text("reduce.add")
    expect(panel.get_by_text("Backward", exact=True)).to_be_visible()
    related = state(page)["related"]
    phases = page.evaluate("opscope.find('phase:backward')")
    assert related
    assert set(related) <= set(phases)
    panel.locator("section", has_text="Ran in kernels").locator("button").first.click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".low .code")).to_contain_text("void jittor::FusedOp::jit_run()")
    panel.locator("section", has_text="Called at").locator("button").first.click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".code-line.current")).to_contain_text("x = self.linear1(x)")


def test_the_walk_through_resnet(page: Page, serve: Serve) -> None:
    ready(page, serve(JITTOR / "resnet_train.pkl", "--sources", JITTOR))
    assert "init" in state(page)["hidden"]
    page.evaluate("opscope.expand('forward:resnet18/layer1')")
    page.evaluate("opscope.expand('forward:resnet18/layer1/0')")
    page.evaluate("opscope.expand('forward:resnet18/layer1/0/conv1')")
    found = page.evaluate("opscope.find('scope:resnet18/layer1/0/conv1 phase:forward op:reindex')")
    page.evaluate(f"opscope.select(['#{found[0]}'])")
    panel = page.locator(".right")
    expect(panel.locator("h2")).to_have_text("reindex")
    expect(panel.get_by_text("i3*1-1+i5*1").first).to_be_visible()
    assert state(page)["related"]
    expect(panel.locator("section", has_text="Called at")).to_contain_text("gen_seed.py:105")
    panel.locator("section", has_text="Ran in kernels").locator("button").first.click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".low")).to_contain_text("not in the capture")
    page.locator(".frame", has_text="gen_seed.py:105").click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".code-line.current")).to_contain_text("y = resnet18(x)")


def test_a_line_lights_its_operators(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.get_by_role("tab", name="Source").click()
    page.evaluate("opscope.idle()")
    page.locator(".code-line.has-ops", has_text="x = self.linear1(x)").click()
    page.evaluate("opscope.idle()")
    assert set(state(page)["related"]) >= set(page.evaluate("opscope.find('scope:linear1 phase:forward')"))


def test_one_file_needs_no_server(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    assert state(page)["captures"][0]["framework"] == "jittor"
    assert "linear1" in titles(page)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.evaluate("opscope.expandAll()")
    assert all(url.startswith(("file:", "blob:", "data:")) for url in requests)


def test_expand_keeps_what_the_eye_holds(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())

    def place(title: str) -> tuple[float, float]:
        now = state(page)
        view = now["view"]
        box = next(box for box in now["boxes"] if box["title"] == title and box["kind"] in (1, 2))
        return ((box["x"] - view["x"]) * view["zoom"], (box["y"] - view["y"]) * view["zoom"])

    page.evaluate("opscope.collapse('forward:model/linear1')")
    before, count = place("linear1"), state(page)["boxCount"]
    page.evaluate("opscope.expand('forward:model/linear1')")
    assert state(page)["boxCount"] > count
    assert place("linear1") == pytest.approx(before, abs=1)


def test_double_click_opens_a_box(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.evaluate("opscope.collapse('forward:model/linear2')")
    now = state(page)
    box = next(b for b in now["boxes"] if b["title"] == "linear2" and b["kind"] == 1)
    canvas = page.locator("canvas.graph").bounding_box()
    assert canvas is not None
    view = now["view"]
    x = canvas["x"] + canvas["width"] / 2 + (box["x"] + box["width"] / 2 - view["x"]) * view["zoom"]
    y = canvas["y"] + canvas["height"] / 2 + (box["y"] + box["height"] / 2 - view["y"]) * view["zoom"]
    page.mouse.dblclick(x, y)
    page.evaluate("opscope.idle()")
    assert any(b["title"] == "linear2" and b["kind"] == 2 for b in state(page)["boxes"])
    assert state(page)["selection"] == [box["item"]]


def test_phases_are_hidden_and_shown(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    assert "backward" in titles(page)
    page.locator(".chip.phase", has_text="backward").click()
    page.evaluate("opscope.idle()")
    assert "backward" not in titles(page)
    page.locator(".chip.phase", has_text="backward").click()
    page.evaluate("opscope.idle()")
    assert "backward" in titles(page)


def test_search_steps_through_its_results(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.keyboard.press("/")
    page.keyboard.type("op:multiply phase:forward")
    page.evaluate("opscope.idle()")
    expect(page.get_by_text("2 found").first).to_be_visible()
    page.keyboard.press("Enter")
    page.evaluate("opscope.idle()")
    first = state(page)["selection"]
    page.keyboard.press("Enter")
    page.evaluate("opscope.idle()")
    assert state(page)["selection"] != first
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("colour:red")
    page.evaluate("opscope.idle()")
    expect(page.locator(".hint.error")).to_contain_text("colour")


def test_the_url_brings_the_view_back(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.evaluate("opscope.expand('backward:model/linear2')")
    page.evaluate("opscope.select(['backward:model/linear2'])")
    page.evaluate("opscope.view(100, 200, 0.5)")
    before = state(page)
    reopen(page, "v=100,200,0.5", "sel=")
    after = state(page)
    for field in ("boxCount", "selection", "view", "hidden"):
        assert after[field] == before[field], field


def test_back_and_forward(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.evaluate("opscope.select(['forward:model/linear1'])")
    first = state(page)["selection"]
    page.evaluate("opscope.select(['forward:model/linear2'])")
    second = state(page)["selection"]
    page.locator("canvas.graph").focus()
    page.keyboard.press("Alt+ArrowLeft")
    page.evaluate("opscope.idle()")
    assert state(page)["selection"] == first
    page.keyboard.press("Alt+ArrowRight")
    page.evaluate("opscope.idle()")
    assert state(page)["selection"] == second


def test_columns_of_the_table_are_resized_and_remembered(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.locator(".low-tabs [data-key=table]").click()
    grip = page.locator("[data-key='width op']")
    place = grip.bounding_box()
    assert place is not None

    def widths() -> tuple[float, float]:
        cells = (
            page.locator("[role=columnheader]").nth(1),
            page.locator(".virtual .table-row").first.locator(".cell").nth(1),
        )
        boxes = [cell.bounding_box() for cell in cells]
        assert boxes[0] is not None
        assert boxes[1] is not None
        return boxes[0]["width"], boxes[1]["width"]

    before = widths()[0]
    page.mouse.move(place["x"] + 4, place["y"] + 10)
    page.mouse.down()
    page.mouse.move(place["x"] + 94, place["y"] + 10, steps=4)
    page.mouse.up()
    assert widths() == pytest.approx((before + 90, before + 90), abs=1)
    # By keys, and the focus stays.
    expect(grip).to_be_focused()
    page.keyboard.press("ArrowRight")
    assert widths()[0] == pytest.approx(before + 106, abs=1)
    page.reload()
    page.wait_for_function("window.opscope?.idle")
    page.evaluate("opscope.idle()")
    expect(grip).to_be_visible()
    assert widths() == pytest.approx((before + 106, before + 106), abs=1)
    # A double-click fits: nothing in sight is cut, and no room is wasted.
    grip.dblclick()
    cells = page.locator(".virtual .table-row .cell:nth-child(2)")
    assert cells.evaluate_all("cells => cells.every((cell) => cell.scrollWidth <= cell.clientWidth)")
    assert widths()[0] < before + 106
    grip.press("Delete")
    assert widths()[0] == pytest.approx(before, abs=1)


def test_the_table_sorts_and_selects(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.get_by_role("tab", name="Table").click()
    page.evaluate("opscope.idle()")
    page.locator(".table-row.head button", has_text="output size").click()
    page.evaluate("opscope.idle()")
    expect(page.locator(".virtual .table-row").first).to_contain_text("400 B")
    page.locator(".virtual .table-row").first.click()
    page.evaluate("opscope.idle()")
    assert len(state(page)["selection"]) == 1


def test_chinese(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("tab", name="模块")).to_be_visible()
    assert state(page)["language"] == "zh"


def test_a_dropped_file_opens_in_a_tab(page: Page, serve: Serve) -> None:
    ready(page, serve(JITTOR / "simple_model.pkl"))
    data = (JITTOR / "quirks" / "vardata_mlp.pkl").read_bytes()
    page.evaluate(
        """async (bytes) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], 'vardata_mlp.pkl'));
            const drop = new DragEvent('drop', { dataTransfer: transfer, bubbles: true });
            document.getElementById('opscope').dispatchEvent(drop);
        }""",
        list(data),
    )
    expect(page.locator(".tab")).to_have_count(2)
    page.evaluate("opscope.idle()")
    assert [capture["name"] for capture in state(page)["captures"]] == ["simple_model.pkl", "vardata_mlp.pkl"]
    expect(page.locator(".tab.on")).to_have_text("vardata_mlp.pkl")


def test_hostile_names_are_harmless(page: Page, tmp_path: Path) -> None:
    hostile = [
        "</script><script>window.hacked=1</script>",
        '"><img src=x onerror=window.hacked=1>',
        "‮rtl",
        "x" * 100_000,
        "a\nb",
    ]
    nodes: dict[int, Any] = {}
    for i, name in enumerate(hostile):
        stacks = [{"name": name, "type": name, "file_path": name, "lineno": 1}]
        nodes[i] = {"id": i, "inputs": [], "outputs": [], "stacks": stacks, "attrs": {"is_var": "0", "name": name}}
    trace = tmp_path / "hostile.pkl"
    trace.write_bytes(pickle.dumps({"node_data": nodes, "execute_op_info": {}}))
    out = tmp_path / "hostile.html"
    opscope.open(trace).save(out)
    ready(page, out.as_uri())
    page.evaluate("opscope.expandAll()")
    for i in range(len(hostile)):
        page.evaluate(f"opscope.select(['#{i}'])")
    page.evaluate("opscope.select(['#2'])")
    page.get_by_role("tab", name="Table").click()
    page.evaluate("opscope.idle()")
    assert "\u202e" not in page.locator("#opscope").inner_html()  # or a name could look like another one
    page.evaluate("opscope.find('script')")
    assert page.evaluate("window.hacked === undefined")


def test_the_picture_shows_the_phases_in_their_colours(page: Page, one_file: Path) -> None:
    """Not only state: what is on the canvas. Blue forward at the left, orange backward beside it."""
    ready(page, one_file.as_uri())
    seen = page.evaluate(
        """() => {
            const canvas = document.querySelector('canvas.graph');
            const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            const sums = { blue: [0, 0], orange: [0, 0] };
            for (let i = 0; i < data.length; i += 4) {
                const [r, g, b] = [data[i], data[i + 1], data[i + 2]];
                const hit = b > r + 90 && b > g + 60 ? sums.blue : r > b + 90 && r > g + 50 ? sums.orange : null;
                if (hit) { hit[0]++; hit[1] += (i / 4) % width; }
            }
            return Object.fromEntries(Object.entries(sums).map(([k, [n, x]]) => [k, { count: n, at: x / n / width }]));
        }"""
    )
    assert seen["blue"]["count"] > 200
    assert seen["orange"]["count"] > 200
    assert seen["blue"]["at"] < seen["orange"]["at"]


def test_dark_theme_and_direction(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.locator("canvas.graph").focus()
    page.keyboard.press("t")
    page.keyboard.press("d")
    page.evaluate("opscope.idle()")
    now = state(page)
    assert now["theme"] == "dark"
    boxes = {box["title"]: box for box in now["boxes"] if box["title"] in ("linear1", "linear2")}
    assert boxes["linear1"]["x"] != boxes["linear2"]["x"]  # data now flows to the right
    corner = page.evaluate(
        "[...document.querySelector('canvas.graph').getContext('2d').getImageData(2, 2, 1, 1).data].slice(0, 3)"
    )
    assert max(corner) < 60


def test_picking_a_kernel_lights_its_operators(page: Page, one_file: Path) -> None:
    ready(page, one_file.as_uri())
    page.get_by_role("tab", name="Kernels").click()
    page.evaluate("opscope.kernel(24)")
    expect(page.locator(".kernel-row.selected")).to_contain_text("multiply")
    assert len(state(page)["related"]) == 4
    page.locator("select.tool").select_option("kernel")
    page.evaluate("opscope.idle()")
    page.locator("select.tool").select_option("output size")
    page.evaluate("opscope.idle()")
    expect(page.locator(".legend")).to_contain_text("output size")
