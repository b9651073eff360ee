"""The first picture of real networks: it tells their story, can be read, and looks as it did when it was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pictures import Album
from playwright.sync_api import Browser, Page
from steps import ready, state

import opscope

NETWORKS = Path(__file__).parent.parent / "data" / "networks"
SIZES = {"1440": (1440, 900), "1920": (1920, 1080)}
# What must be there to be seen at once, by network.
TOLD = {
    "gpt2_train": {"wte", "wpe", "h.0 … 11", "ln_f", "lm_head", "loss"},
    "llama_train": {"embed_tokens", "layers.0 … 15", "norm", "lm_head", "loss"},
    "resnet50_train": {"conv1", "bn1", "layer1", "layer2", "layer3", "layer4", "fc", "loss"},
    "vit_train": {"patch_embeddings", "layers.0 … 11", "classifier", "loss"},
    "unet_train": {"down.0", "down.3", "mid1 + mid_attention", "up.3", "loss"},
    "densenet_train": {"features", "classifier", "loss"},
    "gan_train": {"generator", "critic", "critic#2", "loss"},
    "clip_train": {"vision_model", "text_model", "visual_projection", "text_projection", "loss"},
    "distilled_train": {"model.teacher", "model.student", "loss"},
    "accumulated_train": {"forward 1", "backward 1", "blocks.2", "optimizer", "loss"},
}
MOST = 40  # boxes, frames and inputs among them
# Lines that cross, at most: where skips and rungs, tied weights or several turns leave no other way.
CROSSINGS = {"gpt2_train": 9, "unet_train": 18, "clip_train": 23, "gan_train": 51, "accumulated_train": 14}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("networks")
    for name in TOLD:
        opscope.open(NETWORKS / f"{name}.opscope").save(folder / f"{name}.html")
    return {name: (folder / f"{name}.html").as_uri() for name in TOLD}


@pytest.fixture
def album(browser: Browser, overwrite: bool) -> Iterator[Album]:
    context = browser.new_context()
    yield Album(context.new_page(), overwrite)
    context.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", TOLD)
def test_the_first_picture(page: Page, album: Album, files: dict[str, str], name: str, size: str) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    ready(page, files[name])
    now = state(page)
    assert now["layout"] == "u"
    assert now["backEdgeCount"] == 0
    assert now["rows"] >= 3
    assert now["titlePx"] >= 11
    assert now["cutTitles"] == 0
    assert now["boxCount"] <= MOST
    assert now["crossings"] <= CROSSINGS.get(name, 0)
    assert {box["title"] for box in now["boxes"]} >= TOLD[name]
    # It starts at the top, and at the left.
    canvas = page.locator("canvas.graph").bounding_box()
    assert canvas is not None
    view = now["view"]
    for axis, side in (("x", "width"), ("y", "height")):
        first = min(box[axis] for box in now["boxes"])
        assert first >= view[axis] - canvas[side] / 2 / view["zoom"] - 1
    page.mouse.move(1, 1)
    page.evaluate("opscope.idle()")
    album.check(f"first/{name}-{size}", page.screenshot(animations="disabled", caret="hide"))


def test_no_network_is_taken_for_another(album: Album) -> None:
    for size in SIZES:
        for one in TOLD:
            for other in TOLD:
                if one < other:
                    assert not album.apart(
                        album.stored(f"first/{one}-{size}"), album.stored(f"first/{other}-{size}")
                    ).small, (one, other)
