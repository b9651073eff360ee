"""Figures on boxes stand on the boxes whose figures they are, also where boxes glide to new places."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page
from steps import PATIENCE, ready

import opscope

DATA = Path(__file__).parent.parent / "data"
FILES = [DATA / "page" / "step.opscope", DATA / "jittor" / "resnet_train.pkl"]

# Every text of every frame of the drawing, with the frame it belongs to.
LISTEN = """
(() => {
  const write = CanvasRenderingContext2D.prototype.fillText;
  window.written = [];
  let frame = 0;
  const tick = () => { frame++; requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (this.canvas.className === 'graph') window.written.push({ frame, text, x, y });
    return write.apply(this, arguments);
  };
})();
"""


@pytest.fixture
def moving(browser: Browser) -> Any:
    """A page in which boxes glide, as they do for most people."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, reduced_motion="no-preference", locale="en-US"
    )
    page = context.new_page()
    page.add_init_script(LISTEN)
    page.set_default_timeout(PATIENCE)
    yield page
    context.close()


Text = tuple[str, float, float]


def last_frame(page: Page) -> list[Text]:
    """What is written in the frame that stays, and where."""
    written = page.evaluate("opscope.idle().then(() => window.written)")
    return [(w["text"], w["x"], w["y"]) for w in written if w["frame"] == written[-1]["frame"]]


def drawn_anew(page: Page) -> list[Text]:
    page.evaluate("window.written.length = 0")
    page.evaluate("opscope.view(...['x', 'y', 'zoom'].map((of) => opscope.state().view[of]))")
    return last_frame(page)


def without(texts: list[Text], others: list[Text]) -> list[Text]:
    """Those that are not among the others: as far as a pixel, to which a picture at rest is rounded."""
    return [
        one for one in texts if not any(one[0] == o[0] and abs(one[1] - o[1]) < 2 > abs(one[2] - o[2]) for o in others)
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("colour", ["output size", "kernel"])
def test_what_stays_after_a_movement_is_what_is_there(moving: Page, tmp_path: Path, file: Path, colour: str) -> None:
    out = tmp_path / "page.html"
    opscope.open(file).save(out)
    ready(moving, f"{out.as_uri()}#f={quote(colour)}")
    closed = [box["item"] for box in moving.evaluate("opscope.state().boxes") if box["kind"] == 1][:2]
    assert closed
    for item in closed:
        for call in ("expand", "select", "collapse"):
            moving.evaluate(f"window.written.length = 0; opscope.{call}({item})")
            stays, anew = last_frame(moving), drawn_anew(moving)
            assert (without(stays, anew), without(anew, stays)) == ([], []), (call, item)
