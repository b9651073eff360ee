"""The pictures of the README and of docs/, taken from the page itself: `python docs/images/make.py`.

Playwright and Pillow have to be installed, and chromium has to be on the path.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import opscope

HERE = Path(__file__).parent
JITTOR = HERE.parent.parent / "tests" / "data" / "jittor"


def training(page: Page) -> None:
    """Forward, backward and optimizer side by side; a module and its gradient."""
    page.evaluate("opscope.select(['forward:resnet18/layer1'])")


def source(page: Page) -> None:
    """A line of Python, and all that it runs."""
    page.evaluate("opscope.expand('forward:model/linear1')")
    (row,) = page.evaluate("opscope.find('scope:model/linear1 phase:forward op:reduce.add')")
    page.evaluate("opscope.find('')")
    page.evaluate(f"opscope.select(['#{row}'])")
    page.locator(".right section", has_text="Called at").locator("button").first.click()


def cost(page: Page) -> None:
    """What is in memory while a step runs, and boxes by their MACs."""
    page.locator("select.tool").select_option("MACs")
    page.get_by_role("tab", name="Cost").click()
    page.evaluate("opscope.idle()")
    page.get_by_role("radio", name="Memory").click()


def compiled(page: Page) -> None:
    """The operators of a compiled graph, and its kernels in the order of their launches, by module."""
    page.evaluate("opscope.stage('post-grad forward')")
    page.get_by_role("tab", name="Compiler").click()
    page.evaluate("opscope.idle()")
    chart = page.locator(".compiler canvas").first
    for _ in range(5):
        chart.press("ArrowRight")


PICTURES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "page": ("resnet_train", training),
    "source": ("simple_model_train", source),
    "cost": ("resnet_train", cost),
    "compile": ("step", compiled),  # left out unless examples/torch_compile.py has written step.opscope here
}


def main() -> None:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(
            viewport={"width": 1440, "height": 900}, device_scale_factor=1.5, reduced_motion="reduce", locale="en-US"
        )
        for name, (file, pose) in PICTURES.items():
            html = Path(folder) / f"{file}.html"
            path = Path("step.opscope") if file == "step" else JITTOR / f"{file}.pkl"
            if not path.exists():
                continue
            opscope.open(path, sources=[JITTOR]).save(html)
            page = context.new_page()
            page.goto(html.as_uri())
            page.wait_for_function("window.opscope !== undefined")
            page.evaluate("opscope.idle()")
            pose(page)
            page.mouse.move(1, 1)
            page.evaluate("opscope.idle()")
            page.locator(".note").evaluate("note => (note.textContent = '')")
            shot = Image.open(io.BytesIO(page.screenshot()))
            shot.convert("RGB").save(HERE / f"{name}.png", optimize=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
