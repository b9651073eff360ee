"""From the columns of a recording to a Capture: phases, scopes, gradient pairs, names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from opscope.ir import Capture, Frame, Graph, GraphBuilder, Origin, Pools, Stage, Table, column
from opscope.ir.columns import frozen

from .calls import Call
from .memory import Memory
from .mode import ACCUMULATES, FIELDS, GRAD_ENABLED, IN_BACKWARD, NO_SEQUENCE, Log
from .names import Step
from .pairs import Sequences
from .places import BACKWARD, CHECKPOINT, INIT, OPTIMIZER, Places
from .recomputed import PASSED_OVER, align
from .words import attribute, tensor_type


class StepEnd(NamedTuple):
    """One call of an optimizer's step()."""

    optimizer: int  # id()
    name: str
    cls: str
    began: int  # operators recorded before it
    ended: int


@dataclass
class Names:
    """What memory is called: by storage and window, and by storage alone where that says enough."""

    places: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    storages: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    owners: dict[int, str] = field(default_factory=dict[int, str])  # storage of a state -> the parameter it is for

    def add(self, place: int, storage: int, name: str, role: str, owner: str = "") -> None:
        self.places.setdefault(place, (name, role))
        self.storages.setdefault(storage, (name, role))
        if owner:
            self.owners.setdefault(storage, owner)


@dataclass
class Recorded:
    """Everything that a session saw."""

    log: Log
    memory: Memory
    calls: list[Call]
    places: Places
    names: Names
    variables: dict[int, str]
    arguments: list[str]
    outputs: list[int] | None  # None: what the recorded code left behind
    steps: list[StepEnd]
    first_sequence: int
    has_sequences: bool
    version: str
    lost: int
    failure: Exception | None


class _Columns:
    """The log with its rows as columns."""

    def __init__(self, log: Log) -> None:
        self.schema, self.constant, self.call, self.place, self.state = map(log.column, FIELDS[:5])
        self.sequence, self.node_sequence, self.node_name, self.use_end, self.output_end = map(log.column, FIELDS[5:])
        self.use_value, self.use_argument = log.use_columns()
        self.output_value = log.output_value.tolist()
        self.schemas, self.constants = log.schemas, log.constants
        self.argument_names, self.node_names = log.argument_names, log.node_names
        self.accumulated, self.seconds, self.numbers = log.accumulated, log.seconds, log.numbers
        self.threads = log.threads


def assemble(recorded: Recorded) -> Capture:
    return _Assembly(recorded).capture()


