"""TorchScript's graphs: the hierarchical one of calls between methods, and the one with every call opened.

torch's inlined graph forgets from which call an operator came. So the calls are opened here once more, which gives
the module, the number of the call and the line of every caller; both have the operators in the same order.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from opscope.ir import Capture, Listing, Pools, Stage, StageLink, add_listings
from opscope.ir.columns import frozen
from opscope.sources import embed, exact
from opscope.tracers.torch.private import the_torch

from .listings import aligned
from .origin import origin
from .script_graph import Script, Walk
from .script_values import CannotOpen, class_name

_KIND = re.compile(r"(?:= |^\s*)(\w+::\w+)[\[(]")


def of_script(script: Any, *, how: str = "torchscript", warnings: list[str] | None = None) -> Capture:
    """A ScriptModule or ScriptFunction as it is."""
    pools = Pools()
    source = Script(pools, script)
    outer = Walk(source, opened=False)
    hierarchical = outer.run(script.graph)
    warnings = list(warnings or ())
    inlined_graph = script.inlined_graph
    calls = Walk(source, opened=True)
    try:
        calls.run(script.graph)
    except CannotOpen as reason:
        warnings.append(
            f"the calls could not be followed ({reason}): lines are those inside of functions, and the calls of one "
            "module are not distinguished"
        )
    inner = Walk(source, opened=True, trail=calls.trail)
    inlined = inner.run(inlined_graph)
    code = _code(script)
    stages = [
        Stage("hierarchical", hierarchical),
        Stage("inlined", inlined, after=0),
    ]
    capture = Capture(pools, stages, origin=origin(how), warnings=warnings)
    add_listings(capture, 0, _listings(script.graph, outer, code))
    add_listings(capture, 1, _listings(inlined_graph, inner, code))
    pairs = sorted({(origin, node) for node, origin in inner.origins.items() if origin >= 0})
    # Both walks see the same top-level nodes in the same order, so that their numbers are comparable.
    pairs = [(outer.top[a], b) for a, b in pairs if a < len(outer.top) and outer.top[a] >= 0]
    if pairs:
        source_nodes, target_nodes = (frozen(np.array(column, dtype=np.int32)) for column in zip(*pairs, strict=True))
        capture.stage_links.append(StageLink(0, 1, "lowers", source_nodes, target_nodes, "reported"))
    embed(capture, exact)
    return capture


# -- texts ------------------------------------------------------------------------------------------


def _listings(graph: Any, walk: Walk, code: str) -> dict[str, Listing]:
    rows: list[tuple[str, ...]] = []
    lines: list[tuple[int, int]] = []
    for node, index in zip(_all_nodes(graph), walk.with_constants(graph), strict=False):
        outputs = ", ".join(f"%{value.debugName()}" for value in node.outputs())
        inputs = ", ".join(f"%{value.debugName()}" for value in node.inputs())
        attributes = ", ".join(f"{name}={_attribute(node, name)}" for name in node.attributeNames())
        rows.append(
            (
                "block" if node.owningBlock().owningNode() is not None else "node",
                outputs,
                node.kind(),
                inputs,
                attributes,
            )
        )
        if index is not None:
            lines.append((len(rows) + 2, index))
    native = str(graph)
    schemas = sorted({node.schema() for node in _all_nodes(graph) if node.schema() != "(no schema)"})
    text = "\n".join([native.rstrip("\n"), "", "# schemas", *schemas]) if schemas else native
    return {
        "table": Listing(aligned(("kind", "name", "op", "inputs", "attributes"), rows), lines),
        "code": Listing(code),
        "native": Listing(text, _native_lines(native, walk)),
    }


def _all_nodes(block: Any) -> list[Any]:
    found: list[Any] = []
    for node in block.nodes():
        found.append(node)
        for inner in node.blocks():
            found += _all_nodes(inner)
    return found


def _attribute(node: Any, name: str) -> str:
    kind = node.kindOf(name)
    try:
        value = getattr(node, kind)(name)
    except (RuntimeError, AttributeError):
        return "?"
    return f"tensor {list(value.shape)}" if kind == "t" else repr(value)


def _native_lines(text: str, walk: Walk) -> list[tuple[int, int]]:
    """The printed graph has one line for each node, in the order in which we walked; constants are no nodes."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = _KIND.search(line.partition(" # ")[0])
        if match and match[1] != "prim::Constant":
            found.append((number, match[1]))
    order = walk.order
    if [kind for _, kind in found] != [kind for kind, _ in order]:
        return []
    return [(number, node) for (number, _), (_, node) in zip(found, order, strict=True) if node is not None]


def _code(script: Any) -> str:
    """The generated code, one part for each submodule that has some."""
    torch = the_torch()

    if isinstance(script, torch.jit.ScriptFunction):
        return str(script.code)
    parts: list[str] = []
    for path, module in script.named_modules():
        names = _method_names(module)
        for name in names:
            method = getattr(module, name, None) if name != "forward" else module
            try:
                code = str(getattr(method, "code", "") or "").strip()
            except RuntimeError as error:  # torch cannot print a default that is an undefined tensor
                code = f"# torch could not print this: {str(error).splitlines()[0]}"
            if code:
                parts.append(f"# {path or 'the module itself'} ({class_name(module)})\n{code}")
    return "\n\n".join(parts)


def _method_names(module: Any) -> list[str]:
    inner = getattr(module, "_c", None)
    try:
        return list(inner._method_names()) if inner is not None else ["forward"]
    except (AttributeError, RuntimeError):
        return ["forward"]
