"""The folder that `backward(dump_backward_graph_path=…)` writes (Paddle 3.3 and later), or one of its dot files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from opscope.errors import BadInput, of_file
from opscope.ir import Capture, Frame, GraphBuilder, Origin, Pools, Stage
from opscope.readers.source import Options, Source

from .backward import GradNode, Placing, gradient_table, in_order, place, types_from_leaves
from .dot import DotGraph, parse
from .names import ACCUMULATION

NAME = "paddle-dump"
_BACKWARD, _FORWARD, _STACKS = "_backward_graph.dot", "_ref_forward_graph.dot", "_call_stack.log"
_MOST_FILES = 500
_STACK = re.compile(r"GradNodeBase (\S+) ptr : (0x[0-9a-fA-F]{1,16}) call stack:")
_FRAME = re.compile(r'\s*File "([^"\n]*)", line (\d{1,9})(?:, in (.*))?')


def match(source: Source) -> bool:
    if source.is_folder:
        return bool(_stems(source.path))
    head = source.head.lstrip()
    return head.startswith(b"digraph") and re.search(rb"\\n(?:Ptr|GradNode): ?0x", head) is not None


def _stems(folder: Path | None) -> list[str]:
    """The time stamps of the backward passes that were dumped here, in order."""
    if folder is None:
        return []
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
    return sorted({name.removesuffix(_BACKWARD) for name in names if name.endswith(_BACKWARD)})


def read(source: Source, options: Options) -> Capture:
    try:
        return _folder(source) if source.is_folder and source.path else _file(source)
    except BadInput as error:
        raise of_file(error, source.name) from None


def _capture(pools: Pools) -> Capture:
    return Capture(pools=pools, origin=Origin(format=NAME, framework="paddle", how="dump_backward_graph_path"))


def _file(source: Source) -> Capture:
    graph = parse(source.lines())
    if not graph.nodes:
        raise BadInput("a dot file without a node of Paddle's; it may be cut off")
    capture = _capture(Pools())
    builder = GraphBuilder(capture.pools)
    if graph.is_forward:
        _forward(builder, graph)
        capture.warnings.append(
            "a ref_forward graph: forward operators as the backward pass knows them, so operators without a gradient "
            "are not in it"
        )
    else:
        placed = _backward(builder, graph)
        _add_table(capture, placed, 0)
    capture.stages.append(Stage("forward" if graph.is_forward else "backward", builder.freeze()))
    capture.warnings += _complaints(source.name, graph)
    return capture


def _folder(source: Source) -> Capture:
    assert source.path is not None
    capture = _capture(Pools())
    stems = _stems(source.path)
    if len(stems) > _MOST_FILES:
        raise BadInput(f"{len(stems):,} dumps in one folder; {_MOST_FILES} are the most")
    for stem in stems:
        files = {kind: source.path / f"{stem}{kind}" for kind in (_BACKWARD, _FORWARD, _STACKS)}
        there = {kind: Source.of(path) for kind, path in files.items() if path.exists()}
        texts = {kind: file.read().decode("utf-8", "replace") for kind, file in there.items()}
        graph = parse(texts[_BACKWARD].splitlines())
        capture.warnings += _complaints(files[_BACKWARD].name, graph)
        builder = GraphBuilder(capture.pools)
        stacks = _stacks(capture.pools, texts.get(_STACKS, ""))
        for node in graph.nodes:
            node.stack = stacks.get(node.ptr, 0)
        forward: dict[str, int] = {}
        if _FORWARD in texts:
            ahead = parse(texts[_FORWARD].splitlines())
            capture.warnings += _complaints(files[_FORWARD].name, ahead)
            for node in ahead.nodes:
                node.stack = stacks.get(node.ptr, 0)
            forward = _forward(builder, ahead)
        else:
            capture.warnings.append(f"{stem}{_FORWARD} is missing: the forward operators are unknown")
        placed = _backward(builder, graph)
        for node, index in zip(graph.nodes, placed.rows, strict=True):
            if node.ptr in forward:
                builder.link("grad", forward[node.ptr], index)
        name = "backward" if len(stems) == 1 else f"backward {len(capture.stages) + 1}"
        _add_table(capture, placed, len(capture.stages))
        capture.stages.append(Stage(name, builder.freeze(), listings={"dot": texts[_BACKWARD]}))
        if _STACKS in texts and not any(stacks.values()):
            capture.warnings.append(
                f"{stem}{_STACKS} has no stacks: set paddle.set_flags({{'FLAGS_call_stack_level': 3}}) before the "
                "forward pass to have source lines"
            )
    if not any(stage.graph.n_nodes for stage in capture.stages):
        raise BadInput("its dot files have no node of Paddle's; they may be cut off")
    return capture


def _complaints(name: str, graph: DotGraph) -> Iterable[str]:
    if not graph.ended:
        yield f"{name} has no end: it was cut off, and what came after is missing"
    if graph.unread:
        yield f"{name}: {graph.unread} lines are not Paddle's and were left out"
    if graph.lost:
        yield f"{name}: {graph.lost} edges lead to nodes that are not in the file, and were left out"


def _backward(builder: GraphBuilder, graph: DotGraph) -> Placing:
    for node in graph.nodes:
        if node.is_leaf:
            node.edges.clear()
    types_from_leaves(graph.nodes)
    for node in graph.nodes:
        for edge in node.edges:  # the dot has no slots; edges are in their order
            if edge.target is not None and graph.nodes[edge.target].is_leaf:
                edge.in_slot, edge.in_rank = 0, 0
    return place(builder, graph.nodes)


def _forward(builder: GraphBuilder, graph: DotGraph) -> dict[str, int]:
    """Forward operators and, for leaves, parameters; the rows by pointer. Paddle writes each by its gradient node."""
    pools, nodes = builder.pools, graph.nodes
    is_leaf = [node.name in ("Node", ACCUMULATION) or node.name.endswith("Accumulation") for node in nodes]
    values: list[list[int]] = []  # one per edge: each may carry another output
    arriving: list[list[int]] = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        made: list[int] = []
        by_type: dict[tuple[str, tuple[int, ...] | None, str], int] = {}
        for edge in node.edges:
            # Edges that carry the same type carry, for all that the file says, the same tensor.
            key = (edge.dtype, edge.shape, edge.name)
            if key not in by_type:
                type_id = pools.type(edge.dtype, edge.shape) if edge.evidence else 0
                role = "parameter" if is_leaf[i] else "activation"
                by_type[key] = builder.value(type_id, name=edge.name, role=role)
                made.append(by_type[key])
                if is_leaf[i]:
                    builder.inputs.append(by_type[key])
            if edge.target is not None:
                arriving[edge.target].append(by_type[key])
        values.append(made)
    rows: dict[str, int] = {}
    for i in in_order(nodes):
        if is_leaf[i]:
            continue
        node = nodes[i]
        index = builder.node(_forward_name(node), arriving[i], stack=node.stack, attrs=_pointer(node), phase="forward")
        for value in values[i]:
            builder.produce(index, value)
        if not values[i]:
            builder.outputs.append(builder.output(index))
        if node.ptr:
            rows[node.ptr] = index
    return rows


def _forward_name(node: GradNode) -> str:
    """`Conv2dFinal` as `conv2d`, `conv2d1` as `conv2d`."""
    from .names import forward_op, grad_op

    if node.name[:1].islower():
        return forward_op(grad_op(f"{node.name}GradNode"))
    return forward_op(f"{node.name.removesuffix('Final')}GradNode")


def _pointer(node: GradNode) -> dict[str, str]:
    return {"gradient ptr": node.ptr} if node.ptr else {}


def _add_table(capture: Capture, placed: Placing, stage: int) -> None:
    table = gradient_table(placed.gradients, stage)
    if table is not None:
        capture.tables["gradients" if stage == 0 else f"gradients {stage + 1}"] = table


def _stacks(pools: Pools, text: str) -> dict[str, int]:
    """Pointer -> stack. Frames are lines as in a traceback, outermost first."""
    found: dict[str, int] = {}
    frames: list[Frame] = []
    pointer = ""
    for line in [*text.splitlines(), "GradNodeBase end ptr : 0x0 call stack:"]:
        if (head := _STACK.match(line)) is not None:
            if pointer:
                found[pointer] = pools.stack(frames)
            pointer, frames = head[2].lower(), []
        elif (frame := _FRAME.match(line)) is not None:
            frames.append(Frame(frame[1], int(frame[2]), (frame[3] or "").strip()))
    return found
