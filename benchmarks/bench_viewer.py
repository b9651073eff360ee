# ruff: noqa: E501 (the scripts that run in pages are kept in one piece)
"""The page beside Netron and Model Explorer, and its layout beside dagre, ELK and Graphviz, in one run.

    python benchmarks/bench_viewer.py [--graphs syn-5k train-5k …] [--runs 3] [--only opscope netron …]

CPU seconds are those of Chromium's renderer processes (page and workers), headless with software rendering, with what
an empty page of the same tool takes until it rests taken off. A rival that needs more than --limit seconds is stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

import opscope
from calibrate import calibrate
from corpus import make, write

FLAGS = [
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--js-flags=--max-old-space-size=8192",
]  # fmt: skip
TICK = os.sysconf("SC_CLK_TCK")
VIEWER = Path(__file__).parent.parent / "viewer"


# -- processes ------------------------------------------------------------------------------------


def renderers(root: int) -> Iterator[tuple[float, float]]:
    """(CPU seconds, resident MB) of every renderer process below `root`."""
    children: dict[int, list[int]] = {}
    facts: dict[int, tuple[float, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                rest = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(rest[1]), []).append(int(entry.name))
                facts[int(entry.name)] = ((int(rest[11]) + int(rest[12])) / TICK, int(rest[21]) * 4096 / 2**20)
    todo = [root]
    while todo:
        pid = todo.pop()
        todo += children.get(pid, [])
        with contextlib.suppress(OSError):
            if pid in facts and b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield facts[pid]


def cpu(root: int) -> float:
    return sum(seconds for seconds, _ in renderers(root))


class Chromium:
    """A fresh browser for each measurement: nothing is warm that was not paid for."""

    def __init__(self, gl: bool = False) -> None:
        self.playwright = sync_playwright().start()
        flags = [*FLAGS, "--use-angle=swiftshader", "--enable-unsafe-swiftshader"] if gl else [*FLAGS, "--disable-gpu"]
        self.browser: Browser = self.playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        self.root = _chromium_pid()
        context = self.browser.new_context(viewport={"width": 1600, "height": 1000})
        self.page: Page = context.new_page()
        self.crashed = False
        self.page.on("crash", lambda _: setattr(self, "crashed", True))

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.browser.close()
        self.playwright.stop()

    def peak(self) -> float:
        return max((memory for _, memory in renderers(self.root)), default=0.0)


def _chromium_pid() -> int:
    """The newest browser process: the one that was just started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if b"--user-data-dir" in command and b"--type=" not in command:
                    found.append((float((entry / "stat").read_text().rpartition(")")[2].split()[19]), int(entry.name)))
    return max(found)[1]


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


# -- one measurement each ---------------------------------------------------------------------------


def watch(chromium: Chromium, done: str, limit: float) -> str:
    """Wait until the page says so; "" or why not. The wait itself costs the page almost nothing."""
    start, begin = time.time(), cpu(chromium.root)
    while True:
        time.sleep(0.1)
        if chromium.crashed:
            return "crashed"
        if cpu(chromium.root) - begin > limit or time.time() - start > 4 * limit:
            return f"more than {limit:.0f} s"
        with contextlib.suppress(Exception):
            if chromium.page.evaluate(done):
                return ""


def measure_opscope(file: Path, limit: float) -> dict[str, Any]:
    chromium = Chromium()
    try:
        page = file.with_suffix(".html")
        opscope.open(file).save(page)
        chromium.page.add_init_script(
            """window.__worst = 0; let last = performance.now();
            const beat = () => { const now = performance.now(); window.__worst = Math.max(window.__worst, now - last); last = now; setTimeout(beat, 0); };
            document.addEventListener('DOMContentLoaded', () => { last = performance.now(); beat(); });"""
        )
        chromium.page.goto(page.as_uri(), wait_until="commit")
        failed = watch(chromium, "window.opscope && opscope.idle().then(() => true)", limit)
        if failed:
            return {"failed": failed}
        time.sleep(0.5)
        first = cpu(chromium.root) - start_up_of("opscope")
        opening = chromium.page.evaluate("window.__worst")
        before = cpu(chromium.root)
        standing = chromium.page.evaluate(
            """async () => { let worst = 0, last = performance.now(), on = true;
                const beat = () => { const now = performance.now(); worst = Math.max(worst, now - last); last = now; if (on) setTimeout(beat, 0); };
                beat(); await opscope.expandAll(); on = false; return worst; }"""
        )
        expand = cpu(chromium.root) - before
        frames = pan(chromium.page)
        return {
            "first": first,
            "open_standstill_ms": opening,
            "expand": expand,
            "expand_standstill_ms": standing,
            "memory_mb": chromium.peak(),
            **frames,
        }
    finally:
        chromium.close()


def pan(page: Page) -> dict[str, float]:
    """Main-thread milliseconds per frame while the whole graph is in view, and zoomed in."""
    out: dict[str, float] = {}
    for name, zoom in (("whole", 0.0), ("near", 0.8)):
        figures = page.evaluate(
            """async (zoom) => {
                const view = opscope.state().view;
                await opscope.view(view.x, view.y, zoom || view.zoom);
                const count = opscope.state().frames.length;
                for (let i = 0; i < 60; i++) {
                    await opscope.view(view.x + i * 12 / (zoom || view.zoom), view.y + i * 7 / (zoom || view.zoom), zoom || view.zoom);
                }
                return opscope.state().frames.slice(-60);
            }""",
            zoom,
        )
        if figures:
            out[f"frame_{name}_ms"] = statistics.median(figures)
            out[f"frame_{name}_p95_ms"] = sorted(figures)[int(len(figures) * 0.95) - 1]
    return out


