"""grad_fn and next_functions as a graph of ours.

A backward function is a node. What it hands to its next functions are its outputs, in slot order, also where
nobody takes them; what it is handed are its inputs, in slot order, several in one slot where gradients are added
up. Nothing here is recursive: a long chain is as deep as it is long.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, cast

from opscope.ir import Graph, GraphBuilder, Pools
from opscope.ir.attributes import NO_GRADIENT
from opscope.ir.graph import NULL
from opscope.tracers.torch import private, words

from .autograd_names import Known, Names, memory
from .frames import python_frames, stack_id

_ACCUMULATES = 2**63  # AccumulateGrad has no number of its own, but the largest there is


class Backward:
    """Builds the graph; keeps its functions so that they can be measured."""

    def __init__(self, pools: Pools, names: Names, scope: Callable[[int], int]) -> None:
        self.pools = pools
        self.names = names
        self.scope = scope
        self.builder = GraphBuilder(pools)
        self.warnings: list[str] = []
        self.functions: list[Any] = []  # by node
        self.edges: list[tuple[tuple[Any, int], ...]] = []  # next functions, by node
        self.slots: list[list[int]] = []  # values, by node and output slot
        self.leaves: dict[int, Any] = {}  # node -> the tensor that it accumulates into
        self._index: dict[int, int] = {}  # id of a function -> node
        self._saved: dict[Any, int] = {}
        self._storages: dict[int, int] = {}
        self._names_of: dict[type[Any], list[str]] = {}
        self._made_in: dict[int, int] = {}  # value -> the scope of the function that made it
        self._freed = 0
        self._packed = 0
        self._alive: list[Any] = []  # an id or an address only means something while its object lives

    def add(self, roots: list[tuple[str, Any]]) -> None:
        functions, waiting = self._reach(roots)
        for function in functions:  # leaves first: a saved view of a weight lives in the weight's memory
            if hasattr(function, "variable"):
                self._tensor(function.variable)
        given: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for name, tensor in roots:
            function, slot = private.gradient_edge(tensor)
            value = self.builder.input(
                words.tensor_type(self.pools, tensor), name=f"grad of {name or 'the output'}", role="gradient"
            )
            given[id(function)][slot].append(value)
        # As autograd's engine does: what is ready, the latest made first.
        ready = [(-_number(f), i, f) for i, f in enumerate(functions) if waiting[id(f)] == 0]
        heapq.heapify(ready)
        count = len(functions)
        while ready:
            *_, function = heapq.heappop(ready)
            made = self._node(function, given.pop(id(function), {}))
            for value, (following, slot) in zip(made, function.next_functions, strict=True):
                if following is None:
                    continue
                given[id(following)][slot].append(value)
                waiting[id(following)] -= 1
                if waiting[id(following)] == 0:
                    count += 1
                    heapq.heappush(ready, (-_number(following), count, following))
        if self._packed:
            self.warnings.append(
                f"the saved tensors of {self._packed} functions are not known: hooks have packed them (checkpointing, "
                "offloading), and to unpack them would run those"
            )
        if self._freed:
            self.warnings.append(
                f"the saved tensors of {self._freed} functions are not known: they were freed by a backward pass (call "
                "backward(retain_graph=True) to keep them) or changed in place"
            )

    def _reach(self, roots: list[tuple[str, Any]]) -> tuple[list[Any], dict[int, int]]:
        """Every function, and how many edges lead to each. Held in a list, so that ids stay theirs."""
        found: dict[int, Any] = {}
        waiting: dict[int, int] = {}
        todo: list[Any] = []
        for _, tensor in roots:
            function = private.gradient_edge(tensor)[0]
            if id(function) not in found:
                found[id(function)] = function
                waiting[id(function)] = 0
                todo.append(function)
        while todo:
            for following, _ in todo.pop().next_functions:
                if following is None:
                    continue
                if id(following) not in found:
                    found[id(following)] = following
                    waiting[id(following)] = 0
                    todo.append(following)
                waiting[id(following)] += 1
        functions = list(found.values())
        self._alive += functions
        return functions, waiting

    # -- one function -----------------------------------------------------------------------------

    def _node(self, function: Any, given: dict[int, list[int]]) -> list[int]:
        uses: list[int] = []
        args: list[str] = []
        for slot in range(max([len(_inputs(function)), *(s + 1 for s in given)])):
            values = given.get(slot) or [NULL]
            uses += values
            args += [f"grad[{slot}]"] * len(values)
        attrs: dict[str, Any] = {}
        number = _number(function)
        if number < _ACCUMULATES:
            attrs["sequence"] = number
        variable = getattr(function, "variable", None)
        if variable is not None:
            uses.append(self._tensor(variable))
            args.append("variable")
        else:
            self._saved_tensors(function, uses, args, attrs)
        edges = function.next_functions
        nulls = [slot for slot, (following, _) in enumerate(edges) if following is None]
        if nulls:
            attrs[NO_GRADIENT] = nulls
        # What adds to a leaf's gradient belongs where that gradient comes from.
        comes_from = next((self._made_in[v] for values in given.values() for v in values if v in self._made_in), 0)
        scope = self.scope(number) if number < _ACCUMULATES else comes_from
        index = self.builder.node(
            name_of(function),
            uses,
            args=args,
            scope=scope,
            stack=stack_id(self.pools, python_frames("".join(_traceback(function)))),
            attrs=attrs,
            phase="backward",
        )
        self._index[id(function)] = index
        self.functions.append(function)
        self.edges.append(edges)
        made = [self.builder.output(index, self._edge_type(edge), role="gradient") for edge in edges]
        self.slots.append(made)
        self._made_in.update(dict.fromkeys(made, scope))
        if variable is not None:
            self.leaves[index] = variable
            known = self.names.of(variable)
            name = f"{known.name}.grad" if known else ""
            self.builder.outputs.append(
                self.builder.output(index, words.tensor_type(self.pools, variable), name=name, role="gradient")
            )
        return made

    def _edge_type(self, edge: tuple[Any, int]) -> int:
        following, slot = edge
        if following is None:
            return 0
        inputs = _inputs(following)
        return words.tensor_type(self.pools, inputs[slot]) if slot < len(inputs) else 0

    def _saved_tensors(self, function: Any, uses: list[int], args: list[str], attrs: dict[str, Any]) -> None:
        freed = packed = False
        for name in self._saved_names(function):
            if private.is_packed(function, name):
                packed = True
                continue
            try:
                held = getattr(function, name)
            except RuntimeError:
                freed = True
                continue
            label = name.removeprefix("_")
            for path, item in _spread(label, held):
                if item is None:
                    continue
                if hasattr(item, "dtype") and hasattr(item, "shape"):
                    uses.append(self._tensor(item))
                    args.append(path)
            if not _has_tensors(held) and held is not None:
                attrs[label] = words.attribute(_signed(held))
        self._freed += freed
        self._packed += packed

    def _saved_names(self, function: Any) -> list[str]:
        cls = cast("type[Any]", type(function))
        if cls not in self._names_of:
            names = [name for name in dir(function) if name.startswith("_saved_")]
            # A custom autograd.Function keeps its tensors under one name.
            self._names_of[cls] = names or [name for name in ("saved_tensors",) if hasattr(cls, name)]
        return self._names_of[cls]

    def _tensor(self, tensor: Any) -> int:
        """The value of a tensor from the forward pass; the same memory, read in the same way, is the same value."""
        key = memory(tensor) or ("object", id(tensor))
        if key[0] == "object":
            self._alive.append(tensor)
        if key not in self._saved:
            known = self.names.of(tensor) or Known("", self.names.role_of_memory(tensor))
            value = self.builder.value(words.tensor_type(self.pools, tensor), name=known.name, role=known.role)
            self._saved[key] = value
            if key[0] != "object":
                self._alive.append(tensor)  # or its memory may be given to another one
                owner = self._storages.setdefault(key[0], value)
                if owner != value:
                    self.builder.set_storage(value, owner)
        return self._saved[key]

    # -- the end ----------------------------------------------------------------------------------

    def freeze(self) -> Graph:
        return self.builder.freeze()

    def rows(self) -> Iterator[tuple[Any, Any, Any]]:
        for function, edges in zip(self.functions, self.edges, strict=True):
            number = _number(function)
            yield function, number if number < _ACCUMULATES else "", edges


def name_of(function: Any) -> str:
    """`AccumulateGrad`: C++ adds where it lives."""
    return str(function.name()).rpartition("::")[2]


def _number(function: Any) -> int:
    return int(function._sequence_nr())


def _inputs(function: Any) -> Any:
    """Shape, dtype and device of what a function is handed."""
    return getattr(function, "_input_metadata", ())


def _traceback(function: Any) -> list[str]:
    return list(function.metadata.get("traceback_", ()))


def _signed(value: Any) -> Any:
    """Negative dimensions come out of C++ as very large numbers."""
    if isinstance(value, list | tuple):
        return [_signed(item) for item in cast("list[Any]", value)]
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


def _spread(label: str, held: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(held, list | tuple):
        for i, item in enumerate(cast("list[Any]", held)):
            yield f"{label}[{i}]", item
    else:
        yield label, held


def _has_tensors(held: Any) -> bool:
    return any(hasattr(item, "dtype") and hasattr(item, "shape") for _, item in _spread("", held))
