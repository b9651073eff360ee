"""Pictures without a browser: .svg, .png and .pdf, drawn by the page's own code or by Graphviz."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from opscope.errors import OpscopeError
from opscope.export import edge_words
from opscope.export.registry import Look, Options
from opscope.files import replacing
from opscope.ir import PHASES, Capture

from . import graphviz
from .drawing import Drawing, draw
from .size import Size

_CHOICES = {"direction": ("down", "right"), "theme": ("light", "dark"), "engine": ("opscope", "graphviz")}


def export(capture: Capture, path: Path, options: Options) -> None:
    look = _checked(options.look)
    size = Size.of(look.size)
    stage = capture.stage(options.stage)
    if look.play and (options.ending != ".svg" or look.engine == "graphviz"):
        raise OpscopeError(f"{path}: --play writes an animated .svg, drawn by opscope itself, or a video (.webm)")
    if look.engine == "graphviz":
        content = graphviz.render(capture, options, look, size)
    else:
        picture = draw(stage, capture, options, look)
        _tell(path, picture, stage.graph.n_nodes, options)
        content = _written(picture.svg, size, path, options)
    with replacing(path) as file:
        file.write(content)


def _checked(look: Look) -> Look:
    """With defaults in place of what was not asked for."""
    for name, choices in _CHOICES.items():
        given = getattr(look, name)
        if given is None:
            look = dataclasses.replace(look, **{name: choices[0]})
        elif given not in choices:
            raise OpscopeError(f"{name}: {given!r} is not known (there are: {', '.join(choices)})")
    phases = (look.phases,) if isinstance(look.phases, str) else tuple(look.phases)
    for phase in phases:
        if phase not in PHASES:
            raise OpscopeError(f"phase: {phase!r} is not known (there are: {', '.join(PHASES)})")
    opened = (look.open,) if isinstance(look.open, str) else tuple(look.open)
    return dataclasses.replace(look, phases=phases, open=opened, edges=edge_words.checked(look.edges))


def _written(svg: str, size: Size, path: Path, options: Options) -> bytes:
    if options.ending == ".svg":
        return size.set_on(svg).encode("utf-8", "replace")
    from . import fonts, pdf, png

    svg, missing = fonts.drawable(svg)
    if missing:
        shown = " ".join(f"{c} (U+{ord(c):04X})" for c in missing[:4])
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        options.say(f"{path}: the font has no sign for {shown}{more}: drawn as {fonts.INSTEAD}; .svg keeps the text")
    if options.ending == ".pdf":
        return pdf.render(svg, size)
    content, scale = png.render(svg, size)
    if scale < 0.5:
        options.say(f"{path}: text is at {scale:.0%} of its size: .svg and .pdf stay sharp, --depth closes modules")
    return content


def _tell(path: Path, picture: Drawing, nodes: int, options: Options) -> None:
    """What a person who looks at the picture should know about it."""
    if picture.unknown:
        raise OpscopeError(f"open: no module {picture.unknown[0]!r} (write its path, such as model/layer1)")
    if picture.depths:
        levels = {depth for _, depth in picture.depths}
        each = ", ".join(f"{depth} ({phase})" for phase, depth in sorted(picture.depths, key=_order))
        options.say(
            f"{path}: {picture.all:,} boxes cannot be read, so modules are closed below level "
            f"{levels.pop() if len(levels) == 1 else each}: {picture.boxes:,} boxes; "
            "--depth N, --open SCOPE and --whole show more"
        )
    elif picture.closed:
        options.say(
            f"{path}: {picture.closed} module{'s' if picture.closed > 1 else ''} with more operators than anybody "
            "could read stayed closed: --open SCOPE opens one, --whole draws everything"
        )
    elif picture.boxes == 0 and nodes:
        options.say(f"{path}: empty: none of its {nodes:,} operators is in the phase that was asked for")


def _order(phase: tuple[str, int]) -> int:
    return PHASES.index(phase[0]) if phase[0] in PHASES else -1
