"""The run of a training step as a video (.webm): the page itself records it, in a Chromium that is installed here.

No encoder of video comes with Python. Chromium has one, so the page is opened in it without a window, plays the run and
hands over the file. Both ends are on loopback, behind a path that nobody else knows; nothing else is asked for.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from opscope.errors import OpscopeError
from opscope.files import replacing
from opscope.ir import PHASES, Capture

from . import html
from .registry import Look, Options

BROWSER = "OPSCOPE_BROWSER"  # the environment variable that names one
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge")
_ELSEWHERE = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
_FLAGS = (
    *("--headless=new", "--disable-gpu", "--mute-audio", "--no-first-run", "--no-default-browser-check"),
    *("--no-proxy-server", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-extensions", "--window-size=1400,1100"),
)
_PATIENCE = 300  # seconds: the run takes eight, a busy machine and a large graph take longer
_LARGEST = 1 << 29
_EBML = b"\x1aE\xdf\xa3"  # what a .webm begins with
_HONOURED = {"play", "theme", "phases", "direction", "whole", "open"}

# The page has a strict policy of its own; what drives it stands around it.
_DRIVER = """<!doctype html><meta charset="utf-8"><title>opscope</title>
<iframe src="page{hash}" style="width:1280px;height:960px;border:0"></iframe>
<script>
(async () => {{
  const send = (path, body) => fetch(path, {{ method: 'POST', body }});
  try {{
    const frame = document.querySelector('iframe');
    while (!frame.contentWindow.opscope?.idle) await new Promise((done) => setTimeout(done, 50));
    const page = frame.contentWindow.opscope;
    await page.idle();
    for (const scope of {opened}) await page.expand(scope);
    await send('video', await page.video({theme}));
  }} catch (error) {{
    await send('error', String(error?.message ?? error));
  }}
}})();
</script>
"""


def export(capture: Capture, path: Path, options: Options) -> None:
    look = options.look
    strange = [f.name for f in fields(Look) if f.name not in _HONOURED and getattr(look, f.name) != f.default]
    if strange:
        raise OpscopeError(f"{path}: a video has no {', '.join(strange)} (pictures do: .svg, .png, .pdf)")
    if look.theme not in (None, "light", "dark"):
        raise OpscopeError(f"theme: {look.theme!r} is not known (there are: light, dark)")
    stage = capture.stage(options.stage)
    phases = set(stage.graph.node_phase.tolist())
    if not {PHASES.index("forward"), PHASES.index("backward")} <= phases:
        raise OpscopeError(
            f"{path}: a video shows the run of a training step, and {stage.name!r} has no forward and backward pass "
            "(record one with opscope.record, or write .svg)"
        )
    browser = _browser(path)
    page = html.render(capture, path.stem).encode("utf-8", "backslashreplace")
    driver = _DRIVER.format(
        hash=_hash(capture.stages.index(stage), options),
        opened=_script([look.open] if isinstance(look.open, str) else list(look.open)),
        theme=_script(look.theme or "light"),
    )
    options.say(f"{path}: {Path(browser).name} plays the run to record it")
    content = _record(browser, driver.encode(), page, path)
    with replacing(path) as file:
        file.write(content)


def _script(value: object) -> str:
    from .page import escaped_json

    return escaped_json(value)


def _hash(stage: int, options: Options) -> str:
    """What was asked for, as the page's address says it (viewer/src/state/hash.ts)."""
    look = options.look
    wanted = (look.phases,) if isinstance(look.phases, str) else look.phases
    for phase in wanted:
        if phase not in PHASES:
            raise OpscopeError(f"phase: {phase!r} is not known (there are: {', '.join(PHASES)})")
    parts = {"s": str(stage)} if stage else {}
    if look.whole or options.depth is not None:
        parts["o"] = "*" if look.whole else f"*{options.depth}"
    if wanted:
        parts["h"] = ",".join(str(i) for i, phase in enumerate(PHASES) if phase not in wanted)
    if look.direction == "right":
        parts["d"] = "right"
    return "#" + "&".join(f"{key}={quote(value, safe='*,')}" for key, value in parts.items()) if parts else ""


def _browser(path: Path) -> str:
    named = os.environ.get(BROWSER)
    if named:
        found = shutil.which(named)
        if found is None:
            raise OpscopeError(f"{path}: {BROWSER} names {named!r}, which is no program that can be run")
        return found
    for name in (*_NAMES, *_ELSEWHERE):
        found = shutil.which(name)
        if found is not None:
            return found
    raise OpscopeError(
        f"{path}: a video is recorded by Chromium, Chrome or Edge, and none is on the PATH; install one, or name it in "
        f"{BROWSER}; `--play -o {path.stem}.svg` writes an animation without one"
    )


class _Result:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.content = b""
        self.failed = ""


def _record(browser: str, driver: bytes, page: bytes, path: Path) -> bytes:
    result = _Result()
    with _serving(driver, page, result) as url, _running(browser, url) as process:
        for _ in range(_PATIENCE * 4):
            if result.done.wait(0.25) or process.poll() is not None:
                break
    if result.failed:
        raise OpscopeError(f"{path}: the page could not record it: {result.failed}")
    if not result.content.startswith(_EBML):
        ended = "took too long" if process.returncode is None else f"ended with {process.returncode}"
        raise OpscopeError(f"{path}: no video came back from {browser} ({ended}); write .svg, or save it from the page")
    return result.content


@contextlib.contextmanager
def _serving(driver: bytes, page: bytes, result: _Result) -> Generator[str]:
    secret = f"/{secrets.token_urlsafe(24)}/"

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def _name(self) -> str | None:
            """What is asked for, by who knows the path and came to this address."""
            host = f"127.0.0.1:{server.server_port}"
            is_ours = self.headers.get("Host") == host and self.path.startswith(secret)
            return self.path[len(secret) :] if is_ours else None

        def _answer(self, status: int, content: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            name = self._name()
            content = None if name is None else {"": driver, "page": page}.get(name)
            self._answer(404) if content is None else self._answer(200, content)

        def do_POST(self) -> None:
            name, length = self._name(), self.headers.get("Content-Length", "")
            if name not in ("video", "error") or not length.isdigit() or int(length) > _LARGEST:
                self._answer(404)
                return
            content = self.rfile.read(int(length))
            self._answer(200)
            if name == "video":
                result.content = content
            else:
                result.failed = "".join(c if c.isprintable() else " " for c in content.decode("utf-8", "replace"))[:500]
            result.done.set()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{secret}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def _running(browser: str, url: str) -> Generator[subprocess.Popen[bytes]]:
    """The browser with a profile of its own, which goes with it."""
    profile = tempfile.mkdtemp(prefix="opscope-video-")
    # Chromium's sandbox does not run as root; what it shows here is the page of this package.
    root = ["--no-sandbox"] if sys.platform != "win32" and os.geteuid() == 0 else []
    command = [browser, *_FLAGS, *root, f"--user-data-dir={profile}", url]
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, start_new_session=True, stdin=null, stdout=null, stderr=null)
    try:
        yield process
    finally:
        # It has children of its own: all of its session goes.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(profile, ignore_errors=True)
