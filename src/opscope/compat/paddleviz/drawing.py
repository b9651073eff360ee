"""The picture: paddleviz's colours, shapes and directions. Without Graphviz's `dot`, opscope draws it itself."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

from opscope.capture import Capture
from opscope.errors import OpscopeError
from opscope.readers.paddle.backward import Edge, GradNode
from opscope.tracers.frames import frame_at
from opscope.tracers.paddle import private, watching
from opscope.tracers.paddle.autograd import capture_of_pass
from opscope.tracers.paddle.layers import Layers, all_parameters, layers_in, leaves, variables
from opscope.tracers.paddle.passes import Pass

_OURS = ("svg", "png", "pdf")
_NO_DOT = (
    "Graphviz's program `dot` is not installed, and it is what draws {format!r}: install it (apt install graphviz, "
    "conda install graphviz, brew install graphviz), or ask for svg, png or pdf, which opscope draws itself. This "
    "object's .save('graph.gv') writes the text"
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
    walked = Pass(roots)
    watching.recall(walked.nodes)
    layers = _name_leaves(walked, frame_at(1))
    walked.close()
    digraph.backward = walked, layers
    for number, tensor in enumerate(roots):
        label = "output" if len(roots) == 1 else f"output {number}"
        digraph.node(f"out{number}", f"{label}\n{tuple(tensor.shape)}", fillcolor="darkolivegreen1")
        digraph.edge(f"out{number}", walked.nodes[walked.roots[number]].ptr)
    for node in walked.nodes:
        _draw_node(digraph, node)
    for node in walked.nodes:
        for edge in node.edges:
            if edge.target is not None:
                digraph.edge(node.ptr, walked.nodes[edge.target].ptr, label=_label(edge))
    return digraph


def _draw_node(digraph: Any, node: GradNode) -> None:
    if node.is_leaf:
        name = node.leaf or "a tensor without a name"
        digraph.node(node.ptr, f"{name}\n{node.name}-{node.ptr}", shape="ellipse", fillcolor="#FFCC99")
    else:
        digraph.node(node.ptr, f"{node.name}-{node.ptr}", fillcolor="#CCCCFF")


def _label(edge: Edge) -> str:
    if edge.evidence:
        place = [f"place: {edge.place}"] if edge.place else []
        lines = [f"dtype: {edge.dtype}", *place, f"shape: {list(edge.shape or ())}"]
    elif watching.any_pass():
        lines = ["unknown: this edge was not in a backward pass that was seen"]
    else:
        lines = ["unknown: no backward pass was seen"]
    # Graphviz puts the text right at its edge: a wide line without words keeps them apart.
    return "\n".join([*lines, " " * (2 * max(map(len, lines)))])


def _name_leaves(walked: Pass, frame: FrameType) -> Layers:
    found = layers_in(frame)
    layers = Layers(found, hidden=found[0][1] if len(found) == 1 else None)
    named = [(name, tensor) for name, tensor, _ in layers.tensors()]
    known = leaves(iter([*named, *variables(frame)]))
    if any(node.is_leaf and int(node.ptr, 16) not in known for node in walked.nodes):
        known = {**leaves(all_parameters()), **known}
    walked.name_leaves(known)
    return layers


def _digraph(dpi: str) -> Any:
    try:
        graphviz: Any = importlib.import_module("graphviz")
    except ImportError:
        raise OpscopeError(
            "make_graph needs the Python package graphviz: pip install graphviz. Without it: "
            "opscope.trace(y, how='autograd').save('graph.html')"
        ) from None
    # Made here, because its base is only there where graphviz is installed.
    kind = type("Digraph", (graphviz.Digraph,), {"render": _render(graphviz), "pipe": _pipe(graphviz)})
    return kind(
        node_attr={"style": "filled", "shape": "box", "align": "left", "fontsize": "12", "height": "0.2"},
        graph_attr={"rankdir": "BT", "size": "12,12", "dpi": dpi},
    )


def _render(graphviz: Any) -> Any:
    def render(self: Any, filename: Any = None, directory: Any = None, view: bool = False, **options: Any) -> str:
        try:
            return graphviz.Digraph.render(self, filename, directory=directory, view=view, **options)
        except graphviz.ExecutableNotFound as error:
            drawn = Path(options.get("outfile") or f"{self.filepath}.{options.get('format') or self.format}")
            _draw(self, drawn, drawn.suffix[1:], error)
            if options.get("cleanup"):
                Path(self.filepath).unlink(missing_ok=True)
            if view:
                importlib.import_module("webbrowser").open(drawn.absolute().as_uri())
            return str(drawn)

    return render


def _pipe(graphviz: Any) -> Any:
    def pipe(self: Any, format: str | None = None, *args: Any, encoding: str | None = None, **options: Any) -> Any:
        try:
            return graphviz.Digraph.pipe(self, format, *args, encoding=encoding, **options)
        except graphviz.ExecutableNotFound as error:
            ending = format or self.format
            with tempfile.TemporaryDirectory() as folder:
                drawn = Path(folder, f"graph.{ending}")
                _draw(self, drawn, ending, error)
                content = drawn.read_bytes()
            return content if encoding is None else content.decode(encoding)

    return pipe


def _draw(digraph: Any, path: Path, format: str, error: Exception) -> None:
    """The same graph, by opscope's own drawing, as it was when `make_graph` was called."""
    if format.lower() not in _OURS:
        raise OpscopeError(_NO_DOT.format(format=format)) from error
    walked, layers = digraph.backward
    capture = Capture.of(capture_of_pass(walked, layers, []))
    capture.save(path, format=f".{format.lower()}", edges=("dtype", "place", "shape"))
    print(f"{path}: drawn by opscope, because Graphviz's program `dot` is not installed", file=sys.stderr)
