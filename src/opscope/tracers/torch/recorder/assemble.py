"""From the account of a recording to a Capture: values with their names and roles, attributes, tables."""

from __future__ import annotations

import json
from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np

from opscope.ir import Capture, Frame, Gap, Graph, GraphBuilder, Origin, Pools, Stage, Table
from opscope.ir.attributes import NESTED, SPARSE, UNPAIRED, WITHOUT_RECORDER
from opscope.ir.gaps import note
from opscope.ir.measurements import TIMES, VALUES, figures_table, times_table, values_table
from opscope.ir.ranks import note_rank
from opscope.tracers.torch.words import attribute, tensor_type

from .account import Account, Columns
from .otherwise import DIGITS, of_gradients, of_matrices
from .placement import FORWARD_BEFORE, Placement
from .places import COMPILED


def assemble(account: Account) -> Capture:
    return _Assembly(account).capture()


class _Assembly:
    def __init__(self, account: Account) -> None:
        self._r = account
        self._log = Columns(account.log)
        self._pools = Pools()
        self._warnings: list[str] = []
        self._count = account.log.count
        self._made_by = _producers(self._log, len(account.memory), account.memory.seen_through)
        self._placed = Placement(account, self._log, self._made_by, self._pools)

    def capture(self) -> Capture:
        roles = self._roles()
        attrs = self._attributes()
        graph = self._build(roles, attrs)
        capture = Capture(pools=self._pools, origin=Origin("live", "torch", self._r.version, "recorder"))
        capture.stages.append(Stage("recorded", graph))
        capture.tables.update(self._tables())
        capture.warnings.extend([*self._placed.warnings, *self._warnings])
        if self._r.rank is not None:
            note_rank(capture, 0, *self._r.rank, self._r.groups)
        note(capture, 0, self._gaps())
        return capture

    # -- values -----------------------------------------------------------------------------------

    def _roles(self) -> list[tuple[str, str]]:
        """Name and role of every value."""
        memory, names = self._r.memory, self._r.names
        found: list[tuple[str, str]] = []
        for value, producer in enumerate(self._made_by):
            known = names.places.get(memory.place[value]) or names.storages.get(memory.storage(value))
            variable = self._r.variables.get(value, "")
            if producer < 0:
                found.append(known or (variable, "input" if variable else "constant"))
            elif known is not None and (value in memory.writes or known[1] in ("state", "gradient")):
                found.append(known)
            else:
                role = "gradient" if self._placed.phases[producer] == "backward" else "activation"
                found.append((variable, role))
        self._name_constants(found)
        return found

    def _name_constants(self, roles: list[tuple[str, str]]) -> None:
        """What has no name is called by the line that reads it first."""
        log, made_by = self._log, self._made_by
        if all(name or by >= 0 for (name, _), by in zip(roles, made_by, strict=True)):
            return
        begin = 0
        for i in range(self._count):
            for value in log.use_value[begin : log.use_end[i]]:
                if value >= 0 and made_by[value] < 0 and not roles[value][0]:
                    frames = self._r.places.frames(log.place[i])
                    roles[value] = (_at(frames), roles[value][1])
            begin = log.use_end[i]

    # -- the graph --------------------------------------------------------------------------------

    def _attributes(self) -> list[int]:
        log = self._log
        sets = [self._constant_attributes(i) for i in range(len(log.constants))]
        known: dict[tuple[Any, ...], int] = {}
        rows: list[int] = []
        reasons: Counter[str] = Counter()
        inexact: dict[str, None] = {}
        self._has_odd = any(window.parts is not None or window.layout for window in self._r.memory.windows)
        begin = 0
        for i in range(self._count):
            why = self._placed.why_alone(i) if self._placed.phases[i] != "forward" else ""
            if why:
                reasons[why.partition(" of ")[0]] += 1
            device = self._device(begin, log.output_end[i])
            begin = log.output_end[i]
            is_compiled = bool(self._r.places.flags[log.place[i]] & COMPILED) and not self._r.runs_compiled
            odd = self._odd_tensors(i) if self._has_odd else ""
            other = self._otherwise(i)
            if other.endswith(DIGITS):
                inexact[other.removesuffix(DIGITS)] = None
            key = (log.constant[i], log.node_name[i], why, device, is_compiled, odd, other)
            if key not in known:
                attrs = dict(sets[key[0]]) if key[0] >= 0 else {}
                attrs |= json.loads(odd) if odd else {}
                if key[1]:
                    attrs["autograd"] = log.node_names[key[1]]
                if why:
                    attrs[UNPAIRED] = why
                if other:
                    attrs[WITHOUT_RECORDER] = other
                if device:
                    attrs["device"] = device
                if is_compiled:
                    attrs["compile"] = "recorded as it runs without torch.compile"
                known[key] = self._pools.attrs(attrs)
            rows.append(known[key])
        if not self._r.runs_compiled:
            self._name_compiled()
        if inexact:
            self._warnings.append(
                "PyTorch takes another way while any recorder is active: without one it runs "
                f"{_listed(list(inexact))}, and the last digits may differ"
            )
        unseen = reasons.get(FORWARD_BEFORE, 0)
        if unseen:
            self._warnings.append(
                f"{unseen} gradient operators belong to forward operators that ran before the recording began"
            )
        if not self._r.has_sequences and any(phase == "backward" for phase in self._placed.phases):
            self._warnings.append(
                f"torch {self._r.version} does not say which operator a gradient belongs to: none are joined"
            )
        return rows

    def _otherwise(self, i: int) -> str:
        """What PyTorch runs without a recorder instead of this operator."""
        log, memory = self._log, self._r.memory
        op, function = log.schemas[log.schema[i]].name, log.node_names[log.node_name[i]]
        if function and (other := of_gradients(function, op, i in self._placed.sums)):
            return other
        if "linalg" not in op:
            return ""
        made = log.output_value[log.output_end[i - 1] if i else 0 : log.output_end[i]]
        is_complex = lambda: memory.windows[memory.window_number(made[0])].dtype.is_complex  # noqa: E731
        return of_matrices(op, made, self._needed.__contains__, is_complex)

    @cached_property
    def _needed(self) -> set[int]:
        """The values that something reads, or that are left."""
        return {*self._log.use_value, *self._outputs()}

    def _name_compiled(self) -> None:
        """What torch.compile would have taken, by module or by line."""
        log, places, pools = self._log, self._r.places, self._pools
        where: dict[str, int] = {}
        for i in range(self._count):
            if places.flags[log.place[i]] & COMPILED:
                path = pools.scope_path(self._placed.scopes[i]).partition("/")[0] if log.call[i] >= 0 else ""
                where[path or _at(places.frames(log.place[i])).removeprefix("from ")] = 1
        if where:
            self._warnings.append(
                f"torch.compile was disabled while this was recorded: {_listed(list(where))} ran as written, operator "
                "by operator (how='dynamo' and how='joint' show what the compiler takes)"
            )

    def _odd_tensors(self, i: int) -> str:
        """What the types of nested and sparse tensors do not say, as JSON: the sizes of their parts, how many numbers
        they store."""
        log, memory = self._log, self._r.memory
        nested: dict[str, dict[str, Any]] = {}
        sparse: dict[str, dict[str, Any]] = {}
        uses = range(log.use_end[i - 1] if i else 0, log.use_end[i])
        read = [(log.argument_names[log.use_argument[use]], log.use_value[use]) for use in uses]
        made = enumerate(log.output_value[log.output_end[i - 1] if i else 0 : log.output_end[i]])
        named = [("arguments", *row) for row in read] + [("results", str(slot), value) for slot, value in made]
        for where, name, value in named:
            window = memory.windows[memory.window_number(value)] if value >= 0 else None
            if window is not None and window.parts is not None:
                nested.setdefault(where, {})[name] = window.parts
            if window is not None and window.layout:
                sparse.setdefault(where, {})[name] = window.entries
        found = {name: table for name, table in ((NESTED, nested), (SPARSE, sparse)) if table}
        return json.dumps(found) if found else ""

    def _constant_attributes(self, index: int) -> dict[str, Any]:
        """The arguments that are not tensors, by name."""
        constants = self._log.constants[index]
        return {str(name): attribute(value) for name, value in zip(constants[1::2], constants[2::2], strict=True)}

    def _device(self, begin: int, end: int) -> str:
        """Where an operator ran, if not on the CPU."""
        return self._r.memory.device(self._log.output_value[begin]) if begin < end else ""

    def _build(self, roles: list[tuple[str, str]], attrs: list[int]) -> Graph:
        log, memory, placed = self._log, self._r.memory, self._placed
        builder = GraphBuilder(self._pools)
        string = self._pools.string
        types = [tensor_type(self._pools, window) for window in memory.windows]
        ops = [string(schema.name) for schema in log.schemas]
        arguments = {number: string(log.argument_names[number]) for number in dict.fromkeys(log.use_argument)}
        owners: dict[int, int] = {}  # storage -> the first value in it
        builder.columns(
            ops=[ops[number] for number in log.schema],
            scopes=placed.scopes,
            stacks=placed.stacks,
            attrs=attrs,
            phases=placed.phases,
            use_ends=log.use_end,
            use_values=log.use_value,
            use_args=[arguments[number] for number in log.use_argument],
            types=[types[memory.window_number(value)] for value in range(len(memory))],
            names=[string(name) if name else 0 for name, _ in roles],
            roles=[role for _, role in roles],
            storages=[owners.setdefault(memory.storage(value), value) for value in range(len(memory))],
            producers=self._made_by,
        )
        inputs = [value for value, by in enumerate(self._made_by) if by < 0 and roles[value][1] == "input"]
        builder.inputs.extend(self._in_order(inputs, roles))
        builder.outputs.extend(self._outputs())
        for i, original in placed.forward.items():
            if i not in placed.sums:
                builder.link("grad", original, i)
        for i, original in placed.originals.items():
            builder.link("recompute", original, i)
        return builder.freeze()

    def _in_order(self, inputs: list[int], roles: list[tuple[str, str]]) -> list[int]:
        """The arguments of the call in their order, then the rest as they were met."""
        order = {name: place for place, name in enumerate(self._r.arguments)}
        return sorted(inputs, key=lambda value: (order.get(roles[value][0], len(order)), value))

    def _outputs(self) -> list[int]:
        if self._r.outputs is not None:
            return list(dict.fromkeys(self._r.outputs))
        memory = self._r.memory
        newest: dict[int, int] = {}
        for value, producer in enumerate(self._made_by):
            if producer >= 0 and memory.is_alive(memory.storage(value)):
                newest[memory.place[value]] = value
        read = set(self._log.use_value)
        held = self._r.variables  # a loss is read by its backward pass, and is still a result
        return [v for v in newest.values() if v not in read or v in memory.writes or v in held]

    def _tables(self) -> dict[str, Table]:
        tables: dict[str, Table] = {}
        if len(self._log.seconds) == self._count:
            nanoseconds = np.array(self._log.seconds, dtype=np.float64) * 1e9
            tables[TIMES] = times_table(0, "node", range(self._count), nanoseconds)
        if self._log.measured:
            tables[VALUES] = values_table(0, self._log.measured)
        if self._r.statistics:
            tables[VALUES] = figures_table(0, self._r.statistics, self._r.whole)
        for reason, count in self._r.unmeasured.items():
            self._warnings.append(f"the numbers of {count} results could not be taken ({reason})")
        return tables

    def _gaps(self) -> list[Gap]:
        """What ran and is not in the graph."""
        scope_of = self._placed.scope_of_call
        gaps = [
            Gap(
                lost.reason,
                lost.count,
                scope_of(lost.call),
                is_inside=False,
                phase="backward" if lost.is_backward else "forward",
                op=lost.op,
            )
            for lost in self._r.lost
        ]
        unseen = {(why, scope_of(call)): None for call, why in self._r.unseen.items()}
        return gaps + [Gap(why, scope=scope) for why, scope in unseen] + [Gap(why) for why in self._r.threads]


def _producers(log: Columns, values: int, seen_through: dict[int, int]) -> list[int]:
    made_by = [-1] * values
    begin = 0
    for i, end in enumerate(log.output_end):
        for value in log.output_value[begin:end]:
            made_by[value] = i
        begin = end
    for value, write in seen_through.items():
        made_by[value] = made_by[write]
    return made_by


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _at(frames: list[Frame]) -> str:
    for frame in reversed(frames):
        if "/torch/" not in frame.file.replace("\\", "/"):
            return f"from {frame.file.replace(chr(92), '/').rpartition('/')[2]}:{frame.line}"
    return "from outside"
