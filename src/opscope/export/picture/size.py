"""How large a picture is: as drawn, of a given width, or as large as fits into a box."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opscope.errors import OpscopeError

_LARGEST = 32_000


@dataclass(frozen=True)
class Size:
    width: int | None = None
    height: int | None = None

    @staticmethod
    def of(text: str | None) -> Size:
        """`1600` or `1600x900`."""
        if text is None:
            return Size()
        match = re.fullmatch(r"(\d{1,9})(?:[x×](\d{1,9}))?", str(text).strip(), re.ASCII | re.IGNORECASE)
        if match is None:
            raise OpscopeError(f"size: {text!r} is not a size: write 1600 (the width) or 1600x900 (fits into it)")
        width, height = int(match[1]), int(match[2]) if match[2] else None
        for side in (width, height):
            if side is not None and not 16 <= side <= _LARGEST:
                raise OpscopeError(f"size: {side} is not between 16 and {_LARGEST:,} pixels")
        return Size(width, height)

    def scale(self, width: float, height: float) -> float | None:
        """By how much a drawing of this size grows; None where no size was asked for."""
        if self.width is None:
            return None
        return min(self.width / width, self.height / height) if self.height else self.width / width

    def set_on(self, svg: str) -> str:
        width, height = dimensions(svg)
        scale = self.scale(width, height)
        if scale is None:
            return svg
        head, tag, rest = svg.partition(">")
        head = re.sub(r' width="[^"]*"', f' width="{width * scale:.6g}"', head)
        return re.sub(r' height="[^"]*"', f' height="{height * scale:.6g}"', head) + tag + rest


def dimensions(svg: str) -> tuple[float, float]:
    """Width and height of a drawing; it begins with its <svg>."""
    head = svg[: svg.index(">")]
    found = re.search(r' width="([\d.]+)" height="([\d.]+)"', head)
    assert found is not None, head
    return float(found[1]), float(found[2])
