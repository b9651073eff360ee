"""A browser that is watched from outside.

The page says one word when its picture is there; nothing asks it before. Until then only /proc is read, so that what
is counted is the viewer's own work. Every measurement has a fresh browser: nothing is warm that was not paid for.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from playwright.sync_api import Error, sync_playwright

from .processes import Usage, usage

FLAGS = [
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--js-flags=--max-old-space-size=8192",
]  # fmt: skip
# Without a GPU the renderer paints too, and all of it is counted. WebGL needs SwiftShader, which is a process of its
# own: what it takes is not in the renderer's figure, in favour of the viewer that uses it.
SOFTWARE = ["--disable-gpu"]
WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

# `__picture(word)` tells us after the next two frames, when what was drawn has also been painted.
SIGNAL = """window.__picture = (word) =>
    requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(() => window.__signal(String(word))), 0));"""


class Failed(Exception):
    """The viewer crashed, or needed more than the limit."""


@dataclass(frozen=True)
class Cost:
    """From one moment to another: CPU of renderers (page and workers), of all processes, and time on the clock."""

    seconds: float
    all_processes: float
    wall: float


@dataclass
class Moment:
    at: float
    usage: Usage


@dataclass
class Chromium:
    webgl: bool = False
    width: int = 1600
    height: int = 1000
    _said: dict[str, Moment] = field(default_factory=dict)
    _crashed: bool = False
    peak: float = 0.0  # MB of the largest renderer

    def __enter__(self) -> Chromium:
        self._playwright = sync_playwright().start()
        flags = [*FLAGS, *(WEBGL if self.webgl else SOFTWARE)]
        self.browser = self._playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        processes = self.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        self.root = next(int(p["id"]) for p in processes if p["type"] == "browser")
        context = self.browser.new_context(
            viewport={"width": self.width, "height": self.height}, reduced_motion="reduce"
        )
        self.page = context.new_page()
        self.page.set_default_timeout(0)
        self.page.on("crash", self._crash)
        self.client = context.new_cdp_session(self.page)
        self.client.send("Runtime.enable")
        self.client.send("Runtime.addBinding", {"name": "__signal"})
        self.client.on("Runtime.bindingCalled", self._hear)
        self.page.add_init_script(SIGNAL)
        self.settle()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        with contextlib.suppress(Exception):
            self.browser.close()
        self._playwright.stop()

    def _hear(self, event: dict[str, Any]) -> None:
        if event["name"] == "__signal":
            self._said[event["payload"]] = self.now()

    def _crash(self, _: object) -> None:
        self._crashed = True

    def now(self) -> Moment:
        moment = Moment(time.perf_counter(), usage(self.root))
        self.peak = max(self.peak, moment.usage.renderer_megabytes)
        return moment

    def since(self, before: Moment, now: Moment | None = None) -> Cost:
        now = now or self.now()
        return Cost(
            now.usage.since(before.usage, "renderer"),
            now.usage.since(before.usage),
            now.at - before.at,
        )

    def settle(self, most: float = 5.0) -> None:
        """Wait until the browser does nothing: its own start, and what it does later, belong to no viewer."""
        end = time.perf_counter() + most
        before = self.now()
        while time.perf_counter() < end:
            self.page.wait_for_timeout(300)
            now = self.now()
            if now.usage.since(before.usage) <= 0.02:
                return
            before = now

    def open(self, url: str) -> Moment:
        """Start to open a page; the moment before."""
        start = self.now()
        with contextlib.suppress(Error):  # a crash is told by `wait`
            self.page.goto(url, wait_until="commit")
        return start

    def wait(self, word: str, start: Moment, limit: float) -> Cost:
        """The cost from `start` until the page has said `word`."""
        while True:
            if word in self._said:
                return self.since(start, self._said.pop(word))
            if self._crashed:
                raise Failed("crashed")
            now = self.now()
            if now.usage.since(start.usage, "renderer") > limit or now.at - start.at > 4 * limit:
                raise Failed(f"no picture in {limit:.0f} s")
            try:
                self.page.wait_for_timeout(100)
            except Error as error:
                raise Failed("crashed") from error
