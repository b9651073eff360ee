"""Progress of a recording in a terminal: a line on stderr that disappears when the script prints something."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

_EVERY = 0.1  # seconds


@contextmanager
def progress(count: Callable[[], int], total: int | None = None) -> Generator[Callable[[str], None], None, None]:
    """Show the number of operators while the block runs, or nothing if stderr is not a terminal. Yields a function
    that begins the next of `total` parts."""
    if not sys.stderr.isatty():
        yield lambda name: None
        return
    line = _Line(count, total)
    before = sys.stdout, sys.stderr
    sys.stderr = _Beside(sys.stderr, line)
    if sys.stdout.isatty():  # in a pipe or a file no line is shown, so the streams need no wrapper
        sys.stdout = _Beside(sys.stdout, line)
    thread = threading.Thread(target=line.run, name="opscope progress", daemon=True)
    thread.start()
    try:
        yield line.begin
    finally:
        sys.stdout, sys.stderr = before
        line.ended.set()
        thread.join()
        line.hide()


@contextmanager
def counted() -> Generator[Callable[[str], None], None, None]:
    """Yields a function that shows a line in the place of the last one, or does nothing if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return

    def show(text: str) -> None:
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()

    try:
        yield show
    finally:
        show("\r")


class _Line:
    """The progress line. It is shown only while the cursor is at the start of a line."""

    def __init__(self, count: Callable[[], int], total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.lock = threading.RLock()
        self.ended = threading.Event()
        self._count = count
        self._most = 0
        self._is_shown = False
        self._is_free = True
        bar = [BarColumn(bar_width=20)] if total else []
        words = "{task.description}" if total else "{task.description}  {task.fields[operators]:,} operators"
        self._bar = Progress(
            SpinnerColumn(),
            *bar,
            TextColumn(words),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("recording", total=total, operators=0)
        self._parts = -1

    def run(self) -> None:
        while not self.ended.wait(_EVERY):
            self._most = max(self._most, self._count())
            with self.lock:
                if self._is_free:
                    self._bar.update(self._task, operators=self._most)
                    if not self._is_shown:
                        self._bar.start()
                        self._is_shown = True
                    self._bar.refresh()

    def begin(self, name: str) -> None:
        with self.lock:
            self._parts += 1
            self._bar.update(self._task, description=name, completed=self._parts)

    def hide(self) -> None:
        with self.lock:
            if self._is_shown:
                self._is_shown = False
                self._bar.stop()

    def written(self, text: str) -> None:
        """The script is about to write `text`."""
        if text:
            self.hide()
            self._is_free = text.endswith("\n")


class _Beside:
    """The script's own stream, except that the progress line is hidden before every write."""

    def __init__(self, stream: Any, line: _Line) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        with self._line.lock:
            self._line.written(text)
            written = self._stream.write(text)
            self._stream.flush()
            return written

    def writelines(self, lines: Any) -> None:
        for text in lines:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)
