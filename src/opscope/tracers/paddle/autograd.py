"""The backward graph behind tensors that exist already, or behind what a layer returns."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from types import FrameType
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir import Capture, GraphBuilder, Pools, Stage
from opscope.readers.neighbours import between
from opscope.readers.paddle.backward import gradient_table, in_order, layer_scope, place

from . import private, watching
from .assemble import origin
from .layers import Layers, all_parameters, layers_in, leaves, variables
from .passes import Pass
from .words import reason_of

FREED = (
    "the gradients were not seen: a backward pass has freed the graph already. Trace before backward(), or call "
    "backward(retain_graph=True)"
)


def of_tensors(target: Any, caller: FrameType, statistics: bool) -> Capture:
    """The backward graph as it stands. The gradients on its edges are those of the backward pass that was watched, if
    one was; otherwise they are seen in a pass of our own, which keeps the graph and leaves every `.grad` alone."""
    tensors = [tensor for _, tensor in private.tensors_in(target)]
    roots = [tensor for tensor in tensors if private.gradient_node(tensor) is not None]
    if not roots:
        raise OpscopeError("nothing here takes a gradient (stop_gradient is True), so there is no backward graph")
    watched = Pass(roots, statistics=statistics)
    found = layers_in(caller)
    layers = Layers(found, hidden=found[0][1] if len(found) == 1 else None)
    known = leaves(_named(layers, caller))
    if any(node.is_leaf and int(node.ptr, 16) not in known for node in watched.nodes):
        known = {**leaves(all_parameters()), **known}  # slow: it looks at everything that lives
    watching.recall(watched.nodes)
    is_known = all(edge.evidence for node in watched.nodes for edge in node.edges if edge.target is not None)
    warnings = [] if is_known and not statistics else list(measure(watched, roots, known))
    watched.close(watched.failed)
    watched.name_leaves(known)
    return capture_of_pass(watched, layers, [*warnings, *watched.problems()])


def _named(layers: Layers, caller: FrameType) -> Iterator[tuple[str, Any]]:
    yield from ((name, tensor) for name, tensor, _ in layers.tensors())
    yield from variables(caller)


def measure(watched: Pass, roots: list[Any], known: dict[int, tuple[str, Any]]) -> Iterator[str]:
    """Run the pass once for its hooks; what went wrong, in words."""
    inside = [tensor for pointer, (_, tensor) in known.items() if pointer in watched.index]
    strangers = sum(watched.nodes[i].is_leaf and pointer not in known for pointer, i in watched.index.items())
    if not inside:
        yield "the gradients were not seen: none of the tensors that they lead to is held by a variable or a layer"
        return
    if strangers:
        yield f"{strangers} leaves are held by no variable and no layer: gradients that lead only there were not seen"
    if any(tensor.size != 1 for tensor in roots):
        yield "the outputs are not single numbers: the gradients are those of the sum of all their elements"
    watched.watch()
    watched.failed = True
    paddle = private.the_paddle()
    try:
        with _inner_passes_undone():
            paddle.grad(roots, inside, retain_graph=True, allow_unused=True)
        watched.failed = False
    except Exception as error:
        is_freed = "second time" in str(error) or "retain_graph" in str(error)
        yield FREED if is_freed else f"the gradients were not seen: Paddle's backward pass failed ({reason_of(error)})"


@contextlib.contextmanager
def _inner_passes_undone() -> Generator[None, None, None]:
    """A PyLayer may run a backward pass of its own, as recompute does, which adds into `.grad` even under
    paddle.grad: each such gradient is put back as it was."""
    engine = private.engine()
    run = engine.run_backward

    def stand_in(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        inner = Pass([tensor for _, tensor in private.tensors_in(tensors)])
        touched = [tensor for pointer, (_, tensor) in leaves(all_parameters()).items() if pointer in inner.index]
        before = [None if tensor.grad is None else tensor.grad.clone() for tensor in touched]
        try:
            return run(tensors, *args, **kwargs)
        finally:
            for tensor, gradient in zip(touched, before, strict=True):
                tensor.clear_gradient(False)
                if gradient is not None:
                    tensor.grad = gradient

    engine.run_backward = stand_in
    try:
        yield
    finally:
        engine.run_backward = run


def _infer_scopes(watched: Pass, pools: Pools) -> None:
    """What hands a layer's parameter its gradient is, by all that can be seen, the layer's; and so is what lies between
    two parts of a layer."""
    nodes = watched.nodes
    for node in nodes:
        for edge in node.edges:
            if edge.target is not None and not node.scope and nodes[edge.target].leaf and not node.is_leaf:
                node.scope = nodes[edge.target].scope
                node.attrs["scope by"] = "parameter"
    for node in reversed(nodes):  # those that come later first: what joins them is one of them
        inner = [nodes[edge.target] for edge in node.edges if edge.target is not None]
        if not node.scope and len(inner) > 1 and len({other.scope for other in inner}) == 1:
            node.scope = inner[0].scope
            node.attrs["scope by"] = "parameters"
    following = [[e.target for e in n.edges if e.target is not None and not nodes[e.target].is_leaf] for n in nodes]
    known = [node.scope for node in nodes]
    for i, scope in between(pools, known, following, in_order(nodes)).items():
        if not nodes[i].is_leaf:
            nodes[i].scope = scope
            nodes[i].attrs["scope by"] = "neighbours"


def capture_of_pass(watched: Pass, layers: Layers, warnings: list[str]) -> Capture:
    pools = Pools()
    owners = layers.owners()
    for node in watched.nodes:
        if node.is_leaf:
            node.scope = layer_scope(pools, owners.get(node.leaf, ()))
    _infer_scopes(watched, pools)
    builder = GraphBuilder(pools)
    placed = place(builder, watched.nodes, in_order(watched.nodes, watched.times))
    stage = Stage("backward", builder.freeze())
    capture = Capture(pools, [stage], origin=origin("autograd"), warnings=warnings)
    table = gradient_table(placed.gradients)
    if table is not None:
        capture.tables["gradients"] = table
    return capture