def measure_netron(file: Path, limit: float) -> dict[str, Any]:
    port = free_port()
    program = f"import netron, time; netron.serve({str(file)!r}, None, address=('127.0.0.1', {port}), browse=False); time.sleep(9999)"
    with server(sys.executable, "-c", program, port=port):
        chromium = Chromium()
        try:
            # Netron forbids eval, which Playwright uses to ask the page anything.
            chromium.page.add_init_script(
                "const own = window.eval; Object.defineProperty(window, 'eval', { get: () => own, set: () => {} });"
            )
            chromium.page.context.add_cookies([{"name": "consent", "value": "1", "domain": "127.0.0.1", "path": "/"}])
            chromium.page.goto(f"http://127.0.0.1:{port}/", wait_until="commit")
            shown = "document.body && document.body.className === 'default' && !!document.querySelector('#canvas, #target svg')"
            failed = watch(chromium, shown, limit)
            if failed:
                return {"failed": failed}
            time.sleep(0.5)
            return {"first": cpu(chromium.root) - start_up_of("netron"), "memory_mb": chromium.peak()}
        finally:
            chromium.close()


def measure_model_explorer(file: Path, limit: float) -> dict[str, Any]:
    port = free_port()
    program = shutil.which("model-explorer") or str(Path(sys.executable).parent / "model-explorer")
    command = (program, "--host", "127.0.0.1", "--port", str(port), "--no_open_in_browser", "--skip_health_check")
    with server(*command, port=port):
        chromium = Chromium(gl=True)
        try:
            chromium.page.add_init_script(
                """window.__done = {}; const W = window.Worker;
                window.Worker = class extends W { constructor(...a) { super(...a);
                    this.addEventListener('message', (m) => { const k = m.data && m.data.eventType; if (k !== undefined) window.__done[k] = true; }); } };"""
            )
            data = urllib.parse.quote(json.dumps({"models": [{"url": str(file)}]}))
            chromium.page.goto(f"http://127.0.0.1:{port}/?data={data}&show_open_in_new_tab=0", wait_until="commit")
            failed = watch(chromium, "!!window.__done[1]", limit)
            if failed:
                return {"failed": failed}
            time.sleep(1.0)
            first = cpu(chromium.root) - start_up_of("model explorer")
            before = cpu(chromium.root)
            chromium.page.evaluate(
                """() => { delete window.__done[3];
                    const icon = [...document.querySelectorAll('mat-icon')].find((e) => e.textContent.trim() === 'unfold_more_double');
                    (icon.parentElement || icon).click(); }"""
            )
            failed = watch(chromium, "!!window.__done[3]", limit)
            time.sleep(1.0)
            expand: dict[str, Any] = {"expand_failed": failed} if failed else {"expand": cpu(chromium.root) - before}
            return {"first": first, "memory_mb": chromium.peak(), **expand}
        finally:
            chromium.close()


_START_UP: dict[str, float] = {}


def start_up_of(tool: str) -> float:
    return _START_UP.get(tool, 0.0)


MEASURES = {
    "opscope": (".opscope", measure_opscope),
    "netron": (".onnx", measure_netron),
    "model explorer": (".json", measure_model_explorer),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=["syn-1k", "syn-5k", "syn-100k", "train-5k"])
    parser.add_argument(
        "--flat", nargs="*", default=["syn-5k"], help="these also without modules, as Netron draws them"
    )
    parser.add_argument("--only", nargs="+", default=list(MEASURES))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120)
    args = parser.parse_args()
    print(f"opscope {opscope.__version__}; calibration loop: {calibrate():.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        smallest = make("syn-250")
        smallest.nodes, smallest.inputs, smallest.name = smallest.nodes[:2], smallest.inputs[:2], "empty"
        write(smallest, place)
        for tool in args.only:
            ending, measure = MEASURES[tool]
            tries = [measure(place / f"empty{ending}", args.limit).get("first", 0.0) for _ in range(3)]
            _START_UP[tool] = min(tries)
            print(f"{tool}: start-up of a page with two nodes {min(tries):.2f} s, taken off below")
        for name in args.graphs:
            model = make(name)
            for flat in [False, True] if name in args.flat else [False]:
                write(model, place, flat)
                label = f"{name}-flat" if flat else name
                for tool in args.only:
                    ending, measure = MEASURES[tool]
                    if not (place / f"{label}{ending}").exists():
                        continue
                    runs = [measure(place / f"{label}{ending}", args.limit) for _ in range(args.runs)]
                    best = min(runs, key=lambda run: run.get("first", float("inf")))
                    figures = {k: round(v, 3) if isinstance(v, float) else v for k, v in best.items()}
                    print(f"{label:14} {len(model.nodes):>9,} nodes  {tool:15} {json.dumps(figures)}", flush=True)


if __name__ == "__main__":
    main()
