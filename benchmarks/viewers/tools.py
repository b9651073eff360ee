# ruff: noqa: E501 (the scripts that run in pages are kept in one piece)
"""The viewers: how each is served, how it says that its picture is there, how all of it is expanded."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import opscope

from .chromium import Chromium


class Opscope:
    name = "opscope"
    ending = ".opscope"
    expands = True
    webgl = False

    # The engine's answer with a scene, then the page's own "idle": its boxes are painted and nothing is under way.
    HOOK = """const Plain = window.Worker;
        window.Worker = class extends Plain { constructor(...a) { super(...a);
            const seen = ({ data }) => { if (data?.result?.scene) { this.removeEventListener('message', seen); window.opscope.idle().then(() => __picture('first')); } };
            this.addEventListener('message', seen); } };"""

    def __init__(self) -> None:
        self._written: set[Path] = set()

    def version(self) -> str:
        return opscope.__version__

    @contextlib.contextmanager
    def served(self, file: Path) -> Iterator[str]:
        page = file.with_suffix(".html")
        if page not in self._written:  # a file of an earlier run may hold an earlier page
            opscope.open(file).save(page)
            self._written.add(page)
        yield page.as_uri()

    @contextlib.contextmanager
    def viewed(self, file: Path) -> Iterator[str]:
        """By `opscope view`, where the page fetches the capture instead of holding it."""
        command = [sys.executable, "-u", "-m", "opscope", "view", "--no-browser", str(file)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert process.stdout is not None
            yield next(
                found[0] for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/\S*", line))
            )
        finally:
            process.terminate()
            process.wait()

    def prepare(self, chromium: Chromium) -> None:
        chromium.page.add_init_script(self.HOOK)

    def expand(self, chromium: Chromium) -> None:
        chromium.page.evaluate("() => { opscope.expandAll().then(() => __picture('expanded')); }")


class Netron:
    name = "Netron"
    ending = ".onnx"
    expands = False
    webgl = False

    # Netron forbids eval, which Playwright uses to ask the page anything. The class of the body says what is shown.
    HOOK = """const own = window.eval; Object.defineProperty(window, 'eval', { get: () => own, set: () => {} });
        document.addEventListener('DOMContentLoaded', () => {
            const look = new MutationObserver(() => { if (document.body.className === 'default') { look.disconnect(); __picture('first'); } });
            look.observe(document.body, { attributes: true, attributeFilter: ['class'] }); });"""

    def version(self) -> str:
        return importlib.metadata.version("netron")

    @contextlib.contextmanager
    def served(self, file: Path) -> Iterator[str]:
        port = free_port()
        program = f"import netron, time; netron.serve({str(file)!r}, None, address=('127.0.0.1', {port}), browse=False); time.sleep(9999)"
        with server(sys.executable, "-c", program, port=port):
            yield f"http://127.0.0.1:{port}/"

    def prepare(self, chromium: Chromium) -> None:
        chromium.page.context.add_cookies([{"name": "consent", "value": "1", "domain": "127.0.0.1", "path": "/"}])
        chromium.page.add_init_script(self.HOOK)

    def expand(self, chromium: Chromium) -> None:
        raise NotImplementedError("Netron has no modules")


class ModelExplorer:
    name = "Model Explorer"
    ending = ".json"
    expands = True
    webgl = True

    # Its worker's answer (1: a processed graph, 3: a graph with other groups open), then the first WebGL call after it.
    HOOK = """let next = ''; const words = { 1: 'first', 3: 'expanded' }; const Plain = window.Worker;
        window.Worker = class extends Plain { constructor(...a) { super(...a);
            this.addEventListener('message', ({ data }) => { next = words[data?.eventType] ?? next; }); } };
        for (const kind of [window.WebGL2RenderingContext, window.WebGLRenderingContext])
            for (const call of ['drawElements', 'drawArrays', 'drawElementsInstanced', 'drawArraysInstanced']) {
                const plain = kind?.prototype[call]; if (!plain) continue;
                kind.prototype[call] = function (...a) { if (next) { __picture(next); next = ''; } return plain.apply(this, a); }; }"""

    def version(self) -> str:
        return importlib.metadata.version("ai-edge-model-explorer")

    @contextlib.contextmanager
    def served(self, file: Path) -> Iterator[str]:
        port = free_port()
        program = Path(sys.executable).parent / "model-explorer"
        if not program.exists():
            program = Path(shutil.which("model-explorer") or program)
        options = ("--host", "127.0.0.1", "--port", str(port), "--no_open_in_browser", "--skip_health_check")
        with server(str(program), *options, port=port):
            data = urllib.parse.quote(json.dumps({"models": [{"url": str(file)}]}))
            yield f"http://127.0.0.1:{port}/?data={data}&show_open_in_new_tab=0"

    def prepare(self, chromium: Chromium) -> None:
        chromium.page.add_init_script(self.HOOK)

    def expand(self, chromium: Chromium) -> None:
        chromium.page.evaluate(
            """() => { const icon = [...document.querySelectorAll('mat-icon')].find((e) => e.textContent.trim() === 'unfold_more_double');
                (icon.parentElement || icon).click(); }"""
        )


Tool = Opscope | Netron | ModelExplorer
TOOLS: list[Tool] = [Opscope(), Netron(), ModelExplorer()]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(*command: str, port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(240):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.25)
        yield
    finally:
        process.kill()
        process.wait()
