"""python -m opscope, and the `opscope` program."""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> None:
    """The command line. Ctrl-C ends it quietly even while it is still being loaded."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, _leave)
    from opscope.cli import main as run

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(130)  # nothing has begun


if __name__ == "__main__":
    main()
