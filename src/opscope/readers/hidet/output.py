"""Graphs that a script of Hidet's printed after much else: found by looking through the whole output."""

from __future__ import annotations

from opscope.ir import Capture
from opscope.readers import hidet
from opscope.readers.source import Options, Source

NAME = "hidet-output"
_SEARCHED = 256 << 20
_CHUNK = 4 << 20


def match(source: Source) -> bool:
    if source.is_folder or b"\0" in source.head:
        return False
    rest = b""
    with source.open() as file:
        for _ in range(_SEARCHED // _CHUNK):
            chunk = file.read(_CHUNK)
            if not chunk:
                return hidet.is_printed_in(rest)
            whole, newline, rest = (rest + chunk).rpartition(b"\n")  # a line may lie across two chunks
            if hidet.is_printed_in(whole):
                return True
            rest = rest if newline else rest[-_CHUNK:]
    return False


def read(source: Source, options: Options) -> Capture:
    return hidet.read(source, options)
