"""A world of ranks described for a person."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from opscope.analysis.world.estimate import COMMUNICATES, Estimate, Lane
from opscope.analysis.world.summary import World
from opscope.export.cost_tables import seconds, share, short
from opscope.ir import Capture
from opscope.ir.widths import cut

_MOST = 60
_LANE = 48  # characters: with the figures beside it, a line of 100
_MARKS = {"waits": "·", "forward": "█", "backward": "▒", "recompute": "░", "optimizer": "▓", COMMUNICATES: "▪"}
_WIDEST = 44
_FEW = 16  # classes that are all shown in a timeline


def described(world: World, capture: Capture) -> RenderableType:
    """The mesh, and a table with a row for each class of ranks."""
    mesh = " × ".join(f"{name} {size}" for name, size in world.mesh.items())
    seen = "all recorded" if world.seen == world.size else f"{world.seen:,} recorded, the others inferred"
    title = Text(f"{world.size:,} ranks", style="bold")
    title.append(f"  {mesh}; {len(world.classes):,} classes; {seen}", style="dim")
    dimensions = list(dict.fromkeys(wire.dimension for one in world.classes for wire in one.wires))
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("class", no_wrap=True)
    for name in ("ranks", "params", "state", "activ.", "peak ≥", "MACs", *(f"wire {name}" for name in dimensions)):
        table.add_column(name, justify="right", no_wrap=True)
    for one in world.classes[:_MOST]:
        figures, sent = one.figures, {wire.dimension: wire.bytes for wire in one.wires}
        least = "≥ " if one.at_least else ""
        table.add_row(
            Text(cut(capture.stages[one.stage].name, _WIDEST), style="bold red" if one.odd else ""),
            f"{len(one.ranks):,}",
            short(figures["parameters"], ""),
            short(figures["state_bytes"], "B") if figures["state_bytes"] else "",
            short(figures["activation_bytes"], "B"),
            short(figures["peak_bytes"], "B"),
            f"{least}{short(figures['macs'], '')}",
            *(short(sent[name], "B") if sent.get(name) else "" for name in dimensions),
        )
    parts: list[RenderableType] = [title, Padding(table, (0, 0, 0, 1))]
    if len(world.classes) > _MOST:
        parts.append(Text(f"  … and {len(world.classes) - _MOST:,} more classes (--json has all)", style="dim"))
    return Group(*parts)


def timeline(found: Estimate, capture: Capture) -> RenderableType:
    """The estimate in words, and what every class does when, as a line of characters."""
    title = Text("Estimate", style="bold")
    title.append(
        f"  one step takes at least {seconds(found.seconds)} on {found.device.title}, {found.network.title}: "
        f"MFU at most {share(found.mfu).replace('·', 'under 0.1')}, {share(found.bubble)} of it waits",
        style="dim",
    )
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("class", no_wrap=True)
    for name in ("computes", "wire", "idle"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what it does most", no_wrap=True)
    shown: set[str] = set()
    for lane in found.lanes:
        drawn = _drawn(lane, found.seconds)
        if drawn in shown and len(found.lanes) > _FEW:
            continue  # of classes that do the same at the same time, the first
        shown.add(drawn)
        idle = found.seconds - lane.computes - lane.communicates
        figures = [seconds(part) for part in (lane.computes, lane.communicates, idle)]
        table.add_row(Text(cut(capture.stages[lane.stage].name, _WIDEST)), *figures, drawn)
    legend = Text("  " + "  ".join(f"{mark} {what}" for what, mark in _MARKS.items()), style="dim")
    told = Text("".join(f"\n  assumes: {text}" for text in found.assumptions), style="dim")
    return Group(Text(), title, Padding(table, (0, 0, 0, 1)), legend, told)


def _drawn(lane: Lane, whole: float) -> str:
    """What it does most in each slice of the step."""
    line: list[str] = []
    for place in range(_LANE):
        begin, end = whole * place / _LANE, whole * (place + 1) / _LANE
        spent: dict[str, float] = {}
        for piece in lane.pieces:
            shared = min(end, piece.end) - max(begin, piece.start)
            if shared > 0:
                spent[piece.what] = spent.get(piece.what, 0.0) + shared
        spent["waits"] = spent.get("waits", 0.0) + max(end - max(begin, lane.total), 0.0)
        line.append(_MARKS.get(max(spent, key=lambda what: spent[what]), "▪"))
    return "".join(line)
