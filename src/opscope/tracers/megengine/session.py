"""One recording: every operator that MegEngine runs becomes a node at once."""

from __future__ import annotations

import importlib
import math
import os
import time
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, cast

import numpy as np

from opscope.ir import Capture, Frame, GraphBuilder, Origin, Pools, Stage, Table
from opscope.ir.attributes import NOT_KNOWN
from opscope.ir.gaps import Gap, note
from opscope.ir.measurements import TIMES, times_table
from opscope.readers.megengine.kinds import op_name
from opscope.sources import embed, exact
from opscope.tracers import session
from opscope.tracers.arguments import tensors_in
from opscope.tracers.frames import OWN, frame_at, held_in, name_in_stack
from opscope.tracers.session import NothingRecorded

from .names import Known, Modules, Step
from .private import OperatorHook, value_id
from .watch import Watcher

_LEFT_OUT = frozenset(("workspace_limit", "comp_node", "scope"))  # of how it runs, and not of what it computes


class Session(session.Session):
    def __init__(
        self,
        caller: FrameType,
        *,
        model: Any = None,
        models: Sequence[tuple[str, Any]] = (),
        arguments: Sequence[tuple[str, Any]] = (),
        times: bool = False,
        steps: int | None = None,
    ) -> None:
        megengine: Any = importlib.import_module("megengine")
        core2: Any = importlib.import_module("megengine.core._imperative_rt.core2")

        self._version = str(megengine.__version__)
        self._root = os.path.dirname(megengine.__file__) + os.sep
        self._tensor: type[Any] = core2.Tensor
        self._sync: Any = core2.sync
        self._tracing: Any = importlib.import_module("megengine.jit.tracing")
        self._unseen = 0
        self._stop_at = caller.f_back
        self._caller: FrameType | None = caller
        self._pools = Pools()
        self._b = GraphBuilder(self._pools)
        self._values: dict[int, int] = {}  # MegEngine's number of a value -> ours
        self._names: dict[int, Known] = {}
        self._first: dict[str, int] = {}  # the first value that a parameter had
        self._latest: dict[str, int] = {}
        self._modules = Modules(model)
        self._scopes: list[tuple[int, tuple[Step, ...]]] = []
        self._calls: dict[tuple[int, str], int] = {}
        self._stacks: dict[tuple[Any, ...], int] = {}
        self._codes: set[CodeType] = set()  # kept, so that no other code gets the same id
        self._times: list[float] | None = [] if times else None
        self._optimizing = self._backward = self._backwards = self._stepped = 0
        self._most_steps = steps
        self._step_from = 0
        self._made: list[tuple[int, tuple[int, int]]] = []  # by optimizers: MegEngine's number, (value, node)
        self._types: dict[int, int] = {}
        self._lost: Counter[str] = Counter()  # operators that are not in the capture
        self._reason = ""
        self._opaque: Counter[str] = Counter()  # operators whose parameters nobody can read
        for name, found in models or held_in(caller, megengine.module.Module):
            if not self._modules.knows(found):
                self._modules.add(name, found)
        self._given = [
            (name, tensor) for label, value in arguments for name, tensor in tensors_in(self._tensor, value, label)
        ]
        self._take_names()
        for name, tensor in self._given:
            self._input(name, tensor)
        self._hook = OperatorHook(self._seen)
        self._watcher = Watcher(
            (self._enter, self._leave),
            (self._before_backward, self._after_backward),
            (self._before_step, self._after_step),
            self._ran_unhooked,
        )
        self._hook.install()
        self._watcher.install()
        self.open()

    @property
    def count(self) -> int:
        return self._b.n_nodes

    # -- the end --------------------------------------------------------------------------------

    def finish(self, result: Any = None) -> Capture:
        self.close()
        if not self._b.n_nodes:
            raise NothingRecorded("MegEngine ran no operator while it was recorded: there is no graph to show")
        self._take_names()
        for _, tensor in tensors_in(self._tensor, result):
            value = self._values.get(value_id(tensor))
            if value is not None:
                self._b.outputs.append(value)
        warnings: list[str] = []
        if self._opaque:
            warnings.append(
                f"the parameters of {_counted(self._opaque)} are not known: MegEngine builds them of parts that it "
                "shows to nobody"
            )
        graph = self._b.freeze()
        tables: dict[str, Table] = {}
        if self._times is not None:
            nanoseconds = np.array(self._times, dtype=np.float64) * 1e9
            known = (~np.isnan(nanoseconds)).tolist()
            tables[TIMES] = times_table(0, "node", range(graph.n_nodes), np.nan_to_num(nanoseconds), known)
        capture = Capture(
            pools=self._pools,
            stages=[Stage("recorded", graph)],
            tables=tables,
            origin=Origin("", "megengine", self._version, "recorded live"),
            warnings=warnings,
        )
        note(capture, 0, list(self._gaps()))
        embed(capture, lambda path: None if path.startswith(self._root) else exact(path))
        return capture

    def _gaps(self) -> Iterator[Gap]:
        if self._backwards:
            reason = (
                f"gradients are not seen: MegEngine computed them {self._backwards} times (GradManager.backward), "
                "below the level at which its operators can be watched"
            )
            yield Gap(reason, phase="backward")
        if self._unseen:
            reason = (
                "they ran inside of jit.trace functions that are made to be dumped, where they cannot be watched: "
                "capture such a function itself with opscope.trace(function, x)"
            )
            yield Gap(reason, self._unseen)
        for kind, count in sorted(self._lost.items()):
            yield Gap(f"they could not be recorded ({self._reason})", count, op=kind)

    def restore(self) -> None:
        self._watcher.remove()
        self._hook.remove()
        self._caller = None

    # -- operators ------------------------------------------------------------------------------

    def _seen(self, opdef: Any, inputs: tuple[Any, ...], run: Any) -> Any:
        if self._tracing.active_trace is not None:  # looking at a tensor there would become a part of what is traced
            self._unseen += 1
            return run()
        began = time.perf_counter()
        outputs = run()
        if self._times is not None:
            self._sync()
        seconds = time.perf_counter() - began
        if self._is_over():
            return outputs
        try:
            self._record(opdef, inputs, outputs, seconds)
        except Exception as error:  # a recording must never break what it records
            self._lost[kind_of(opdef)] += 1
            self._reason = self._reason or _first_line(error)
        return outputs

    def _is_over(self) -> bool:
        return self._most_steps is not None and self._stepped >= self._most_steps

    def _ran_unhooked(self, kind: str, inputs: tuple[Any, ...], output: Any) -> None:
        if self._tracing.active_trace is not None or self._is_over():
            return
        try:
            if kind == "Detach":  # the same numbers under another number of MegEngine's
                self._values[value_id(output)] = self._value(inputs[0])
            else:
                self._node(kind, {}, inputs, [output])
                if self._times is not None:
                    self._times.append(math.nan)  # nobody timed it
        except Exception as error:
            self._lost[kind] += 1
            self._reason = self._reason or _first_line(error)

    def _record(self, opdef: Any, inputs: tuple[Any, ...], outputs: Sequence[Any], seconds: float) -> None:
        kind, attrs = kind_of(opdef), attributes(opdef)
        if attrs is None:
            self._opaque[kind] += 1
            attrs = {NOT_KNOWN: "parameters"}
        self._node(kind, attrs, inputs, outputs)
        if self._times is not None:
            self._times.append(seconds)

    def _node(self, kind: str, attrs: dict[str, Any], inputs: tuple[Any, ...], outputs: Sequence[Any]) -> None:
        read = [self._value(tensor) for tensor in inputs]
        phase = "optimizer" if self._optimizing else "backward" if self._backward else "forward"
        node = self._b.node(
            op_name(kind, attrs.get("mode")),
            read,
            scope=self._scopes[-1][0] if self._scopes else 0,
            stack=self._stack(),
            attrs=attrs,
            phase=phase,
        )
        for tensor in outputs:
            type_ = self._type(tensor)
            value = self._values[value_id(tensor)] = self._b.output(node, type_)
            if self._optimizing:
                self._made.append((value_id(tensor), (value, node)))
                self._types[value] = type_

    def _value(self, tensor: Any) -> int:
        number = value_id(tensor)
        if number not in self._values:
            if number not in self._names:
                self._take_names()
            known = self._names.get(number) or self._variable(number)
            if known is None:
                self._values[number] = self._b.value(self._type(tensor), role="constant")
            elif known.role == "input":
                self._values[number] = self._b.input(self._type(tensor), name=known.name)
            elif known.role == "parameter" and known.name in self._latest:
                self._values[number] = self._latest[known.name]  # attached to gradients anew: the same numbers
            elif known.name in self._first:  # the same buffer with a new value of its own
                first = self._first[known.name]
                self._values[number] = self._b.value(
                    self._type(tensor), name=known.name, role=known.role, storage=first
                )
            else:
                self._values[number] = self._b.value(self._type(tensor), name=known.name, role=known.role)
                self._first[known.name] = self._latest[known.name] = self._values[number]
        return self._values[number]

    def _input(self, name: str, tensor: Any) -> None:
        if value_id(tensor) not in self._values:
            self._values[value_id(tensor)] = self._b.input(self._type(tensor), name=name)

    def _type(self, tensor: Any) -> int:
        try:
            shape = tuple(int(size) for size in tensor.shape) if not tensor._isscalar() else ()
        except Exception:  # a shape that only exists once the operator has run
            shape = None
        try:
            dtype = dtype_name(tensor.dtype)
        except Exception:  # numpy has no such type: workspace is of bytes
            dtype = ""
        return self._pools.type(dtype, shape)

    # -- names ----------------------------------------------------------------------------------

    def _take_names(self) -> None:
        """Which values the parameters have now: attaching gradients, or a step, gives them other ones."""
        for tensor, known in self._modules.tensors():
            number = value_id(tensor)
            self._names[number] = known
            made = self._values.get(number)
            first = self._first.get(known.name)
            if made is not None and first is not None and made != first:
                self._b.set_storage(made, first)  # written over
                self._b.set_role(made, known.role)
                self._latest[known.name] = made

    def _variable(self, number: int) -> Known | None:
        """A tensor that the user's code holds: a batch, labels."""
        frame = frame_at(1)
        while frame is not None and frame is not self._stop_at:
            file = frame.f_code.co_filename
            if not file.startswith((OWN, self._root)):
                for name, tensor in held_in(frame, self._tensor):
                    if value_id(tensor) == number:
                        return Known(name, "input")
            frame = frame.f_back
        return None

    # -- places ---------------------------------------------------------------------------------

    def _stack(self) -> int:
        """The user's frames; MegEngine's own say how it is built, and not what the model does."""
        frames: list[FrameType] = []
        frame: FrameType | None = frame_at(2)
        while frame is not None and frame is not self._stop_at:
            if not frame.f_code.co_filename.startswith((OWN, self._root, "<frozen ")):
                frames.append(frame)
            frame = frame.f_back
        key = tuple((id(f.f_code), f.f_lasti) for f in frames)
        if key not in self._stacks:
            self._codes.update(f.f_code for f in frames)
            self._stacks[key] = self._pools.stack(
                [Frame(f.f_code.co_filename, f.f_lineno or 0, f.f_code.co_name) for f in reversed(frames)]
            )
        return self._stacks[key]

    def _enter(self, module: Any) -> None:
        self._hook.stay()
        frame = frame_at(2)
        scope, above = self._scopes[-1] if self._scopes else (0, ())
        if not self._modules.knows(module) and self._scopes:
            # Made on the way and held by no model: it stands where it is called.
            way = (*above, Step(name_in_stack(frame, module) or "", type(module).__name__))
        else:
            way = self._modules.way(module, frame)
        inside = way[len(above) :] if way[: len(above)] == above else way
        for step in inside:
            is_last = step is inside[-1]
            call = self._calls.get((scope, step.name), 0)
            if is_last:
                self._calls[scope, step.name] = call + 1
            scope = self._pools.scope(scope, step.name, step.cls, call if is_last else max(0, call - 1))
        self._scopes.append((scope, way))

    def _leave(self, module: Any) -> None:
        self._scopes.pop()

    # -- phases ---------------------------------------------------------------------------------

    def _before_backward(self, manager: Any) -> None:
        self._backward += 1
        self._backwards += 1

    def _after_backward(self, manager: Any) -> None:
        self._backward -= 1

    def _before_step(self, optimizer: Any) -> None:
        self._optimizing += 1
        self._step_from = self._b.n_nodes
        self._take_names()
        names = {id(tensor): known.name for tensor, known in self._modules.tensors()}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self._name_state(optimizer, parameter, names.get(id(parameter), "parameter"))

    def _name_state(self, optimizer: Any, parameter: Any, name: str) -> None:
        """The gradient that a step reads, and what the optimizer keeps for the parameter."""
        if parameter.grad is not None:
            self._names[value_id(parameter.grad)] = Known(f"{name}.grad", "gradient")
        states: dict[str, Any] = getattr(optimizer, "_state", {}).get(parameter, {})
        for key, tensor in states.items():
            if isinstance(tensor, self._tensor):
                self._names[value_id(tensor)] = Known(f"{key} of {name}", "state")

    def _after_step(self, optimizer: Any) -> None:
        self._optimizing -= 1
        if self._optimizing:
            return
        self._stepped += 1
        # `param -= …` gives the result the parameter's name, and with it a number of its own, the next ones after
        # that of the result: it is the last result before it.
        made = sorted((number, value) for number, value in self._made if value[1] >= self._step_from)
        for tensor, known in self._modules.tensors():
            number = value_id(tensor)
            place = bisect(made, (number,)) - 1
            if number not in self._values and place >= 0 and known.name in self._first:
                value, _ = made[place][1]
                if self._types[value] == self._type(tensor):
                    self._values[number] = value
        self._take_names()
        self._made.clear()


