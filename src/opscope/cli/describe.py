"""A capture described for a person: what `opscope info` and `opscope demo` print."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Branches

from opscope import ops
from opscope.analysis import summary
from opscope.analysis.costs.rollup import Tree
from opscope.analysis.savings import Saving, described, savings
from opscope.analysis.utilization import utilization
from opscope.analysis.weights import Weight, weights
from opscope.analysis.world.summary import world_of
from opscope.export.cost_tables import seconds, short
from opscope.ir import PHASES, Capture, Graph, scope_label
from opscope.ir.graph import Csr
from opscope.ir.widths import cut

from . import worlds

# The same hues as in the page and in pictures.
COLOURS = {
    "init": "grey62",
    "forward": "dodger_blue1",
    "backward": "dark_orange",
    "recompute": "hot_pink",
    "optimizer": "green3",
    "other": "grey50",
}
_BAR = 28
_TREE_LINES = 24
_MOST_MODULES = 200  # of one module
_MOST_STAGES = 200
_MOST_WARNINGS = 200
_MOST_UNPLACED = 10
_MOST_WEIGHTS = 40
_MOST_SAVINGS = 12


def console() -> Console:
    """Colours in a terminal, plain text in a pipe; names are never interpreted as links or emoji."""
    from rich import get_console

    width = None if get_console().is_terminal else 100
    return Console(highlight=False, emoji=False, markup=False, soft_wrap=False, width=width)


def describe(capture: Capture, title: str) -> RenderableType:
    parts: list[RenderableType] = [_title(capture, title)]
    stages = capture.stages
    if (world := world_of(capture)) is not None:
        parts += [
            worlds.described(world, capture),
            *([_warnings(found)] if (found := list(dict.fromkeys(capture.all_warnings()))) else []),
        ]
        return Group(*parts)
    for number in range(min(len(stages), _MOST_STAGES - 1)):
        parts.append(_stage(capture, number))
    if len(stages) > _MOST_STAGES:
        parts.append(Text(f"\n… {len(stages) - _MOST_STAGES:,} more stages …", style="dim"))
    if len(stages) >= _MOST_STAGES:
        parts.append(_stage(capture, len(stages) - 1))
    if (measured := summary.profile(capture)) is not None:
        parts += [_heading("Profile", "what of it has a place in the graph"), _profile(measured)]
    if (used := utilization(capture)) is not None:
        parts += [_heading("Utilization", used["device"] or "peaks of this device are not known"), _utilization(used)]
    if won := savings(capture):
        parts += [_heading("Where time could be won", "at most; most first"), _savings(capture, won)]
    if (held := summary.memory_summary(capture)) is not None:
        parts += [_heading("Memory", "measured, when most was alive"), _memory(held)]
    warnings = capture.all_warnings()
    if warnings:
        parts.append(_warnings(warnings))
    return Group(*parts)


def _title(capture: Capture, title: str) -> Text:
    origin = capture.origin
    framework = ops.title(origin.framework) or "unknown framework"
    line = Text(title, style="bold")
    line.append(f"  {framework} {origin.version}".rstrip(), style="cyan")
    if origin.how:
        line.append(f"  ({origin.how})", style="dim")
    return line


def _stage(capture: Capture, number: int) -> RenderableType:
    stage = capture.stages[number]
    graph = stage.graph
    parts: list[RenderableType] = []
    if len(capture.stages) > 1:
        after = f" after {capture.stages[stage.after].name}" if stage.after is not None else ""
        parts.append(Text(f"stage {stage.name}{after}", style="bold"))
    parts.append(_facts(graph))
    if graph.n_nodes:
        parts += [_heading("Phases", "operators in each phase"), _phases(graph)]
        parts += [_heading("Modules", "with the operators that run in them"), _modules(graph)]
        parts += [_heading("Operators", "the most frequent ones"), _ops(graph)]
    if known := weights(capture, number):
        parts += [_heading("Weights", "their numbers; first those that are not finite"), _weights(known)]
    return Group(*parts)


def _facts(graph: Graph) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    grid.add_row("operators", f"{graph.n_nodes:,}, connected by {graph.n_edges:,} edges")
    grid.add_row("values", f"{graph.n_values:,}")
    parameters = summary.tally(graph, "parameter")
    if parameters.storages:
        unknown = f", and {parameters.unknown} of unknown size" if parameters.unknown else ""
        tensors = "1 tensor" if parameters.storages == 1 else f"{parameters.storages:,} tensors"
        grid.add_row("parameters", f"{tensors}, {parameters.elements:,} elements{unknown}")
    buffers = summary.tally(graph, "buffer")
    if buffers.storages:
        grid.add_row("buffers", f"{buffers.storages:,} tensors")
    gradients = len(graph.links_of("grad"))
    if gradients:
        backward = summary.phase_counts(graph).get("backward", 0)
        grid.add_row(
            "gradients", f"{gradients:,} links from {backward:,} backward operators to their forward operators"
        )
    kernels = summary.kernels(graph)
    if kernels is not None:
        ready = f", {kernels.ready:,} precompiled" if kernels.ready else ""
        code = f", {kernels.with_code:,} with code" if kernels.with_code else ""
        grid.add_row("kernels", f"{kernels.executions:,} ran: {kernels.distinct:,} distinct{ready}{code}")
        grid.add_row("", f"{kernels.fused:,} fuse several operators (up to {kernels.largest})")
        if kernels.repeated:
            grid.add_row("", f"{kernels.repeated:,} operators ran in more than one kernel")
    return Padding(grid, (0, 0, 0, 2))


def _weights(known: list[Weight]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for name in ("name", "type", "min", "max", "mean", "rms", "zeros", ""):
        grid.add_column(name, justify="left" if name in ("name", "type", "") else "right")
    grid.add_row("", "", *("min", "max", "mean", "rms", "zeros"), "", style="dim")
    ordered = sorted(known, key=lambda one: not one.is_bad)
    for one in ordered[:_MOST_WEIGHTS]:
        zeros = one.figures.get("zeros", 0) / one.elements if one.elements else 0.0
        bad = ", ".join(f"{int(n):,} {word}" for word in ("nan", "inf") if (n := one.figures.get(word, 0)))
        figures = [f"{one.figures[name]:.3g}" if name in one.figures else "?" for name in ("min", "max", "mean", "rms")]
        name, kind = clipped(one.name, 44), clipped(one.type, 28)
        grid.add_row(name, Text(kind, style="dim"), *figures, f"{zeros:.0%}", Text(bad, style="bold red"))
    if len(known) > _MOST_WEIGHTS:
        grid.add_row(Text(f"… and {len(known) - _MOST_WEIGHTS:,} more (--json has all)", style="dim"))
    return Padding(grid, (0, 0, 0, 2))


def _profile(found: dict[str, Any]) -> RenderableType:
    grid = _grid()
    how = ", ".join(f"{count:,} {evidence}" for evidence, count in found["evidence"].items())
    if found["kernels"]:
        placed = f"{found['placed']:,} of {found['kernels']:,}, {seconds(found['seconds'])} ({how or 'none'})"
        grid.add_row("kernels", placed)
        grid.add_row("", f"{found['with_module']:,} lead to a module, {found['with_line']:,} to a line")
    for lost in found["unplaced"][:_MOST_UNPLACED]:
        name = cut(str(lost["name"]), 60)
        grid.add_row("no place", f"{lost['kernels']:,} × {name}, {seconds(lost['seconds'])}: {lost['reason']}")
    if len(found["unplaced"]) > _MOST_UNPLACED:
        grid.add_row("", f"… and {len(found['unplaced']) - _MOST_UNPLACED:,} more kinds (--json has all)")
    for row in found["split"]:
        count = f" ({row['count']:,})" if row["count"] else ""
        grid.add_row(row["name"], f"{seconds(row['seconds'])}{count}: {row['explanation']}")
    return Padding(grid, (0, 0, 0, 2))


def _utilization(found: dict[str, Any]) -> RenderableType:
    grid = _grid()
    mark = "≥ " if found["at_least"] else ""

    def share(name: str) -> str:
        return f"{mark}{found[name]:.1%}" if found[name] is not None else "unknown"

    if found["step_seconds"] is not None:
        busy = found["busy_seconds"] / found["step_seconds"] if found["step_seconds"] else 0.0
        grid.add_row("step", f"{seconds(found['step_seconds'])}, kernels ran {busy:.1%} of it")
    if found["device"] is None:
        names = ", ".join(found["reported"]) or "no device is named"
        grid.add_row("device", f"{names}: its peaks are not known here, so there are no shares of them")
        return Padding(grid, (0, 0, 0, 2))
    grid.add_row("MFU", f"{share('mfu')} of the step, {share('mfu_busy')} while kernels ran")
    grid.add_row("bandwidth", f"{share('bandwidth')} of the step, {share('bandwidth_busy')} while kernels ran")
    grid.add_row("least time", f"{seconds(found['bound_seconds'])} for the same kernels at the device's peaks")
    return Padding(grid, (0, 0, 0, 2))


def _savings(capture: Capture, found: list[Saving]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for style in ("dim", "", ""):
        grid.add_column(style=style)
    for row in described(capture, found)[:_MOST_SAVINGS]:
        at_most = seconds(row["at_most"]) if row["at_most"] is not None else "?"
        where = " ".join(part for part in (row["module"], row["line"] or "") if part)
        times = f" ×{row['count']:,}" if row["count"] > 1 else ""
        about = f"{row['name']}{times}, {seconds(row['seconds'])}"
        grid.add_row(
            row["kind"], at_most, f"{about} ({cut(where, 70)}): {row['why']}" if where else f"{about}: {row['why']}"
        )
    if len(found) > _MOST_SAVINGS:
        grid.add_row("", "", f"… and {len(found) - _MOST_SAVINGS} more (--json has all)")
    return Padding(grid, (0, 0, 0, 2))


def _memory(found: dict[str, Any]) -> RenderableType:
    grid = _grid()
    refused = found["out_of_memory"]
    if refused is not None:
        grid.add_row("refused", f"{short(refused['bytes'], 'B')}, asked for at {refused['stack'].splitlines()[:2]}")
    total = found["peak_bytes"]
    share = f"{found['matched_bytes'] / total:.1%}" if total else "none"
    grid.add_row("alive", f"{short(total, 'B')} in {found['blocks']:,} blocks; {share} of it is in a known value")
    grid.add_row("predicted", f"at least {short(found['predicted_bytes'], 'B')}")
    for name, size in sorted(found["classes"].items(), key=lambda item: -item[1]):
        grid.add_row(name, short(size, "B"))
    for block in found["unmatched"][:_MOST_UNPLACED]:
        where = block["stack"].splitlines()
        grid.add_row("no value", f"{short(block['bytes'], 'B')}: {cut(' ← '.join(where[:2]), 90)}")
    return Padding(grid, (0, 0, 0, 2))


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    return grid


def _heading(word: str, rest: str) -> Text:
    line = Text(f"\n{word}", style="bold")
    line.append(f"  {rest}", style="dim")
    return line


def _phases(graph: Graph) -> RenderableType:
    return _bars([(phase, n, COLOURS[phase]) for phase, n in summary.phase_counts(graph).items()])


def _ops(graph: Graph) -> RenderableType:
    counts = summary.op_counts(graph)
    shown = counts.most_common(8)
    rest = sum(counts.values()) - sum(n for _, n in shown)
    rows = [(op, n, "cyan") for op, n in shown]
    if rest:
        rows.append((f"{len(counts) - len(shown)} others", rest, "grey50"))
    return _bars(rows)


def _bars(rows: list[tuple[str, int, str]]) -> RenderableType:
    total = sum(n for _, n, _ in rows) or 1
    largest = max((n for _, n, _ in rows), default=1)
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(justify="right", style="dim")
    grid.add_column()
    for name, n, colour in rows:
        bar = Text("█" * round(_BAR * n / largest) or "▏", style=colour)
        grid.add_row(Text(clipped(name, 32)), f"{n:,}", f"{100 * n / total:.0f} %", bar)
    return Padding(grid, (0, 0, 0, 2))


def _modules(graph: Graph) -> RenderableType:
    """The module tree as deep as it fits, each with its number of operators per phase."""
    tree = Tree(graph)
    children = _children(tree)
    inside = [tree.up(_in_phase(graph, phase, len(tree.parent))) for phase in range(len(PHASES))]
    depth = _deepest_that_fits(tree)
    root = Branches("", hide_root=True, guide_style="grey50")
    todo: list[tuple[int, Branches, int]] = [(0, root, 0)]
    while todo:
        scope, branch, level = todo.pop()
        if level == depth:
            continue
        inner = children.row(scope).tolist()
        for child in inner[:_MOST_MODULES]:
            phases = Counter({phase: n for phase, column in enumerate(inside) if (n := int(column[child]))})
            line = _module_line(graph, child, phases, len(children.row(child)), level + 1 == depth)
            todo.append((child, branch.add(line), level + 1))
        if len(inner) > _MOST_MODULES:
            branch.add(Text(f"… and {len(inner) - _MOST_MODULES:,} more modules", style="dim"))
    outside = Counter[int](graph.node_phase[graph.node_scope == 0].tolist())
    if outside:
        line = Text("outside any module", style="dim")
        root.add(line.append_text(_by_phase(outside)))
    return Padding(root, (0, 0, 0, 2))


def _in_phase(graph: Graph, phase: int, scopes: int) -> npt.NDArray[np.int64]:
    return np.bincount(graph.node_scope[graph.node_phase == phase], minlength=scopes)


def _children(tree: Tree) -> Csr:
    """The modules in each module that have operators, by number."""
    used = np.flatnonzero(tree.has_nodes)
    used = used[used > 0]
    placed = used[np.argsort(tree.parent[used], kind="stable")]
    start = np.zeros(len(tree.parent) + 1, dtype=np.int32)
    np.cumsum(np.bincount(tree.parent[used], minlength=len(tree.parent)), out=start[1:])
    return Csr(start, placed.astype(np.int32))


def _module_line(graph: Graph, scope: int, phases: Counter[int], children: int, closed: bool) -> Text:
    entry = graph.pools.scopes[scope]
    line = Text(clipped(scope_label(entry), 40))
    if entry.cls and entry.name:
        line.append(f" {clipped(entry.cls, 30)}", style="dim")
    line.append_text(_by_phase(phases))
    if closed and children:
        line.append(f"  … {children} module{'s' if children > 1 else ''} inside", style="dim")
    return line


def _by_phase(phases: Counter[int]) -> Text:
    line = Text()
    for phase in sorted(phases):
        name = PHASES[phase]
        line.append(f"  {phases[phase]:,} {name}", style=COLOURS[name])
    return line


def _deepest_that_fits(tree: Tree) -> int:
    used = tree.level[tree.has_nodes]
    lines, depth = 0, 0
    for modules in np.bincount(used)[1:].tolist():
        lines += modules
        if lines > _TREE_LINES and depth:
            break
        depth += 1
    return depth


def _warnings(warnings: list[str]) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    for text in warnings[:_MOST_WARNINGS]:
        grid.add_row(Text("!", style="bold yellow"), Text(clipped(text, 600)))
    if len(warnings) > _MOST_WARNINGS:
        grid.add_row("", Text(f"… and {len(warnings) - _MOST_WARNINGS:,} more", style="dim"))
    return Group(_heading("Warnings", "what this capture is missing, and why"), Padding(grid, (0, 0, 0, 2)))


def clipped(text: Any, most: int) -> str:
    """Text on one line, without terminal escape sequences."""
    plain = str(text)
    if not plain.isprintable():
        plain = "".join(c if c.isprintable() else "�" for c in plain)
    return cut(plain, most)
