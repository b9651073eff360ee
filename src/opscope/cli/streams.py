"""Standard output as it comes: closed, full, a pipe whose reader has left, or without most of Unicode."""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import sys
from contextlib import suppress
from typing import Any

# What our own tables and drawings are made of; one sign for one, so that columns stay in line.
_PLAIN = {
    "█": "#", "▏": "|", "▒": ":", "…": "~", "×": "x", "–": "-", "−": "-", "→": ">", "±": "+", "·": ".", "≥": ">=",
    "≤": "<=", "│": "|", "├": "|", "└": "`", "─": "-", "━": "-", "•": "*", "’": "'", "“": '"', "”": '"',
}  # fmt: skip


_ASCII = "opscope-ascii"  # under its own name click takes it for a mistake, and writes UTF-8


class OutputClosed(Exception):
    """The reader of our output closed the pipe (`opscope ir X | head`)."""


def prepare() -> None:
    """Let standard output take every text: what its encoding has no sign for is written in ASCII."""
    codecs.register_error("opscope", _in_ascii)
    codecs.register(_codec)
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = _Closed()
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = io.StringIO()  # nobody reads it
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding=_ASCII if is_ascii else None, errors="opscope")


def to_json(data: Any) -> str:
    """JSON for a program: the same data in every encoding."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return json.dumps(data, ensure_ascii=codecs.lookup(encoding).name != "utf-8", indent=2)


def flush() -> None:
    """Write what is still held, while an error can still be told."""
    sys.stdout.flush()


def give_up() -> None:
    """Drop what could not be written: Python would try again when it ends, and complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != _ASCII:
        return None
    ascii = codecs.lookup("ascii")
    return codecs.CodecInfo(
        ascii.encode,
        ascii.decode,
        ascii.streamreader,
        ascii.streamwriter,
        ascii.incrementalencoder,
        ascii.incrementaldecoder,
        name=_ASCII,
    )


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign) or _escaped(sign) for sign in signs), error.end


def _escaped(sign: str) -> str:
    return "?" if "\ud800" <= sign <= "\udfff" else sign.encode("ascii", "backslashreplace").decode("ascii")


class _Closed(io.TextIOBase):
    """Standard output of a program that was started without one."""

    def write(self, s: str, /) -> int:
        raise OSError(errno.EBADF, "standard output is closed")
