"""The fonts of PNG and PDF, which come with opscope: the same picture on every machine, and never one without text.

Liberation Sans has the widths that the layout counts with; Droid Sans Fallback has Chinese, Japanese and Korean.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from importlib.resources import files
from pathlib import Path

REGULAR, BOLD, CJK = "LiberationSans-Regular", "LiberationSans-Bold", "DroidSansFallback"
INSTEAD = "□"


def path(name: str) -> Path:
    return Path(str(files("opscope") / "export" / "_fonts" / f"{name}.ttf"))


@cache
def signs(name: str) -> frozenset[int]:
    """The code points that a font has a glyph for, from its `cmap`."""
    data = path(name).read_bytes()
    (tables,) = struct.unpack_from(">H", data, 4)
    start = next(
        offset for tag, _, offset, _ in struct.iter_unpack(">4sLLL", data[12 : 12 + 16 * tables]) if tag == b"cmap"
    )
    (count,) = struct.unpack_from(">H", data, start + 2)
    found: set[int] = set()
    for i in range(count):
        _, _, offset = struct.unpack_from(">HHL", data, start + 4 + 8 * i)
        (kind,) = struct.unpack_from(">H", data, start + offset)
        if kind == 4:
            found |= _segments(data, start + offset)
        elif kind == 12:
            (groups,) = struct.unpack_from(">L", data, start + offset + 12)
            for first, last, _ in struct.iter_unpack(">LLL", data[start + offset + 16 :][: 12 * groups]):
                found.update(range(first, last + 1))
    return frozenset(found)


def _segments(data: bytes, at: int) -> set[int]:
    """Format 4: segments of code points, whose glyph numbers are computed or looked up; 0 is no glyph."""
    (double,) = struct.unpack_from(">H", data, at + 6)
    n = double // 2
    ends = struct.unpack_from(f">{n}H", data, at + 14)
    starts = struct.unpack_from(f">{n}H", data, at + 16 + double)
    deltas = struct.unpack_from(f">{n}H", data, at + 16 + 2 * double)
    ranges = at + 16 + 3 * double
    offsets = struct.unpack_from(f">{n}H", data, ranges)
    found: set[int] = set()
    for i, (first, last, delta, offset) in enumerate(zip(starts, ends, deltas, offsets, strict=True)):
        for code in range(first, min(last, 0xFFFE) + 1):
            if offset:
                (glyph,) = struct.unpack_from(">H", data, ranges + 2 * i + offset + 2 * (code - first))
            else:
                glyph = (code + delta) & 0xFFFF
            if glyph:
                found.add(code)
    return found


def drawable(svg: str) -> tuple[str, list[str]]:
    """The drawing with □ for each sign that no font has, and these signs. Without a glyph, text is dropped silently."""
    known = signs(REGULAR) | signs(CJK)
    strange = {c for c in set(svg) if ord(c) not in known and not c.isspace()}
    if not strange:
        return svg, []
    seen = set("".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)))
    # U+FFFD is the layout's own mark for what must not be drawn, such as a control character.
    return svg.translate({ord(c): INSTEAD for c in strange}), sorted((strange & seen) - {"\ufffd"})
