"""SVG to PDF by reportlab: vectors, and text that can be selected and searched.

Only what viewer/src/svg writes is understood: rectangles, paths of M, L, Q and Z, text, groups with an opacity, and a
style sheet of one class each. Ready-made converters know more of SVG but take one font for a text, and names mix
Latin with Chinese.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any
from xml.etree import ElementTree

from . import fonts
from .drawing import missing
from .size import Size, dimensions

_SVG = "{http://www.w3.org/2000/svg}"
_POINTS = 0.75  # of a pixel
_LONGEST = 14_400  # points; PDF readers take no more
_CURVE = 0.5523  # of a radius: a quarter circle by a Bézier curve

Style = dict[str, str]


def render(svg: str, size: Size) -> bytes:
    try:
        from reportlab.pdfgen.canvas import Canvas
    except ImportError:
        raise missing("reportlab") from None
    width, height = dimensions(svg)
    scale = min((size.scale(width, height) or 1) * _POINTS, _LONGEST / width, _LONGEST / height)
    root = ElementTree.fromstring(svg)
    out = io.BytesIO()
    # invariant: no date and no random name in the file.
    canvas: Any = Canvas(out, pagesize=(width * scale, height * scale), invariant=1, pageCompression=1)
    canvas.setTitle(root.findtext(f"{_SVG}title") or "")
    canvas.setCreator("opscope")
    canvas.setAuthor("")
    left, top = map(float, root.attrib["viewBox"].split()[:2])
    canvas.transform(scale, 0, 0, -scale, -left * scale, (height + top) * scale)
    _Pen(canvas, _rules(root.findtext(f"{_SVG}style") or "")).group(root)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def _rules(sheet: str) -> dict[str, Style]:
    return {selector: _declared(body) for selector, body in re.findall(r"([.\w]+)\{([^}]*)\}", sheet)}


def _declared(body: str) -> Style:
    return dict(part.split(":", 1) for part in body.split(";") if ":" in part)


class _Pen:
    def __init__(self, canvas: Any, rules: dict[str, Style]) -> None:
        self.canvas = canvas
        self.rules = rules
        self.ready: dict[str, str] = {}  # font -> its name in reportlab

    def group(self, element: ElementTree.Element) -> None:
        for child in element:
            tag = child.tag.removeprefix(_SVG)
            if tag == "g":
                self.canvas.saveState()
                self._opacity(child.attrib)
                self.group(child)
                self.canvas.restoreState()
            elif tag in ("rect", "path", "text"):
                getattr(self, tag)(child, self._style(tag, child))

    def _style(self, tag: str, element: ElementTree.Element) -> Style:
        """Attributes, then the style sheet, then the element's own style: each stronger than the one before."""
        style = dict(element.attrib)
        for name in (tag, *(f".{name}" for name in element.get("class", "").split())):
            style |= self.rules.get(name, {})
        return style | _declared(element.get("style", ""))

    def _opacity(self, style: Style) -> None:
        if "opacity" in style:
            self.canvas.setFillAlpha(float(style["opacity"]))
            self.canvas.setStrokeAlpha(float(style["opacity"]))

    def _paint(self, shape: Any, style: Style) -> None:
        fill, stroke = style.get("fill", "#000000"), style.get("stroke", "none")
        changed = "opacity" in style or "stroke-dasharray" in style
        if changed:
            self.canvas.saveState()
            self._opacity(style)
            if "stroke-dasharray" in style:
                self.canvas.setDash([float(x) for x in style["stroke-dasharray"].split()])
        if fill != "none":
            self.canvas.setFillColor(_colour(fill))
        if stroke != "none":
            self.canvas.setStrokeColor(_colour(stroke))
            self.canvas.setLineWidth(float(style.get("stroke-width", 1)))
        self.canvas.drawPath(shape, stroke=int(stroke != "none"), fill=int(fill != "none"))
        if changed:
            self.canvas.restoreState()

    def rect(self, element: ElementTree.Element, style: Style) -> None:
        x, y, w, h = (float(element.get(name, "0")) for name in ("x", "y", "width", "height"))
        r = float(element.get("rx", "0"))
        shape = self.canvas.beginPath()
        if r <= 0:
            shape.rect(x, y, w, h)
        else:
            k = r * (1 - _CURVE)
            shape.moveTo(x + r, y)
            shape.lineTo(x + w - r, y)
            shape.curveTo(x + w - k, y, x + w, y + k, x + w, y + r)
            shape.lineTo(x + w, y + h - r)
            shape.curveTo(x + w, y + h - k, x + w - k, y + h, x + w - r, y + h)
            shape.lineTo(x + r, y + h)
            shape.curveTo(x + k, y + h, x, y + h - k, x, y + h - r)
            shape.lineTo(x, y + r)
            shape.curveTo(x, y + k, x + k, y, x + r, y)
            shape.close()
        self._paint(shape, style)

    def path(self, element: ElementTree.Element, style: Style) -> None:
        shape = self.canvas.beginPath()
        x = y = 0.0
        for step, numbers in re.findall(r"([MLQZ])([^MLQZ]*)", element.get("d", "")):
            at = [float(number) for number in numbers.split()]
            if step == "M":
                shape.moveTo(*at)
            elif step == "L":
                shape.lineTo(*at)
            elif step == "Q":  # a cubic curve with the same course
                cx, cy, ex, ey = at
                shape.curveTo(*(p + (c - p) * 2 / 3 for p, c in ((x, cx), (y, cy), (ex, cx), (ey, cy))), ex, ey)
            else:
                shape.close()
            x, y = at[-2:] or (x, y)
        self._paint(shape, style)

    def text(self, element: ElementTree.Element, style: Style) -> None:
        text = element.text or ""
        size = float(style.get("font-size", "13").removesuffix("px"))
        runs = [(self._font(name), run) for name, run in _runs(text, int(style.get("font-weight", "400")) >= 600)]
        x, y = float(element.get("x", "0")), float(element.get("y", "0"))
        anchor = style.get("text-anchor")
        if anchor in ("middle", "end"):
            width = sum(self.canvas.stringWidth(run, font, size) for font, run in runs)
            x -= width / 2 if anchor == "middle" else width
        self.canvas.setFillColor(_colour(style.get("fill", "#000000")))
        line = self.canvas.beginText()
        line.setTextTransform(1, 0, 0, -1, x, y)
        for font, run in runs:
            line.setFont(font, size)
            line.textOut(run)
        self.canvas.drawText(line)

    def _font(self, name: str) -> str:
        if name not in self.ready:
            from reportlab.pdfbase import pdfmetrics
            from reportlab.pdfbase.ttfonts import TTFont

            self.ready[name] = f"opscope {name}"
            pdfmetrics.registerFont(TTFont(self.ready[name], str(fonts.path(name))))
        return self.ready[name]


def _runs(text: str, bold: bool) -> Iterator[tuple[str, str]]:
    latin = fonts.BOLD if bold else fonts.REGULAR
    known = fonts.signs(latin)
    for has, run in groupby(text, key=lambda c: ord(c) in known):
        yield latin if has else fonts.CJK, "".join(run)


def _colour(css: str) -> Any:
    from reportlab.lib.colors import HexColor

    return HexColor(css)