class _Assembly:
    def __init__(self, recorded: Recorded) -> None:
        self._r = recorded
        self._log = _Columns(recorded.log)
        self._pools = Pools()
        self._warnings: list[str] = []
        self._count = recorded.log.count
        self._made_by = _producers(self._log, len(recorded.memory), recorded.memory.seen_through)
        self._phases = [self._phase(i) for i in range(self._count)]
        self._step_of = _step_numbers(recorded.steps, self._count)
        self._optimizer_at = _optimizers_at(recorded.steps)
        self._calls_scopes = self._scopes_of_calls()
        self._stacks: dict[int, int] = {0: 0}
        self._sums: set[int] = set()
        self._updating = ""  # the parameter that the optimizer is at

    def capture(self) -> Capture:
        builder = GraphBuilder(self._pools)
        forward = self._forward_of()
        self._sums = self._sums_of_gradients(forward)
        originals = self._recomputed_of(forward)
        scopes, stacks = self._places(forward, originals)
        roles = self._roles()
        attrs = self._attributes(forward, originals)
        graph = self._build(builder, scopes, stacks, roles, attrs, forward, originals)
        capture = Capture(pools=self._pools, origin=Origin("live", "torch", self._r.version, "recorder"))
        capture.stages.append(Stage("recorded", graph))
        capture.tables.update(self._tables())
        capture.warnings.extend(self._warnings)
        return capture

    # -- phases, scopes, stacks -------------------------------------------------------------------

    def _phase(self, i: int) -> str:
        log = self._log
        call, flags = log.call[i], self._r.places.flags[log.place[i]]
        if log.state[i] & IN_BACKWARD:
            if call >= 0 and self._r.calls[call].is_recomputed:
                return "recompute"
            return "recompute" if flags & CHECKPOINT and log.state[i] & GRAD_ENABLED else "backward"
        if call >= 0:
            return "forward"
        if flags & OPTIMIZER:
            return "optimizer"
        if flags & INIT:
            return "init"
        return "backward" if flags & BACKWARD else "forward"

    def _scopes_of_calls(self) -> list[int]:
        """The scope of every call. A module called twice in the same place has two scopes."""
        calls, step_of = self._r.calls, [0] * len(self._r.calls)
        is_used = [False] * len(calls)
        for i, call in enumerate(self._log.call):
            while call >= 0 and not is_used[call]:
                is_used[call] = True
                step_of[call] = self._step_of[i]
                call = calls[call].parent
        scopes: list[int] = []
        counts: Counter[Any] = Counter()
        for index, call in enumerate(calls):
            above = scopes[call.parent] if call.parent >= 0 else self._step_scope(step_of[index])
            if not is_used[index]:
                scopes.append(above)
                continue
            # Checkpointing runs a module once more, which is not another call of it.
            key = (above, call.steps, call.is_recomputed)
            scopes.append(self._scope(above, call.steps, counts[key]))
            counts[key] += 1
        return scopes

    def _scope(self, above: int, steps: Sequence[Step], number: int) -> int:
        for place, step in enumerate(steps):
            above = self._pools.scope(above, step.name, step.cls, number if place == len(steps) - 1 else 0)
        return above

    def _step_scope(self, step: int) -> int:
        return self._pools.scope(0, f"step {step}") if step else 0

    def _places(self, forward: dict[int, int], originals: dict[int, int]) -> tuple[list[int], list[int]]:
        """Scope and stack of every operator. A gradient operator stands where its forward operator stands."""
        log = self._log
        scopes: list[int] = []
        stacks: list[int] = []
        homes: dict[tuple[int, int], int] = {}  # step and storage of a parameter -> where it is used first
        begin = 0
        for i in range(self._count):
            model = originals.get(i, forward.get(i))
            call = log.call[i]
            if i in originals:
                scope = scopes[originals[i]]
            elif call >= 0:
                scope = self._calls_scopes[call]
            elif model is not None:
                scope = scopes[model]
            elif i in self._optimizer_at:
                scope = self._optimizer_scope(i, begin)
            else:
                home = self._step_of[i], log.accumulated.get(i, -1)
                scope = homes.get(home, self._step_scope(self._step_of[i]))
            scopes.append(scope)
            stacks.append(stacks[model] if not log.place[i] and model is not None else self._stack(log.place[i]))
            if log.accumulated and self._phases[i] == "forward":
                for value in log.use_value[begin : log.use_end[i]]:
                    if value >= 0:
                        homes.setdefault((self._step_of[i], self._r.memory.storage(value)), scope)
            begin = log.use_end[i]
        return scopes, stacks

    def _optimizer_scope(self, i: int, begin: int) -> int:
        """The optimizer, and in it the parameter that is updated, where the operator works for one alone."""
        step = self._optimizer_at[i]
        scope = self._pools.scope(self._step_scope(self._step_of[i]), step.name, step.cls)
        log, memory = self._log, self._r.memory
        touched = [v for v in log.use_value[begin : log.use_end[i]] if v >= 0]
        touched += log.output_value[(log.output_end[i - 1] if i else 0) : log.output_end[i]]
        owners = {owner for v in touched if (owner := self._owner_of(memory.storage(v)))}
        if len(owners) == 1:
            (self._updating,) = owners
        elif owners:
            self._updating = ""
        # Temporaries between two operators of one parameter are that parameter's too.
        return self._pools.scope(scope, self._updating) if self._updating else scope

    def _owner_of(self, storage: int) -> str:
        """The parameter that a storage belongs to: itself, its gradient, or the optimizer's state for it."""
        name, role = self._r.names.storages.get(storage, ("", ""))
        if role == "gradient":
            return name.removesuffix(".grad")
        return name if role == "parameter" else self._r.names.owners.get(storage, "")

    def _stack(self, place: int) -> int:
        known = self._stacks.get(place)
        if known is None:
            outside, frames = self._r.places.rows[place]
            known = self._stack(outside)
            for frame in frames:
                known = self._pools.stacks.add(_stack_row(self._pools, known, frame))
            self._stacks[place] = known
        return known

    # -- pairs ----------------------------------------------------------------------------------

    def _forward_of(self) -> dict[int, int]:
        """Gradient operator -> the operator whose gradient it computes, by autograd's sequence numbers."""
        log = self._log
        names = [log.schemas[s].name for s in log.schema]
        sequences = Sequences(names, log.sequence, log.threads, self._r.first_sequence)
        pairs: dict[int, int] = {}
        for i in range(self._count):
            if log.node_sequence[i] >= 0:
                found = sequences.find(log.node_sequence[i], log.node_names[log.node_name[i]])
                if found is not None and found < i:
                    pairs[i] = found
        return pairs

    def _sums_of_gradients(self, forward: dict[int, int]) -> set[int]:
        """Where gradients of two ways meet, the engine adds them, right after the function that ran last. That
        function's operator has no part in it: one of the two comes from somewhere else."""
        log, made_by = self._log, self._made_by
        found: set[int] = set()
        for i in forward:
            if log.place[i] or log.schemas[log.schema[i]].name not in ("aten.add.Tensor", "aten.add_.Tensor"):
                continue
            begin = log.use_end[i - 1] if i else 0
            makers = [made_by[value] for value in log.use_value[begin : log.use_end[i]] if value >= 0]
            sequences = {log.node_sequence[maker] for maker in makers if maker >= 0}
            if len(makers) == 2 and len(sequences) == 2 and log.node_sequence[i] in sequences:
                found.add(i)
        return found

    def _recomputed_of(self, forward: dict[int, int]) -> dict[int, int]:
        """Recomputed operator -> the operator that it runs once more."""
        names = [self._log.schemas[s].name for s in self._log.schema]
        again = [i for i in range(self._count) if self._phases[i] == "recompute"]
        originals = align(again, names, self._log.node_sequence, forward, self._phases)
        alone = sum(i not in originals and names[i] not in PASSED_OVER for i in again)
        if alone:
            self._warnings.append(
                f"{alone} recomputed operators could not be joined to the ones that they run once more: the "
                "recomputation took another way than the forward pass"
            )
        for i in again:
            forward.pop(i, None)
        return originals

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
                role = "gradient" if self._phases[producer] == "backward" else "activation"
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

    def _attributes(self, forward: dict[int, int], originals: dict[int, int]) -> list[int]:
        log = self._log
        sets = [self._constant_attributes(i) for i in range(len(log.constants))]
        known: dict[tuple[Any, ...], int] = {}
        rows: list[int] = []
        reasons: Counter[str] = Counter()
        begin = 0
        for i in range(self._count):
            why = self._why_alone(i, forward, originals) if self._phases[i] != "forward" else ""
            if why:
                reasons[why.partition(" of ")[0]] += 1
            device = self._device(begin, log.output_end[i])
            begin = log.output_end[i]
            key = (log.constant[i], log.node_name[i], why, device)
            if key not in known:
                attrs = dict(sets[key[0]]) if key[0] >= 0 else {}
                if key[1]:
                    attrs["autograd"] = log.node_names[key[1]]
                if why:
                    attrs["unpaired"] = why
                if device:
                    attrs["device"] = device
                known[key] = self._pools.attrs(attrs)
            rows.append(known[key])
        unseen = reasons.get(_BEFORE, 0)
        if unseen:
            self._warnings.append(
                f"{unseen} gradient operators belong to forward operators that ran before the recording began"
            )
        if not self._r.has_sequences and any(phase == "backward" for phase in self._phases):
            self._warnings.append(
                f"torch {self._r.version} does not tell which operator a gradient belongs to: none are joined"
            )
        return rows

    def _why_alone(self, i: int, forward: dict[int, int], originals: dict[int, int]) -> str:
        """Why a gradient operator or a recomputed one has no original; nothing where it has one."""
        if self._phases[i] == "recompute" and i not in originals:
            is_saving = self._log.schemas[self._log.schema[i]].name in PASSED_OVER
            return "keeps a tensor for the backward pass" if is_saving else "recomputed in another way"
        if i in self._sums:
            return "adds gradients that meet"
        if self._phases[i] != "backward" or i in forward:
            return ""
        sequence = self._log.node_sequence[i]
        if sequence == ACCUMULATES:
            storage = self._log.accumulated.get(i, -1)
            name = self._r.names.storages.get(storage, ("a leaf", ""))[0]
            return f"adds to the gradient of {name}"
        if sequence == NO_SEQUENCE:
            return "the gradient that backward() starts from"
        return _BEFORE

    def _constant_attributes(self, index: int) -> dict[str, Any]:
        """The arguments that are not tensors, by name."""
        constants = self._log.constants[index]
        return {str(name): attribute(value) for name, value in zip(constants[1::2], constants[2::2], strict=True)}

    def _device(self, begin: int, end: int) -> str:
        """Where an operator ran, if not on the CPU."""
        return self._r.memory.device(self._log.output_value[begin]) if begin < end else ""

    def _build(
        self,
        builder: GraphBuilder,
        scopes: list[int],
        stacks: list[int],
        roles: list[tuple[str, str]],
        attrs: list[int],
        forward: dict[int, int],
        originals: dict[int, int],
    ) -> Graph:
        log, memory = self._log, self._r.memory
        string = self._pools.string
        types = [tensor_type(self._pools, window) for window in memory.windows]
        ops = [string(schema.name) for schema in log.schemas]
        arguments = [string(name) for name in log.argument_names]
        owners: dict[int, int] = {}  # storage -> the first value in it
        builder.columns(
            ops=[ops[number] for number in log.schema],
            scopes=scopes,
            stacks=stacks,
            attrs=attrs,
            phases=self._phases,
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
        for i, original in forward.items():
            if i not in self._sums:
                builder.link("grad", original, i)
        for i, original in originals.items():
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
            times = column(np.array(self._log.seconds, dtype=np.float64) * 1e9, "ns")
            tables["time by operator"] = Table(0, "node", frozen(range(self._count)), {"time": times})
        if self._log.numbers:
            rows = list(self._log.numbers.values())
            known = [bool(row) for row in rows]
            columns = {"values": column(rows)}
            for name, figure in (("min", np.min), ("max", np.max), ("mean", np.mean)):
                numbers = np.array([figure(row) if row else 0.0 for row in rows], dtype=np.float64)
                columns[name] = column(numbers, known=known)
            tables["values"] = Table(0, "value", frozen(list(self._log.numbers)), columns)
        if self._r.lost:
            self._warnings.append(
                f"{self._r.lost} operators ran but could not be recorded: {type(self._r.failure).__name__}: "
                f"{self._r.failure}"
            )
        return tables


_BEFORE = "its forward operator ran before the recording began"


def _producers(log: _Columns, values: int, seen_through: dict[int, int]) -> list[int]:
    made_by = [-1] * values
    begin = 0
    for i, end in enumerate(log.output_end):
        for value in log.output_value[begin:end]:
            made_by[value] = i
        begin = end
    for value, write in seen_through.items():
        made_by[value] = made_by[write]
    return made_by


def _step_numbers(steps: list[StepEnd], count: int) -> list[int]:
    """Which training step each operator is in, from 1; 0 where there is only one. A step is over when an
    optimizer is about to step for the second time."""
    ends: list[int] = []
    seen: set[int] = set()
    last = 0
    for step in steps:
        if step.optimizer in seen:
            ends.append(last)
            seen.clear()
        seen.add(step.optimizer)
        last = step.ended
    if seen:
        ends.append(last)
    if len(ends) < 2:
        return [0] * count
    numbers: list[int] = []
    for number, end in enumerate(ends, 1):
        numbers.extend([number] * (end - len(numbers)))
    # What comes after the last step belongs to a step that was not finished.
    return numbers + [len(ends) + 1] * (count - len(numbers))


def _optimizers_at(steps: list[StepEnd]) -> dict[int, StepEnd]:
    return {i: step for step in steps for i in range(step.began, step.ended)}


def _stack_row(pools: Pools, parent: int, frame: Frame) -> Any:
    from opscope.ir.pools import Stack, clean

    return Stack(parent, pools.frames.add(Frame(clean(frame.file), frame.line, clean(frame.function))))


def _at(frames: list[Frame]) -> str:
    for frame in reversed(frames):
        if "/torch/" not in frame.file.replace("\\", "/"):
            return f"from {frame.file.replace(chr(92), '/').rpartition('/')[2]}:{frame.line}"
    return "from outside"
