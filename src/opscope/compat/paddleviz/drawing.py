"""The picture: paddleviz's colours, shapes and directions."""

from __future__ import annotations

import importlib
from types import FrameType
from typing import Any

from opscope.errors import OpscopeError
from opscope.readers.paddle.backward import Edge, GradNode
from opscope.tracers.frames import frame_at
from opscope.tracers.paddle import private
from opscope.tracers.paddle.layers import Layers, all_parameters, layers_in, leaves, variables
from opscope.tracers.paddle.passes import Pass

from . import watching

_NO_DOT = (
    "Graphviz's program `dot` is not installed, and it is what draws here: install it (apt install graphviz, conda "
    "install graphviz, brew install graphviz). Without it: opscope.trace(y, how='autograd').save('graph.html') or "
    "'graph.svg', or this object's .save('graph.gv') for the text"
)


def make_graph(var: Any, dpi: str = "600") -> Any:
    """The backward graph of a tensor, or of a tuple of tensors, as a `graphviz.Digraph`.

    Edges have dtype, place and shape where a backward pass was watched (see the module), and say so where none was.
    """
    digraph = _digraph(str(dpi))
    tensors = [tensor for _, tensor in private.tensors_in(var)]
    roots = [tensor for tensor in tensors if private.gradient_node(tensor) is not None]
    if not roots:
        raise OpscopeError(
            "make_graph: nothing here takes a gradient (stop_gradient is True): there is no backward graph"
        )
    walked = Pass([private.gradient_node(tensor) for tensor in roots])
    _name_leaves(walked, frame_at(1))
    walked.close()
    for number, tensor in enumerate(roots):
        label = "output" if len(roots) == 1 else f"output {number}"
        digraph.node(f"out{number}", f"{label}\n{tuple(tensor.shape)}", fillcolor="darkolivegreen1")
        digraph.edge(f"out{number}", walked.nodes[walked.roots[number]].ptr)
    for node in walked.nodes:
        _draw_node(digraph, node)
    for node in walked.nodes:
        seen = watching.edges_of(int(node.ptr, 16))
        for i, edge in enumerate(node.edges):
            if edge.target is not None:
                known = seen[i] if seen is not None and len(seen) == len(node.edges) else edge
                digraph.edge(node.ptr, walked.nodes[edge.target].ptr, label=_label(known, edge))
    return digraph


def _draw_node(digraph: Any, node: GradNode) -> None:
    if node.is_leaf:
        name = node.leaf or "a tensor without a name"
        digraph.node(node.ptr, f"{name}\n{node.name}-{node.ptr}", shape="ellipse", fillcolor="#FFCC99")
    else:
        digraph.node(node.ptr, f"{node.name}-{node.ptr}", fillcolor="#CCCCFF")


def _label(known: Edge, walked: Edge) -> str:
    edge = known if known.evidence else walked
    if edge.evidence:
        place = f"place: {edge.place}\n" if edge.place else ""
        return f"dtype: {edge.dtype}\n{place}shape: {list(edge.shape or ())}"
    if watching.any_pass():
        return "unknown: this edge was not in a backward pass that was seen"
    return "unknown: no backward pass was seen"


def _name_leaves(walked: Pass, frame: FrameType) -> None:
    named = [(name, tensor) for name, tensor, _ in Layers(layers_in(frame)).tensors()]
    known = leaves(iter([*named, *variables(frame)]))
    if any(node.is_leaf and int(node.ptr, 16) not in known for node in walked.nodes):
        known = {**leaves(all_parameters()), **known}
    walked.name_leaves(known)


def _digraph(dpi: str) -> Any:
    try:
        graphviz: Any = importlib.import_module("graphviz")
    except ImportError:
        raise OpscopeError(
            "make_graph needs the Python package graphviz: pip install graphviz. Without it: "
            "opscope.trace(y, how='autograd').save('graph.html')"
        ) from None
    # Made here, because its base is only there where graphviz is installed.
    kind = type("Digraph", (graphviz.Digraph,), {name: _drawing(graphviz, name) for name in ("render", "pipe")})
    return kind(
        node_attr={"style": "filled", "shape": "box", "align": "left", "fontsize": "12", "height": "0.2"},
        graph_attr={"rankdir": "BT", "size": "12,12", "dpi": dpi},
    )


def _drawing(graphviz: Any, name: str) -> Any:
    """The method of this name, which says what to do where `dot` is missing."""

    def draw(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(graphviz.Digraph, name)(self, *args, **kwargs)
        except graphviz.ExecutableNotFound as error:
            raise OpscopeError(_NO_DOT) from error

    return draw