def kind_of(opdef: Any) -> str:
    """One that MegEngine builds of other operators (`where`) has no class of its own, but says what it is called."""
    kind = type(opdef).__name__
    return (str(opdef) or kind) if kind == "OpDef" else kind


def attributes(opdef: Any) -> dict[str, Any] | None:
    """The parameters of an operator as plain data; None for one that cannot be asked. The operator itself is known."""
    try:
        state: dict[str, Any] = opdef.__getstate__()
    except Exception:
        return None
    return {key: _plain(value) for key, value in sorted(state.items()) if key not in _LEFT_OUT}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in cast("dict[Any, Any]", value).items()}
    return str(value)


def _counted(kinds: Counter[str]) -> str:
    """`Where, SyncBnStage0 (×2)`"""
    return ", ".join(kind if count == 1 else f"{kind} (×{count})" for kind, count in sorted(kinds.items())[:10])


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def dtype_name(dtype: Any) -> str:
    """`float32`; a quantized type says so in the metadata of numpy's type."""
    make: Any = np.dtype
    kind = make(dtype)
    metadata = cast("dict[str, Any]", kind.metadata or {})
    name: Any = metadata["mgb_dtype"]["name"] if "mgb_dtype" in metadata else ""
    return _QUANTIZED.get(name) or kind.name


_QUANTIZED = {
    "Quantized8Asymm": "quint8",
    "QuantizedS8": "qint8",
    "QuantizedS32": "qint32",
    "Quantized4Asymm": "quint4",
    "QuantizedS4": "qint4",
    "QuantizedS16": "qint16",
}
