"""Real Chromium, and the real command line serving to it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from steps import PATIENCE

DATA = Path(__file__).parent.parent / "data"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
]
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path is not None, "chromium is not installed (Debian: apt-get install chromium)"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce", locale="en-US")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda message: errors.append(f"{message.text} {message.location}") if message.type == "error" else None,
    )
    page.set_default_timeout(PATIENCE)
    yield page
    context.close()
    assert not errors, errors


class Served:
    """`opscope view` in its own process."""

    def __init__(self, *args: str | Path) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SSH_")}
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "opscope", "view", "--no-browser", *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self.url = ""
        assert self.process.stdout is not None
        seen = ""
        for line in self.process.stdout:
            seen += line
            found = re.search(r"http://127\.0\.0\.1:\d+/\S*", line)
            if found:
                self.url = found[0]
                break
        assert self.url, seen

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def serve() -> Iterator[type[Served] | object]:
    running: list[Served] = []

    def start(*args: str | Path) -> str:
        running.append(Served(*args))
        return running[-1].url

    yield start
    for served in running:
        served.stop()
