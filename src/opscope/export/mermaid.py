"""Mermaid: a small drawing for a README or an issue, one box per module and phase."""

from __future__ import annotations

from pathlib import Path

from opscope.analysis.collapse import Box, collapse, readable
from opscope.files import replacing
from opscope.ir import PHASES, Capture, Graph

from .registry import Options

# The same hues as in the page: forward blue, backward orange, the optimizer green.
_COLOURS = {
    "init": "fill:#eceff1,stroke:#90a4ae,color:#263238",
    "forward": "fill:#e3f2fd,stroke:#42a5f5,color:#0d47a1",
    "backward": "fill:#fff3e0,stroke:#fb8c00,color:#7f3f00",
    "recompute": "fill:#fce4ec,stroke:#ec407a,color:#880e4f",
    "optimizer": "fill:#e8f5e9,stroke:#66bb6a,color:#1b5e20",
    "other": "fill:#fafafa,stroke:#bdbdbd,color:#424242",
}
_BOXES = 400  # no browser draws more
_ARROWS = 280  # Mermaid draws nothing beyond 500; a readable drawing has far fewer


def export(capture: Capture, path: Path, options: Options) -> None:
    text = render(capture.stage(options.stage).graph, options.depth)
    with replacing(path) as file:
        file.write(text.encode())


def render(graph: Graph, depth: int | None = None) -> str:
    drawn = readable(graph) if depth is None else collapse(graph, depth)
    lines = ["flowchart TD"]
    boxes = list(enumerate(drawn.boxes))
    if len(boxes) > _BOXES:
        boxes = sorted(sorted(boxes, key=lambda item: -item[1].nodes)[:_BOXES])
    kept = {i for i, _ in boxes}
    for phase in PHASES:
        inside = [(i, box) for i, box in boxes if box.phase == phase]
        if inside:
            lines.append(f"  subgraph {phase}")
            lines += [f'    b{i}["{_label(graph, box)}"]:::{phase}' for i, box in inside]
            lines.append("  end")
    edges = [edge for edge in drawn.edges if edge[0] in kept and edge[1] in kept]
    edges = sorted(edges, key=lambda edge: -edge[2])[:_ARROWS]
    for source, target, count in sorted(edges):
        lines.append(f"  b{source} -->|{count}| b{target}" if count > 1 else f"  b{source} --> b{target}")
    if len(drawn.edges) > _ARROWS:
        lines.append(
            f"  %% {len(drawn.edges) - _ARROWS} of {len(drawn.edges)} arrows with the fewest tensors are left out"
        )
    if len(drawn.boxes) > _BOXES:
        lines.append(f"  %% {len(drawn.boxes) - _BOXES} of {len(drawn.boxes)} boxes with the fewest ops are left out")
    used = {box.phase for _, box in boxes}
    lines += [f"  classDef {phase} {_COLOURS[phase]}" for phase in PHASES if phase in used]
    return "\n".join(lines) + "\n"


def _label(graph: Graph, box: Box) -> str:
    if not box.scope:
        name = "outside any module"
    else:
        name = escape(graph.pools.scope_path(box.scope))
        scope = graph.pools.scopes[box.scope]
        name += f" <i>{escape(scope.cls)}</i>" if scope.cls and scope.name else ""
    ops = ", ".join(escape(op) if n == 1 else f"{escape(op)} ×{n}" for op, n in box.ops)
    return f"{name}<br/>{box.nodes} op{'s' if box.nodes != 1 else ''}: {ops}" + (
        "…" if box.nodes > sum(n for _, n in box.ops) else ""
    )


def escape(text: str) -> str:
    """Mermaid has no quotes inside quotes; everything special is written as a code."""
    text = text if len(text) <= 60 else text[:59] + "…"
    return "".join(c if c.isalnum() or c in " ./_-:×…«»" else f"#{ord(c)};" for c in text)
