"""GraphBuilder: append nodes and values, then freeze().

Rows go into flat `array`s, because that is what makes building a million nodes take seconds and not a
minute; `freeze` turns them into columns. Who has many nodes at hand appends them at once with `nodes`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from .check import verify
from .columns import Int32, frozen, frozen8
from .enumerations import PHASE_ID, ROLE_ID
from .graph import NULL, Body, Graph
from .pools import Pools
from .relations import Groups, Links

_NODE_FIELDS = 5  # op, name, scope, stack, attrs
_VALUE_FIELDS = 5  # producer, slot, type, name, storage


class GraphBuilder:
    """Builds one graph.

    >>> from opscope.ir import GraphBuilder, Pools
    >>> b = GraphBuilder(Pools())
    >>> x = b.input(b.pools.type("float32", (1, 3)), name="x")
    >>> relu = b.node("relu", [x], phase="forward")
    >>> y = b.output(relu, b.pools.type("float32", (1, 3)))
    >>> b.outputs.append(y)
    >>> b.freeze().n_nodes
    1
    """

    def __init__(self, pools: Pools) -> None:
        self.pools = pools
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self._nodes = array("i")
        self._phases = array("b")
        self._outputs_made = array("i")  # outputs so far, by node: the next output slot
        self._use_start = array("i", [0])
        self._use_values = array("i")
        self._use_args = array("i")
        self._values = array("i")
        self._roles = array("b")
        self._positions: list[int] = []  # the argument names "0", "1", … as string ids
        self._links: dict[str, tuple[array[int], array[int]]] = {}
        self._groups: dict[str, list[tuple[int, int, int, Sequence[int]]]] = {}
        self._bodies: list[Body] = []

    @property
    def n_nodes(self) -> int:
        return len(self._phases)

    @property
    def n_values(self) -> int:
        return len(self._roles)

    # -- rows -----------------------------------------------------------------------------------

    def node(
        self,
        op: str,
        inputs: Sequence[int] = (),
        *,
        args: Iterable[str] | None = None,
        name: str = "",
        scope: int = 0,
        stack: int = 0,
        attrs: Mapping[str, Any] | int = 0,
        phase: str = "other",
    ) -> int:
        """Append an operator that reads `inputs` (value ids, or NULL), named by `args` or by position.

        `scope` and `stack` are ids from the pools; so may `attrs` be, when one set serves many nodes.
        """
        string = self.pools.strings.add
        phases = self._phases
        index = len(phases)
        phases.append(PHASE_ID[phase])
        self._nodes.extend(
            (
                string(op),
                string(name) if name else 0,
                scope,
                stack,
                attrs if isinstance(attrs, int) else self.pools.attrs(attrs),
            )
        )
        self._outputs_made.append(0)
        self._use_values.extend(inputs)
        if args is None:
            self._use_args.extend(self._argument_names(len(inputs)))
        else:
            self._use_args.extend([string(arg) for arg in args])
            if len(self._use_args) != len(self._use_values):
                raise ValueError(f"node {index} ({op}): {len(inputs)} inputs, but another number of argument names")
        self._use_start.append(len(self._use_values))
        return index

    def nodes(
        self,
        ops: Sequence[str],
        inputs: Sequence[Sequence[int]],
        types: Sequence[int],
        *,
        names: Sequence[str] | None = None,
        scopes: Sequence[int] | None = None,
        stacks: Sequence[int] | None = None,
        phases: Sequence[str] | None = None,
    ) -> tuple[range, range]:
        """Append many operators with one output each; several times as fast as one by one.

        Gives the new nodes and the new values. Inputs may name values of the same call: they are
        numbered from `n_values` on, in order.
        """
        count = len(ops)
        nodes, values = range(self.n_nodes, self.n_nodes + count), range(self.n_values, self.n_values + count)
        block = np.zeros((count, _NODE_FIELDS), dtype=np.int32)
        block[:, 0] = self.pools.strings.add_many(ops)
        if names is not None:
            block[:, 1] = self.pools.strings.add_many(names)
        for field, column in ((2, scopes), (3, stacks)):
            if column is not None:
                block[:, field] = np.fromiter(column, np.int32, count)
        self._nodes.frombytes(block.tobytes())
        phase_ids = bytes([PHASE_ID["other"]]) * count if phases is None else bytes(map(PHASE_ID.__getitem__, phases))
        self._phases.frombytes(phase_ids)
        self._outputs_made.frombytes(np.ones(count, dtype=np.int32).tobytes())

        lengths = np.fromiter(map(len, inputs), np.int32, count)
        before = len(self._use_values)
        self._use_values.frombytes(np.fromiter(chain.from_iterable(inputs), np.int32, int(lengths.sum())).tobytes())
        ends = before + np.cumsum(lengths, dtype=np.int32)
        self._use_start.frombytes(ends.tobytes())
        positions = np.arange(before, before + lengths.sum(), dtype=np.int32) - np.repeat(ends - lengths, lengths)
        named = np.array(self._argument_names(int(lengths.max(initial=0))), dtype=np.int32)
        self._use_args.frombytes(named[positions].tobytes())

        made = np.zeros((count, _VALUE_FIELDS), dtype=np.int32)
        made[:, 0] = np.arange(nodes.start, nodes.stop)
        made[:, 2] = np.fromiter(types, np.int32, count)
        made[:, 4] = np.arange(values.start, values.stop)
        self._values.frombytes(made.tobytes())
        self._roles.frombytes(bytes([ROLE_ID["activation"]]) * count)
        return nodes, values

    def columns(
        self,
        *,
        ops: Sequence[int],
        scopes: Sequence[int],
        stacks: Sequence[int],
        attrs: Sequence[int],
        phases: Sequence[str],
        use_ends: Sequence[int],
        use_values: Sequence[int],
        use_args: Sequence[int],
        types: Sequence[int],
        names: Sequence[int],
        roles: Sequence[str],
        storages: Sequence[int],
        producers: Sequence[int],
    ) -> None:
        """Fill an empty builder at once, from columns of ids: five by node, three by use, five by value.

        The outputs of a node take its slots in the order of the values.
        """
        if self.n_nodes or self.n_values:
            raise ValueError("columns fill an empty builder: this one has nodes or values already")
        count = len(ops)
        nodes = np.zeros((count, _NODE_FIELDS), dtype=np.int32)
        for field, column in ((0, ops), (2, scopes), (3, stacks), (4, attrs)):
            nodes[:, field] = column
        self._nodes.frombytes(nodes.tobytes())
        self._phases.frombytes(bytes(map(PHASE_ID.__getitem__, phases)))
        self._use_start.extend(use_ends)
        self._use_values.extend(use_values)
        self._use_args.extend(use_args)

        made = array("i", bytes(4 * count))
        slots: list[int] = []
        for producer in producers:
            slots.append(made[producer] if producer >= 0 else 0)
            if producer >= 0:
                made[producer] += 1
        self._outputs_made = made
        values = np.zeros((len(types), _VALUE_FIELDS), dtype=np.int32)
        for field, column in enumerate((producers, slots, types, names, storages)):
            values[:, field] = column
        self._values.frombytes(values.tobytes())
        self._roles.frombytes(bytes(map(ROLE_ID.__getitem__, roles)))

    def _argument_names(self, count: int) -> list[int]:
        """The ids of "0", "1", … for arguments that have only a position."""
        while len(self._positions) < count:
            self._positions.append(self.pools.string(str(len(self._positions))))
        return self._positions[:count]

    def value(self, type: int = 0, *, name: str = "", role: str = "activation", storage: int | None = None) -> int:
        """Append a value that no node makes (so far: see `produce`)."""
        return self._value(NULL, 0, type, name, role, storage)

    def input(self, type: int = 0, *, name: str = "", role: str = "input") -> int:
        """Append a value that comes from outside the graph."""
        index = self.value(type, name=name, role=role)
        self.inputs.append(index)
        return index

    def output(
        self,
        node: int,
        type: int = 0,
        *,
        name: str = "",
        role: str = "activation",
        storage: int | None = None,
    ) -> int:
        """Append a value that `node` makes, in its next output slot."""
        slot = self._outputs_made[node]
        self._outputs_made[node] = slot + 1
        return self._value(node, slot, type, name, role, storage)

    def produce(self, node: int, value: int) -> None:
        """Make an existing value, made by no node so far, the next output of `node`."""
        row = value * _VALUE_FIELDS
        if self._values[row] != NULL:
            raise ValueError(f"value {value} is made by node {self._values[row]} already")
        self._values[row], self._values[row + 1] = node, self._outputs_made[node]
        self._outputs_made[node] += 1

    def _value(self, producer: int, slot: int, type: int, name: str, role: str, storage: int | None) -> int:
        roles = self._roles
        index = len(roles)
        roles.append(ROLE_ID[role])
        self._values.extend(
            (
                producer,
                slot,
                type,
                self.pools.strings.add(name) if name else 0,
                index if storage is None else storage,
            )
        )
        return index

    # -- what a reader often learns late ----------------------------------------------------------

    def set_role(self, value: int, role: str) -> None:
        self._roles[value] = ROLE_ID[role]

    def set_storage(self, value: int, owner: int) -> None:
        """Say that `value` lives in the memory of `owner` (a view, an update in place, a tied weight)."""
        self._values[value * _VALUE_FIELDS + 4] = self._values[owner * _VALUE_FIELDS + 4]

    # -- relations ------------------------------------------------------------------------------

    def link(self, kind: str, source: int, target: int) -> None:
        """Join two nodes; see `relations.Links` for which way it reads."""
        sources, targets = self._links.setdefault(kind, (array("i"), array("i")))
        sources.append(source)
        targets.append(target)

    def group(
        self,
        kind: str,
        members: Sequence[int],
        *,
        name: str = "",
        code: str = "",
        attrs: Mapping[str, Any] | int | None = None,
    ) -> int:
        """Append a set of nodes, such as the operators of one fused kernel. `attrs`: also by their number."""
        rows = self._groups.setdefault(kind, [])
        number = attrs if isinstance(attrs, int) else self.pools.attrs(attrs or {})
        rows.append((self.pools.string(name), self.pools.string(code), number, members))
        return len(rows) - 1

    def body(self, node: int, label: str, graph: Graph, bindings: Iterable[tuple[int, int]] = ()) -> None:
        """Put a graph inside a node."""
        self._bodies.append(Body(node, label, graph, tuple((int(i), int(o)) for i, o in bindings)))

    # -- the end --------------------------------------------------------------------------------

    def freeze(self) -> Graph:
        """The graph, checked. The builder may go on; the graph does not change any more."""
        op, name, scope, stack, attrs = _columns(self._nodes, _NODE_FIELDS)
        producer, slot, type_, value_name, storage = _columns(self._values, _VALUE_FIELDS)
        graph = Graph(
            pools=self.pools,
            node_op=op,
            node_name=name,
            node_scope=scope,
            node_stack=stack,
            node_attrs=attrs,
            node_phase=frozen8(np.frombuffer(self._phases, dtype=np.int8)),
            use_start=_column(self._use_start),
            use_value=_column(self._use_values),
            use_arg=_column(self._use_args),
            value_producer=producer,
            value_slot=slot,
            value_type=type_,
            value_name=value_name,
            value_role=frozen8(np.frombuffer(self._roles, dtype=np.int8)),
            value_storage=storage,
            inputs=frozen(self.inputs),
            outputs=frozen(self.outputs),
            links=MappingProxyType({kind: Links(kind, _column(s), _column(t)) for kind, (s, t) in self._links.items()}),
            groups=MappingProxyType({kind: _groups(kind, rows) for kind, rows in self._groups.items()}),
            bodies=tuple(self._bodies),
        )
        verify(graph)
        return graph


def _column(rows: array[int]) -> Int32:
    return frozen(np.frombuffer(rows, dtype=np.int32))


def _columns(rows: array[int], fields: int) -> list[Int32]:
    table: npt.NDArray[np.int32] = np.frombuffer(rows, dtype=np.int32).reshape(-1, fields)
    return [frozen(table[:, i]) for i in range(fields)]


def _groups(kind: str, rows: list[tuple[int, int, int, Sequence[int]]]) -> Groups:
    start = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(members) for *_, members in rows], out=start[1:])
    return Groups(
        kind,
        name=frozen([row[0] for row in rows]),
        code=frozen([row[1] for row in rows]),
        attrs=frozen([row[2] for row in rows]),
        start=frozen(start),
        member=frozen([node for *_, members in rows for node in members]),
    )
