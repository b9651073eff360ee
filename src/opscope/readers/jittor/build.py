"""From the rows of a dump to a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from opscope.ir import Graph, GraphBuilder, Pools

from . import jit_key
from .dump import Dump, Execution, Op, counted
from .phases import phases, updated_from
from .places import Module, Place, place_of, without_repeats

# Buffers have names like parameters; these are the ones that Jittor's own layers keep.
_BUFFER_NAMES = ("running_mean", "running_var", "num_batches_tracked")


def _first(var_id: int, replaces: Mapping[int, int | None]) -> int:
    """The variable at the start of a line of writes. (A line that a file closes to a ring ends where it began.)"""
    passed: set[int] = set()
    while (old := replaces.get(var_id)) is not None and var_id not in passed:
        passed.add(var_id)
        var_id = old
    return var_id


class KnownVar(NamedTuple):
    """What a live capture knows of a variable that was made before the recording began."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str


class Built(NamedTuple):
    graph: Graph
    node_ids: list[int]  # Jittor's id of each node
    value_ids: list[int]  # and of each value
    warnings: list[str]


def build(dump: Dump, pools: Pools, known: Mapping[int, KnownVar] | None = None) -> Built:
    return _Build(dump, pools, known or {}).run()


class _Build:
    """One pass over the dump; the fields are what the steps hand to each other."""

    def __init__(self, dump: Dump, pools: Pools, known: Mapping[int, KnownVar]) -> None:
        self.dump, self.pools, self.known = dump, pools, known
        self.b = GraphBuilder(pools)
        self.warnings = list(dump.warnings)
        self.order = self._execution_order()
        self.places: dict[int, Place] = {op.id: place_of(op) for op in self.order}
        self.phases = phases(dump, self.order, self.places)
        self.backward = self._gradient_scopes()
        self.node: dict[int, int] = {}  # Jittor's id -> ours
        self.value: dict[int, int] = {}
        self.value_ids: list[int] = []

    def run(self) -> Built:
        attrs = self._operator_attrs()
        self._missing_values()
        scopes = self._scopes()
        for op in self.order:
            self.node[op.id] = self.b.node(
                op.name or "unnamed",
                [self.value[i] for i in op.inputs if i in self.value],
                scope=scopes[op.id],
                stack=self.pools.stack(self.places[op.id].frames),
                attrs=attrs.get(op.id, 0),
                phase=self.phases[op.id],
            )
            for out in self._made(op):
                self._output(op, out)
        self._share_updates()
        self._results()
        self._gradients()
        self._kernels()
        self._say_what_is_missing()
        return Built(self.b.freeze(), [op.id for op in self.order], self.value_ids, self.warnings)

    # -- order ----------------------------------------------------------------------------------

    def _execution_order(self) -> list[Op]:
        """By the first time an operator ran. Operators that never ran come last."""
        ops = self.dump.ops
        seen = dict.fromkeys(i for execution in self.dump.executions for i in execution.ops if i in ops)
        idle = [i for i in ops if i not in seen]
        if idle and self.dump.executions:
            self.warnings.append(
                f"{counted(idle, 'operator', 'operators')} never ran: their place in the order is not known"
            )
        return [ops[i] for i in (*seen, *idle)]

    # -- values ---------------------------------------------------------------------------------

    def _missing_values(self) -> None:
        """Variables that operators read but that nothing in the trace makes: they come from before."""
        made = {v for op in self.order for v in self._made(op)}
        read = sorted({i for op in self.order for i in op.inputs if i not in made and i not in self.dump.ops})
        # Not in the dump at all, or there without the operator that made them.
        for i in [*read, *(v for v in self.dump.vars if v not in made and v not in set(read))]:
            var, known = self.dump.vars.get(i), self.known.get(i)
            if known is not None:
                index = self.b.input(self.pools.type(known.dtype, known.shape), name=known.name, role=known.role)
            elif var is not None:
                role = self._named_role(var.name) if var.name else "input"
                index = self.b.input(self._type(i), name=var.name, role=role)
            else:
                index = self.b.input(role="input")
            self._register(i, index)
        unknown = [i for i in read if i not in self.dump.vars and i not in self.known]
        if unknown:
            uses = sum(i in set(unknown) for op in self.order for i in op.inputs)
            self.warnings.append(
                f"{counted(unknown, 'variable', 'variables')} read {uses} times were made before the recording began: "
                "their names, shapes and types are not in the trace"
            )

    def _made(self, op: Op) -> list[int]:
        """The variables an operator makes, in slot order; both sides must agree that it does."""
        return [
            v for v in dict.fromkeys(op.outputs) if v in self.dump.vars and self.dump.vars[v].producers[:1] == [op.id]
        ]

    def _register(self, jittor_id: int, index: int) -> None:
        self.value[jittor_id] = index
        self.value_ids.append(jittor_id)

    def _type(self, var_id: int) -> int:
        var = self.dump.vars[var_id]
        return self.pools.type(var.dtype, var.shape) if var.dtype or var.shape is not None else 0

    def _output(self, op: Op, var_id: int) -> None:
        name, known = self.dump.vars[var_id].name, self.known.get(var_id)
        role = known.role if known else self._role(op, name)
        index = self.b.output(self.node[op.id], self._type(var_id), name=known.name if known else name, role=role)
        self._register(var_id, index)

    def _role(self, op: Op, name: str) -> str:
        phase = self.phases[op.id]
        if name:
            return self._named_role(name)
        if phase == "backward":
            return "gradient"
        if op.name == "array" and not op.inputs:
            # Data from numpy runs without a generated kernel; a literal in the code is compiled into one.
            return "input" if phase == "other" and op.id not in self.compiled else "constant"
        if phase == "init" and self.places[op.id].in_optimizer:
            return "state"
        return "activation"

    def _named_role(self, name: str) -> str:
        return "buffer" if name.rpartition(".")[2] in _BUFFER_NAMES else "parameter"

    def _share_updates(self) -> None:
        """The updated parameter lives where the old one did."""
        lost: list[str] = []
        first: dict[str, list[int]] = {}
        for var in sorted(self.dump.vars.values()):
            if var.name and var.id in self.value:
                first.setdefault(var.name, []).append(var.id)
        direct = dict(pair for op in self.order for pair in updated_from(self.dump, op))
        seen = {v.id: v.replaces for v in self.dump.vars.values() if v.replaces in self.value and v.id in self.value}
        for var_id in seen:
            self.b.set_storage(self.value[var_id], self.value[_first(var_id, seen)])
        for name, ids in first.items():
            for position, var_id in enumerate(ids):
                if var_id in seen:
                    continue
                old = direct.get(var_id)
                if old is None and position > 0 and len(ids) == 2 and ids[0] not in direct.values():
                    old = ids[0]  # the only other variable of that name
                if old is not None:
                    self.b.set_storage(self.value[var_id], self.value[old])
                elif position > 0 and len(set(ids) - set(direct) - set(seen)) > 1 and not any(n == name for n in lost):
                    lost.append(name)
        if lost:
            self.warnings.append(
                f"several parameters are called {', '.join(map(repr, lost[:5]))}: Jittor lost their full names, "
                "so each is shown on its own"
            )

    def _results(self) -> None:
        """What nothing in the trace reads is what the trace computed."""
        read = {i for op in self.order for i in op.inputs}
        for var_id, index in self.value.items():
            if var_id not in read and self.dump.vars.get(var_id) is not None:
                self.b.outputs.append(index)
        made_by = {v: op for op in self.order for v in self._made(op)}
        for var_id, op in made_by.items():
            if self.phases[op.id] == "optimizer" and var_id not in read and not self.dump.vars[var_id].name:
                self.b.set_role(self.value[var_id], "state")

    # -- scopes ---------------------------------------------------------------------------------

    def _scopes(self) -> dict[int, int]:
        if any(place.kinds or place.around[0] for place in self.places.values()):
            return {op.id: self._live_scope(op) for op in self.order}
        reads: dict[tuple[Module, ...], set[str]] = {}
        for op in self.order:
            names = {self.dump.vars[i].name for i in op.inputs if i in self.dump.vars}
            names |= {self.known[i].name for i in op.inputs if i in self.known}
            reads.setdefault(self.places[op.id].modules, set()).update(names - {""})
        short = {modules: without_repeats(modules, names) for modules, names in reads.items()}
        found: dict[int, int] = {}
        for op in self.order:
            scope = self._gradient_scope(op, 0)
            for name, cls in short[self.places[op.id].modules]:
                scope = self.pools.scope(scope, name, cls)
            found[op.id] = scope
        return found

    def _gradient_scopes(self) -> dict[int, str]:
        """Gradients of gradients stand apart: `backward 2`, `backward 3`. By the operator that each is a gradient of;
        of one that says nothing, by its stack."""
        orders: dict[int, int] = {}
        ops = {op.id: op for op in self.order}
        for op in self.order:
            chain: list[int] = []
            at: int | None = op.id
            while at in ops and at not in orders and at not in chain:
                chain.append(at)
                at = ops[at].grad_of
            for one in reversed(chain):
                target = ops[one].grad_of
                known = 0 if target is None else orders.get(target, 0) + 1
                orders[one] = max(known, self.places[one].order)
        return {op: f"backward {order}" for op, order in orders.items() if order > 1 and self.phases[op] == "backward"}

    def _gradient_scope(self, op: Op, around: int) -> int:
        return self.pools.scope(around, self.backward[op.id]) if op.id in self.backward else around

    def _live_scope(self, op: Op) -> int:
        """The scope of an operator whose calls were seen: nothing to guess, and calls can be told apart."""
        place = self.places[op.id]
        scope = self.pools.scope(0, *place.around) if place.around[0] else 0
        scope = self._gradient_scope(op, scope)
        for (name, cls), call in zip(place.modules, place.calls, strict=True):
            scope = self.pools.scope(scope, name, cls, call)
        return scope

    # -- links and kernels ----------------------------------------------------------------------

    def _gradients(self) -> None:
        orphans: dict[int, list[int]] = {}
        for op in self.order:
            if op.grad_of is None:
                continue
            if op.grad_of in self.node:
                self.b.link("grad", self.node[op.grad_of], self.node[op.id])
            else:
                orphans.setdefault(op.grad_of, []).append(op.id)
        for target, ids in sorted(orphans.items()):
            self.warnings.append(
                f"{counted(ids, 'backward operator', 'backward operators')} computed gradients of operator {target}, "
                "which is not in the trace (it was never executed): no grad link for them"
            )

    def _operator_attrs(self) -> dict[int, int]:
        """What the jit_keys say of the operators, as attribute sets. Also notes what was compiled."""
        self.parsed = [jit_key.parse(execution.jit_key) for execution in self.dump.executions]
        self.compiled: set[int] = set()
        attrs: dict[int, int] = {}
        mismatched: list[int] = []
        for execution, key in zip(self.dump.executions, self.parsed, strict=True):
            if execution.jit_key:
                self.compiled.update(execution.ops)
            for place, (name, found) in key.operators.items():
                op = self.dump.ops.get(execution.ops[place]) if place < len(execution.ops) else None
                if op is None or op.name.partition(".")[0] != name:
                    mismatched += [execution.ops[place]] if place < len(execution.ops) else []
                elif op.id not in attrs:
                    attrs[op.id] = self.pools.attrs(found)
        if mismatched:
            self.warnings.append(
                f"the jit_key does not fit {counted(mismatched, 'operator', 'operators')}: their details are not known"
            )
        return attrs

    def _kernels(self) -> None:
        missing: list[int] = []
        for execution, key in zip(self.dump.executions, self.parsed, strict=True):
            missing += [i for i in execution.ops if i not in self.node]
            members = [self.node[i] for i in execution.ops if i in self.node]
            attrs: dict[str, Any] = {**execution.attrs}
            if execution.jit_key:
                attrs["jit_key"] = execution.jit_key
                if "choices" in key.kernel:
                    attrs["choices"] = key.kernel["choices"]
            self.b.group("kernel", members, name=self._kernel_name(execution), attrs=attrs)
        if missing:
            self.warnings.append(
                f"{counted(missing, 'operator', 'operators')} of kernels that ran are not in the trace"
            )

    def _kernel_name(self, execution: Execution) -> str:
        """What it does, in the order of its operators: `broadcast_to ×2, multiply, reduce.add`."""
        names = [self.dump.ops[i].name for i in execution.ops if i in self.dump.ops]
        counts = Counter(name.removeprefix("binary.").removeprefix("unary.") for name in names)
        return ", ".join(name if n == 1 else f"{name} ×{n}" for name, n in counts.items())

    # -- what a reader of the page should know ----------------------------------------------------

    def _say_what_is_missing(self) -> None:
        if not self.order:
            self.warnings.append(
                "the trace is empty: Jittor records graphs only with trace_py_var=2 or 3, "
                "and only what was executed before dump_trace_data()"
            )
            return
        if any(place.level == 3 for place in self.places.values()):
            self.warnings.append(
                "recorded with trace_py_var=3: stacks are full Python stacks and module names are not in the trace "
                "(record with trace_py_var=2 for modules)"
            )
        elif any(not name for place in self.places.values() for name, _ in place.modules):
            self.warnings.append(
                "the names of some modules are lost: Jittor took a function with a module as its first variable "
                "for the module itself (give that function a first argument that is not a module)"
            )
        several = [v.id for v in self.dump.vars.values() if len(v.producers) > 1]
        if several:
            self.warnings.append(
                f"{counted(several, 'variable', 'variables')} have several producers: the first was taken"
            )
