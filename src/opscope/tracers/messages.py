"""Python objects that ranks send each other while each runs in a process of its own, which may run later or earlier.

A message stays where it was put, so that any number of ranks can take it: all groups of one dimension of a mesh do the
same, and only some of their ranks are run.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opscope.errors import OpscopeError

_PAUSE = 0.01  # seconds between two looks


class Mailbox:
    """Messages as files of a folder. `waits` is called with the rank whose message is not there yet, `goes_on` when it
    has come; without them there is nobody to wait for."""

    def __init__(
        self,
        folder: Path,
        waits: Callable[[int], None] | None = None,
        goes_on: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._waits = waits
        self._goes_on = goes_on

    def put(self, key: tuple[Any, ...], message: Any) -> None:
        path = self._path(key)
        made = path.with_suffix(f".{os.getpid()}")
        made.write_bytes(pickle.dumps(message))
        made.replace(path)

    def take(self, key: tuple[Any, ...], peer: int) -> Any:
        path = self._path(key)
        if not path.exists():
            if self._waits is None:
                raise OpscopeError(f"rank {peer} would have sent an object by now, and it is not run")
            self._waits(peer)
            while not path.exists():
                time.sleep(_PAUSE)
            self._goes_on()
        return pickle.loads(path.read_bytes())  # noqa: TID251 (this program's own, in a folder of its own)

    def _path(self, key: tuple[Any, ...]) -> Path:
        return self._folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.message"
