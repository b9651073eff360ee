"""SVG to PNG by resvg."""

from __future__ import annotations

import re

from opscope.errors import OpscopeError

from . import fonts
from .drawing import missing
from .size import Size, dimensions

# More pixels per unit look no better on any screen; more in all do not open in common programs.
_SHARP = 2.0
_MOST_SIDE = 16_384
_MOST_PIXELS = 64_000_000
_HARD_LIMIT = 500_000_000
# resvg takes minutes for lines that cross a hundred thousand pixels, and the result is a grey cloud.
_MOST_TEXT = 8_000_000
# Below these, dashes run together and text is a smear: resvg would spend long on nothing.
_DASHES_FROM = 0.25
_TEXT_FROM = 0.12


def render(svg: str, size: Size) -> tuple[bytes, float]:
    """The PNG, and its pixels per unit of the drawing."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise missing("resvg (resvg-py)") from None
    width, height = dimensions(svg)
    scale = size.scale(width, height) or min(
        _SHARP, _MOST_SIDE / width, _MOST_SIDE / height, (_MOST_PIXELS / (width * height)) ** 0.5
    )
    if len(svg) > _MOST_TEXT:
        raise OpscopeError(
            f"{svg.count('<rect'):,} boxes and bars are too many for a PNG, where they cannot be read: "
            "write an .svg or a .pdf, or close modules with --depth N"
        )
    svg = _coarse(svg, scale)
    across, down = max(1, round(width * scale)), max(1, round(height * scale))
    if across * down > _HARD_LIMIT:
        raise OpscopeError(f"size: {across:,} × {down:,} pixels are too many for a PNG; write an .svg or a .pdf")
    behind = re.search(r'<rect [^>]*fill="(#\w+)"', svg)  # the side that is rounded up would end in an empty line
    try:
        content = svg_to_bytes(
            svg_string=svg,
            background=behind[1] if behind else None,
            # One side: resvg rounds the other one, and given both it takes neither exactly.
            width=None if down == size.height else across,
            height=down if down == size.height else None,
            skip_system_fonts=True,
            font_files=[str(fonts.path(name)) for name in (fonts.REGULAR, fonts.BOLD, fonts.CJK)],
            font_family="Liberation Sans",
            sans_serif_family="Liberation Sans",
        )
    except ValueError as error:
        raise OpscopeError(f"resvg could not draw the picture: {error}") from None
    return bytes(content), scale


def _coarse(svg: str, scale: float) -> str:
    """The drawing without what is too small to see at this scale."""
    if scale < _DASHES_FROM:
        svg = svg.replace(' stroke-dasharray="5 4"', "")
    return re.sub(r"<text[^>]*>[^<]*</text>", "", svg) if scale < _TEXT_FROM else svg
