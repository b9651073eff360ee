"""A world of ranks described for a person."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from opscope.analysis.world.summary import World
from opscope.export.cost_tables import short
from opscope.ir import Capture
from opscope.ir.widths import cut

_MOST = 60
_WIDEST = 44


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
