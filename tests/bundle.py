"""The viewer's bundle for tests of what is around it: the real one where it is built, else a stand-in."""

from __future__ import annotations

import sys
from importlib.resources import files

import pytest

from opscope.export import page

STAND_IN = {"viewer.js": b"/* js </script> <!-- */", "viewer.css": b"/* css </style> */", "engine.js": b"/* engine */"}
BUILT = all((files("opscope") / "_viewer" / name).is_file() for name in STAND_IN)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile to what is around it, which the real bundle is not."""
    monkeypatch.setattr(page, "asset", STAND_IN.__getitem__)


def program(*args: str) -> list[str]:
    """The command line, in a process of its own."""
    patch = "" if BUILT else f"import opscope.export.page as page; page.asset = {STAND_IN!r}.__getitem__; "
    return [sys.executable, "-c", f"{patch}from opscope.cli import main; main()", *args]
