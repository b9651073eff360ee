"""Taking something away: pictures with what explains them, the page as one file, a link, a run that plays."""

from __future__ import annotations

import base64
import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from steps import ready, state

import opscope

DATA = Path(__file__).parent.parent / "data"
# The bead of an animation, at a time.
AT = """(time) => {
    const svg = document.documentElement;
    svg.pauseAnimations();
    svg.setCurrentTime(time);
    const { cx, cy } = document.querySelector('.bead');
    return [cx.animVal.value, cy.animVal.value, document.querySelector('#played rect').width.animVal.value];
}"""


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("share") / "step.html"
    opscope.open(DATA / "page" / "step.opscope").save(out)
    return out.as_uri()


def press(page: Page, key: str, out: Path) -> Path:
    """One button of the sheet, by keyboard alone; the file that it saves."""
    page.locator(".toolbar [data-key=export]").focus()
    page.keyboard.press("Enter")
    button = page.locator(f"dialog [data-key='{key}']")
    expect(button).to_be_visible()
    for _ in range(40):
        if button.evaluate("one => one === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(button).to_be_focused()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    path = out / download.value.suggested_filename
    download.value.save_as(path)
    page.evaluate("opscope.idle()")
    return path


def test_pictures_say_what_they_show(page: Page, step: str, tmp_path: Path) -> None:
    ready(page, step)
    whole = press(page, "svg", tmp_path).read_text(encoding="utf-8")
    assert whole.count(">step<") == 2  # as a title, and to read
    assert all(f">{phase}<" in whole for phase in ("forward", "backward", "optimizer"))
    page.evaluate("opscope.select(['forward:net/first'])")
    page.locator(".toolbar [data-key=export]").click()
    page.locator("dialog [data-key='part-selection']").check()
    page.locator("dialog [data-key=title]").uncheck()
    page.keyboard.press("Escape")
    part = press(page, "svg", tmp_path).read_text(encoding="utf-8")
    size = [float(re.search(r'viewBox="\S+ \S+ \S+ (\S+)"', text)[1]) for text in (whole, part)]  # type: ignore[index]
    assert size[1] < size[0] / 3
    assert "<title>step</title>" not in part
    png = press(page, "png", tmp_path).read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"


def test_escape_closes_one_thing_and_gives_the_focus_back(page: Page, step: str) -> None:
    ready(page, step)
    page.evaluate("opscope.select(['#1'])")
    for name in ("export", "compare"):
        tool = page.locator(f".toolbar [data-key={name}]")
        tool.focus()
        page.keyboard.press(" ")
        expect(page.locator("dialog.sheet")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog.sheet")).to_be_hidden()
        expect(tool).to_be_focused()
        assert state(page)["selection"] == [1]


@pytest.mark.parametrize("how", ["file", "server"])
def test_the_view_is_saved_as_one_file(
    page: Page, step: str, tmp_path: Path, serve: Callable[..., str], how: str
) -> None:
    ready(page, step if how == "file" else serve(DATA / "page" / "step.opscope"))
    page.evaluate("opscope.expand('forward:net/first')")
    page.evaluate("opscope.select(['#1'])")
    page.evaluate("opscope.view(50, 120, 0.9)")
    was = state(page)
    saved = press(page, "save-page", tmp_path)
    ready(page, saved.as_uri())
    now = state(page)
    for name in ("boxCount", "selection", "view", "stage", "totals"):
        assert now[name] == was[name], name


def test_the_link_is_copied(page: Page, step: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ready(page, step)
    page.evaluate("opscope.select(['#1'])")
    page.locator(".toolbar [data-key=export]").click()
    page.locator("dialog [data-key='copy-link']").click()
    expect(page.locator(".note")).to_contain_text("Link copied")
    assert "sel=%231" in page.evaluate("navigator.clipboard.readText()")


def check_that_it_plays(page: Page, path: Path) -> None:
    page.goto(path.as_uri())
    spots = [page.evaluate(AT, time) for time in (0, 2, 4, 6)]
    assert len({(x, y) for x, y, _ in spots}) == 4
    widths = [width for *_, width in spots]
    assert widths == sorted(widths)
    assert widths[0] == 0 < widths[1]


def test_the_exported_run_plays(page: Page, step: str, tmp_path: Path) -> None:
    ready(page, step)
    check_that_it_plays(page, press(page, "play-svg", tmp_path))


def test_a_run_is_watched_and_stepped_through(page: Page, step: str) -> None:
    ready(page, step)
    page.locator(".toolbar [data-key=play]").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".player")).to_be_visible()
    # Who asked for less movement starts it: until then it stands still.
    expect(page.locator("[data-key=play-toggle]")).to_have_text("Play")
    slider = page.locator("[data-key=play-time]")
    slider.focus()
    page.keyboard.press("End")
    expect(slider).to_have_attribute("aria-valuetext", "100 %")
    page.locator("[data-key=play-toggle]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-key=play-toggle]")).to_have_text("Pause")
    page.keyboard.press("Escape")
    expect(page.locator(".player")).to_be_hidden()


def test_a_video_is_recorded(page: Page, step: str, tmp_path: Path) -> None:
    ready(page, step)
    video = press(page, "play-webm", tmp_path).read_bytes()
    assert video[:4] == b"\x1aE\xdf\xa3"  # EBML
    assert b"webm" in video[:100]
    assert len(video) > 10_000


# A frame of a video at a time, as a few numbers; what is unknown of its length is found by going to its end.
FRAMES = """async ([data, times]) => {
    const video = document.createElement('video');
    video.muted = true;
    video.src = 'data:video/webm;base64,' + data;
    await new Promise((done, failed) => { video.onloadeddata = done; video.onerror = () => failed(video.error); });
    const to = (time) => new Promise((done) => { video.onseeked = done; video.currentTime = time; });
    await to(1e6);
    const seconds = video.currentTime;
    const pen = new OffscreenCanvas(160, 120).getContext('2d', { willReadFrequently: true });
    const frames = [];
    for (const part of times) {
        await to(part * seconds);
        pen.drawImage(video, 0, 0, 160, 120);
        frames.push([...pen.getImageData(0, 0, 160, 120).data].filter((_, i) => i % 4 === 0));
    }
    return { seconds, width: video.videoWidth, frames };
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_command_line_writes_a_video_that_plays(page: Page, tmp_path: Path, theme: str) -> None:
    out = tmp_path / "run.webm"
    step = DATA / "page" / "step.opscope"
    command = [sys.executable, "-m", "opscope", "export", step, "--play", "--theme", theme, "-o", out]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run.webm"], said.stderr
    page.goto("about:blank")
    found = page.evaluate(FRAMES, [base64.b64encode(out.read_bytes()).decode(), [0.1, 0.4, 0.7]])
    assert found["seconds"] > 4
    assert found["width"] >= 480
    for one, other in itertools.pairwise(found["frames"]):
        assert sum(abs(a - b) > 40 for a, b in zip(one, other, strict=True)) > 20  # the bead and the curve
    brightness = sum(found["frames"][0]) / len(found["frames"][0])
    assert (brightness > 128) == (theme == "light")
