"""The one check for readers: what a file becomes, in text, must not change unnoticed.

Three things at once: the dump equals the golden file; the file is recognised by its content, without its
name; and written as .opscope and read back it is the same capture.
"""

from __future__ import annotations

import io
from pathlib import Path

from opscope import wire
from opscope.ir import Capture, verify_capture
from opscope.ir.text import dump
from opscope.readers import registry
from opscope.readers.source import Options, Source

GOLDEN = Path(__file__).parent / "golden"


def check(path: Path, golden: str, overwrite: bool, options: Options | None = None) -> Capture:
    options = options or Options()
    capture = registry.read(Source.of(path), options)
    verify_capture(capture)
    text = dump(capture)
    unchanged(text, golden, overwrite)

    nameless = registry.read(Source("nameless", data=path.read_bytes()), options)
    assert nameless.origin == capture.origin
    assert [s.graph.n_nodes for s in nameless.stages] == [s.graph.n_nodes for s in capture.stages]

    assert dump(round_trip(capture)) == text
    return capture


def unchanged(text: str, golden: str, overwrite: bool) -> None:
    """The text is that of a golden file, or becomes it with --overwrite."""
    expected = GOLDEN / golden
    if overwrite:
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8"), f"{golden} changed: pytest --overwrite, and look at the diff"


def round_trip(capture: Capture) -> Capture:
    file = io.BytesIO()
    wire.write(capture, file)
    return wire.read(io.BytesIO(file.getvalue()), len(file.getvalue()))
