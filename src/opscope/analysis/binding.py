"""Numbers for the sizes that a capture leaves open: symbols (`b=4`), and sizes without a name.

A symbol stands for one number wherever it is. Some frameworks (Paddle) only say that a size is not known; those of
inputs are given by the input (`x[0]=4`), or all at once (`?=4`), and what follows from them is worked out operator by
operator: only where it is certain, so that the rest stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np

from opscope.errors import OpscopeError
from opscope.ir import Capture, Graph, Node, Type, Value, frozen
from opscope.ir.dtypes import of_element
from opscope.ir.symbols import bound, names, symbols
from opscope.ops import canonical
from opscope.ops.kinds import RULES

Kind = TypeVar("Kind", bound=Capture)

EVERY = "?"  # every size that has no name
_SHOWN = 12
Shape = tuple[int | str | None, ...]


def bind(capture: Kind, sizes: Mapping[str, int]) -> Kind:
    """The capture with numbers for open sizes. OpscopeError for a name that it does not have.

    >>> bind(capture, {"s77": 4})                                    # doctest: +SKIP
    """
    if not sizes:
        return capture
    known, axes = symbols(capture), _open_axes(capture)
    by_symbol: dict[str, int] = {}
    by_axis: dict[str, int] = {}
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OpscopeError(f"size {name}={size!r}: a size is a whole number, 0 or more")
        if name in known:
            by_symbol[name] = size
        elif name == EVERY and None in axes.values():
            by_axis |= {axis: size for axis, symbol in axes.items() if symbol is None and axis not in sizes}
        elif name in axes and axes[name] is None:
            by_axis[name] = size
        elif name in axes and (symbol := _only(axes[name])) is not None:
            by_symbol[symbol] = size
        else:
            raise OpscopeError(f"there is no open size {name!r} (there are: {_listed(known, axes)})")
    if by_symbol:
        capture = bound(capture, by_symbol)
    return _with_axes(capture, by_axis) if by_axis else capture


def open_sizes(capture: Capture) -> list[str]:
    """What `bind` takes: symbols, and the axes of inputs whose size has no name."""
    return [*symbols(capture), *(axis for axis, symbol in _open_axes(capture).items() if symbol is None)]


def _listed(known: list[str], axes: Mapping[str, str | None]) -> str:
    every = [*known, *axes, *([EVERY] if None in axes.values() else [])]
    more = f", … {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more if every else "none, all sizes are numbers"


def _only(size: str | None) -> str | None:
    """The symbol that a size is, if it is nothing but that."""
    return size if size is not None and names(size) == {size} else None


def _open_axes(capture: Capture) -> dict[str, str | None]:
    """`x[0]` of every input whose size is open -> the symbol, or None where it has no name."""
    found: dict[str, str | None] = {}
    for stage in capture.stages:
        for value in _inputs(stage.graph):
            for axis, size in enumerate(value.type.shape or ()):
                if value.name and not isinstance(size, int):
                    found.setdefault(f"{value.name}[{axis}]", size)
    return found


def _inputs(graph: Graph) -> list[Value]:
    return [value for value in graph.values if value.producer is None and value.role in ("input", "activation")]


# -- sizes without a name ---------------------------------------------------------------------------------


def _with_axes(capture: Kind, given: Mapping[str, int]) -> Kind:
    done: dict[int, Graph] = {}
    stages = [
        replace(stage, graph=done.setdefault(id(stage.graph), _worked_out(stage.graph, capture, given)))
        for stage in capture.stages
    ]
    return replace(capture, stages=stages)


def _worked_out(graph: Graph, capture: Capture, given: Mapping[str, int]) -> Graph:
    framework, pools = capture.origin.framework, graph.pools
    types = [pools.types[int(number)] for number in graph.value_type]
    for value in _inputs(graph):
        for axis, size in enumerate(value.type.shape or ()):
            number = given.get(f"{value.name}[{axis}]")
            if size is None and number is not None:
                types[value.index] = _with(types[value.index], axis, number)
    for node in graph.nodes:
        outputs = [value for value in node.outputs if value.type.shape is not None and None in value.type.shape]
        if outputs:
            rule = _rule(canonical(framework, node.op))
            for value in outputs:
                found = rule(node, value, types)
                if found is not None:
                    types[value.index] = Type(value.type.dtype, found)
    numbers = [pools.types.add(type_) for type_ in types]
    return replace(graph, value_type=frozen(np.array(numbers, dtype=np.int32)))


def _with(type_: Type, axis: int, size: int) -> Type:
    shape = list(type_.shape or ())
    shape[axis] = size
    return Type(type_.dtype, tuple(shape))


def _same_count(node: Node, value: Value, types: list[Type]) -> Shape | None:
    """Moving numbers around makes neither more nor less of them: one open size follows from the others."""
    shape = value.type.shape or ()
    counts = [types[use.value.index].elements for use in node.uses if use.value is not None and _is_data(use.value)]
    if shape.count(None) != 1 or not counts or None in counts:
        return None
    known = prod(size for size in shape if isinstance(size, int))
    total = sum(count for count in counts if count is not None)
    if any(isinstance(size, str) for size in shape) or not known or total % known:
        return None
    return tuple(total // known if size is None else size for size in shape)


def _is_data(value: Value) -> bool:
    """Not the numbers that say how to reshape."""
    return not of_element(value.type.dtype).startswith(("int", "uint")) or len(value.type.shape or ()) > 1


def _same_axes(node: Node, value: Value, types: list[Type]) -> Shape | None:
    """Element by element: sizes are those of the arguments, counted from the last one; 1 gives way."""
    shape = list(value.type.shape or ())
    given = [types[use.value.index].shape for use in node.uses if use.value is not None]
    for axis in range(1, len(shape) + 1):
        if shape[-axis] is None:
            sizes = {other[-axis] for other in given if other is not None and len(other) >= axis} - {1}
            if len(sizes) == 1:
                shape[-axis] = sizes.pop()
    return tuple(shape)


def _same_batch(node: Node, value: Value, types: list[Type]) -> Shape | None:
    """Samples stay samples: the first size is that of the first argument, where both are open."""
    shape = list(value.type.shape or ())
    first = next((use.value for use in node.uses if use.value is not None), None)
    if first is None or not shape or not first.type.shape:
        return None
    is_open = shape[0] is None and first.type.shape[0] is None
    size = (types[first.index].shape or (None,))[0]
    return (size, *shape[1:]) if is_open and isinstance(size, int) else None


def _nothing(node: Node, value: Value, types: list[Type]) -> Shape | None:
    return None


_SAME_COUNT = (
    *("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "permute", "t", "movedim"),
    *("contiguous", "detach", "alias", "identity", "copy", "cast", "to", "cat", "pixel_shuffle", "channel_shuffle"),
)
_BY_ELEMENT = ("pointwise", "normalization")  # modules of formulas
_BY_SAMPLE = ("matmul", "convolution", "attention", "pooling", "recurrent", "indexing")


def _rule(kind: str) -> Callable[[Node, Value, list[Type]], Shape | None]:
    if kind in _SAME_COUNT:
        return _same_count
    if kind in ("softmax", "log_softmax", "dropout", "fill"):
        return _same_axes
    module = RULES[kind].__module__.rpartition(".")[2] if kind in RULES else ""
    return _same_axes if module in _BY_ELEMENT else _same_batch if module in _BY_SAMPLE else _nothing
