"""Where a node of an ONNX graph is: its modules and its source lines.

PyTorch's exporter writes them beside it, older ones into its name (`/layer1/layer1.0/conv1/Conv`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from opscope.ir import Frame, Pools

_SCOPES, _CLASSES = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"
_STACK, _FX = "pkg.torch.onnx.stack_trace", "pkg.torch.onnx.fx_node"
_FRAME = re.compile(r'File "([^"\n]*)", line (\d{1,9})(?:, in ([^\n]*))?')
_FX_NODE = re.compile(r"%(\w{1,200}) .{0,200}?= call_function\[target=(?:torch\.ops\.)?([\w.<> ]+)\]")
_FUSED = re.compile(r"(?:/+\w*Fusion/*)+$")  # what ONNX Runtime puts behind a name: `/MatMulAddFusion`
_CALL = re.compile(r"@(\d{1,6})$")
_LONGEST = 20_000  # characters of a list that is read
_DEEPEST = 100
_MOST_PARTS = 40  # a name with more slashes is no path


class Place(NamedTuple):
    scope: int
    stack: int
    exported_from: str  # `relu = aten.relu.default`: the operator of the exported program


class Places:
    """Scopes and stacks by the texts that name them: thousands of nodes share a few hundred."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._scopes: dict[tuple[str, str], int] = {}
        self._stacks: dict[str, int] = {}
        self._named: dict[str, int] = {}

    def of(self, metadata: Mapping[str, str], name: str) -> Place:
        scopes = metadata.get(_SCOPES)
        stack = self._stack(metadata.get(_STACK, ""))
        if scopes is None:
            return Place(self._by_name(name), stack, "")
        key = (scopes, metadata.get(_CLASSES, ""))
        if key not in self._scopes:
            self._scopes[key] = self._by_metadata(*key)
        made = _FX_NODE.match(metadata.get(_FX, "")[:_LONGEST])
        return Place(self._scopes[key], stack, f"{made[1]} = {made[2].removesuffix('.default')}" if made else "")

    # -- by metadata ----------------------------------------------------------------------------

    def _by_metadata(self, scopes: str, classes: str) -> int:
        """`['', 'layer1', 'layer1.0', 'conv2d']`: modules from the outermost, and at the end the operator itself."""
        paths, names = _texts(scopes), _texts(classes)
        scope, at = 0, ()
        for i, text in enumerate(paths[:-1][:_DEEPEST]):
            call = _CALL.search(text)
            path = tuple(part for part in _CALL.sub("", text).split(".") if part)
            if not path:
                continue  # the model itself: everything is in it
            cls = names[i].rpartition(".")[2] if i < len(names) else ""
            if path[: len(at)] != at or path == at:  # called from a place that is not its parent
                at = () if path != at else path[:-1]
            for part in path[len(at) : -1]:
                scope = self._pools.scope(scope, part)
            scope, at = self._pools.scope(scope, path[-1], cls, int(call[1]) if call else 0), path
        return scope

    def _stack(self, text: str) -> int:
        if text not in self._stacks:
            frames = [Frame(file, int(line), function) for file, line, function in _FRAME.findall(text[:_LONGEST])]
            self._stacks[text] = self._pools.stack(frames)
        return self._stacks[text]

    # -- by name --------------------------------------------------------------------------------

    def _by_name(self, name: str) -> int:
        """Of `/layer1/layer1.0/conv1/Conv`, and of TensorFlow's `model/conv1/Conv2D`: all but the last part."""
        above = _FUSED.sub("", name).rpartition("/")[0]
        if not above:
            return 0
        if above not in self._named:
            self._named[above] = self._scope([part for part in above.split("/") if part])
        return self._named[above]

    def _scope(self, parts: Sequence[str]) -> int:
        """PyTorch names a part of a container after both: `layer1.0` in `layer1`."""
        if len(parts) > _MOST_PARTS:
            return 0
        scope, before = 0, ""
        for part in parts:
            shown = part.removeprefix(f"{before}.") if before else part
            for piece in shown.split(".") if before or _is_path(part) else [shown]:
                if piece:
                    scope = self._pools.scope(scope, piece)
            before = part
        return scope

    def of_weight(self, name: str) -> int:
        """The module of a parameter: `layer1.0.conv1.weight` lies in `layer1.0.conv1`."""
        parts = name.split(".")
        if len(parts) < 2 or not _is_path(name) or len(parts) > _MOST_PARTS:
            return 0
        return self._scope(parts[:-1])


def _is_path(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)*", text) is not None


def _texts(text: str) -> list[str]:
    """The strings of a Python list, as text; none of anything else."""
    if len(text) > _LONGEST:
        return []
    try:
        found: Any = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return []
    return [item if isinstance(item, str) else "" for item in cast("list[Any]", found)] if type(found) is list else []
