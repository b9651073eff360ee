"""The recorder's hot path: torch calls `__torch_dispatch__` for every operator that runs.

Here only numbers are appended to arrays; names, scopes and links are worked out when the recording is over.
This code runs some ten thousand times in a training step, so it is written for speed: few calls, local names, one
dictionary look-up where two would read nicer. benchmarks/bench_torch.py measures it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

from opscope.ir.attributes import MASK_SHOWS, WRITTEN_BEFORE
from opscope.ir.measurements import measured
from opscope.tracers.frames import frame_at, locals_of
from opscope.tracers.torch import private
from opscope.tracers.torch.words import numbers_of

from .calls import Calls
from .clock import clock as clock_of
from .fakes import FakeResults
from .log import ACCUMULATES, ARGUMENT_BITS, GRAD_ENABLED, IN_BACKWARD, NO_SEQUENCE, Log, pack
from .masks import shown_by
from .memory import WINDOW_BITS, Memory
from .places import GENERATOR, Places
from .schemas import OTHER, TENSOR, Schema

_ACCUMULATE_GRAD = 2**64 - 1  # what autograd gives as the sequence number of AccumulateGrad


class Recorder:
    """Sees every operator on its way through torch's dispatcher. `make_mode` gives it to torch."""

    def __init__(
        self,
        torch: Any,
        memory: Memory,
        calls: Calls,
        places: Places,
        base: FrameType | None,
        *,
        times: bool = False,
        values: bool = False,
        lean: bool = False,
        fakes: FakeResults | None = None,
    ) -> None:
        self.log = Log()
        self.is_on = True
        self.lost = 0
        self.failure: Exception | None = None
        self.named: dict[int, Any] = {}  # storages that have a name already
        self.variables: dict[int, str] = {}  # value from outside -> the variable that held it
        self._torch = torch
        self._tensor: type[Any] = torch.Tensor
        self._memory = memory
        self._calls = calls
        self._places = places
        self._base = base
        self._times = times
        self._values = values
        self._lean = lean  # without the Python lines that operators are called from
        self._fakes = fakes
        self._storage: Any = torch.UntypedStorage
        self._seen_outside = 0
        self._schemas: dict[Any, int] = {}
        self._constants: dict[Any, int] = {}
        self._arguments: dict[str, int] = {}
        self._nodes: dict[type[Any], int] = {}
        self._sequence_number: Callable[[], int] = private.sequence_number(torch) or (lambda: 0)
        self._current_node = private.current_node(torch)
        self._engine = {id(code) for code in private.engine_codes(torch)}
        self._grad_enabled: Callable[[], bool] = torch.is_grad_enabled

    def dispatcher(self) -> Callable[..., Any]:
        """What torch calls: runs one operator and notes it. One function with local names, because it is hot."""
        log, memory, places = self.log, self._memory, self._places
        schema_numbers, schemas, outside = self._schemas, log.schemas, memory.outside
        tensor_type, made = self._tensor, memory.made
        by_object, places_of, parts, storage_ids = memory.by_object, memory.place, memory.parts, memory.storage_ids
        sequence_number, current_node, thread = self._sequence_number, self._current_node, threading.get_ident
        active_calls, base, place_at, flags = self._calls.active, self._base, places.at, places.flags
        uses_log, outputs_log, rows = log.uses, log.output_value, log.rows
        times, values, home = self._times, self._values, threading.get_ident()
        clock = clock_of(self._torch) if times else time.perf_counter

        caller, grad_enabled = self._caller(), self._grad_enabled
        engine, nodes, lean = self._engine, self._nodes, self._lean
        run = self._fakes.run if self._fakes is not None else None

        def dispatch(
            mode: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            kwargs = kwargs or {}
            # Whatever goes wrong in the noting: the operator runs exactly once.
            if not self.is_on:
                return func(*args, **kwargs)
            number = schema_numbers.get(func)
            if number is None:
                number = self._new_schema(func)
            schema = schemas[number]
            if not schema.computes:
                return func(*args, **kwargs) if run is None else run(func, args, kwargs)
            uses: list[int] = []
            constants: list[Any] = [number]
            written: list[Any] | None = None
            try:
                # Before it runs: in-place operators change what their arguments show.
                for (name, kind, argument), value in zip(schema.slots, args):  # noqa: B905 (defaults are left out)
                    if kind == OTHER:
                        constants.append(name)
                        constants.append(value)
                    elif kind == TENSOR and isinstance(value, tensor_type):
                        shown = by_object.get(id(value), -1)
                        storage = places_of[shown] >> WINDOW_BITS if shown >= 0 else -1
                        try:
                            address = value.untyped_storage()._cdata
                        except (RuntimeError, NotImplementedError):  # sparse
                            address = 0
                        # The same object on the same memory, which nobody wrote: its window changes only in
                        # operators that we see. All else is looked up.
                        if shown >= 0 and storage not in parts and storage_ids.get(address) == storage:
                            uses.append(shown << ARGUMENT_BITS | argument)
                        else:
                            self._input(name, kind, value, uses, constants)
                    else:
                        self._input(name, kind, value, uses, constants)
                if kwargs or not schema.slots:
                    self._rare_inputs(schema, args, kwargs, uses, constants)
                if len(outside) != self._seen_outside:
                    self._name_outside(caller(frame_at(0).f_back))
                if schema.has_mask:
                    self._look_at_mask(schema.mask(args, kwargs), constants)
                if schema.may_write:
                    written = self._about_to_write(schema, args, kwargs, uses)
            except Exception as error:
                self._lose(error)
                return func(*args, **kwargs)
            sequence = sequence_number() - 1
            began = clock() if times else 0.0
            out = func(*args, **kwargs) if run is None else run(func, args, kwargs)
            took = clock() - began if times else 0.0
            try:
                if written is None and isinstance(out, tensor_type):
                    outputs_log.append(made(out, False))
                else:
                    self._outputs(out, written or [])
                ident = thread()
                if ident != home:
                    log.threads[log.count] = ident
                active = active_calls.get(ident)
                if active:
                    call, _, stop, around = active[-1]
                else:
                    call, stop, around = -1, base, 0
                node = current_node()
                if node is None and lean and call >= 0:
                    # Walking up the frames is most of the work, more so after an operator that took the caches.
                    place, state, node_sequence, node_name = 0, 0, NO_SEQUENCE, 0
                elif node is None:
                    frame = caller(frame_at(0).f_back)
                    place = place_at(frame, stop, around)
                    if call < 0 and flags[place] & GENERATOR:
                        call = self._call_of_generator(frame)
                    state, node_sequence, node_name = 0, NO_SEQUENCE, 0
                else:
                    frame = caller(frame_at(0).f_back)
                    state = IN_BACKWARD | GRAD_ENABLED if grad_enabled() else IN_BACKWARD
                    # What the engine itself calls has the line of the forward operator.
                    is_engine = frame is None or id(frame.f_code) in engine
                    place = 0 if is_engine else place_at(frame, stop, around)
                    node_name = nodes.get(cast("type[Any]", type(node)))
                    if node_name is None:
                        node_name = self._new_node(node)
                    node_sequence = node._sequence_nr()
                    if node_sequence == _ACCUMULATE_GRAD:
                        node_sequence = ACCUMULATES
                        self._accumulates(node)
                constant = -1 if len(constants) == 1 else self._constant(constants)
                uses_log.fromlist(uses)
                # `extend`, not `+=`, which would make a local name of it
                rows.extend(
                    pack(
                        number,
                        constant,
                        call,
                        place,
                        state,
                        sequence,
                        node_sequence,
                        node_name,
                        len(uses_log),
                        len(outputs_log),
                    )
                )
                if times:
                    log.seconds.append(took)
                if values:
                    self._measure(out)
            except Exception as error:
                self._lose(error)
            return out

        return dispatch

    # -- before -----------------------------------------------------------------------------------

    def _rare_inputs(
        self,
        schema: Schema,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        uses: list[int],
        constants: list[Any],
    ) -> None:
        for name, value in kwargs.items():
            _, kind, _ = schema.by_name.get(name, (name, _kind_of(value, self._tensor), 0))
            self._input(name, kind, value, uses, constants)
        if not schema.slots:  # a higher-order operator
            for place, value in enumerate(args):
                self._input(str(place), _kind_of(value, self._tensor), value, uses, constants)

    def _input(self, name: str, kind: int, value: Any, uses: list[int], constants: list[Any]) -> None:
        if kind == OTHER:
            constants.append(name)
            constants.append(value)
        elif kind == TENSOR:
            if isinstance(value, self._tensor):
                shown = self._memory.read(value)
                parts = [shown] if isinstance(shown, int) else shown
                uses.extend([part << ARGUMENT_BITS | self._argument(name) for part in parts])
            elif value is None:
                uses.append(-1 << ARGUMENT_BITS | self._argument(name))
            else:  # a number where a tensor may stand: `x + 1`
                constants.append(name)
                constants.append(value)
        elif value is not None:
            for place, item in enumerate(value):
                self._input(f"{name}[{place}]", TENSOR, item, uses, constants)

    def _about_to_write(
        self, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any], uses: list[int]
    ) -> list[Any]:
        """The tensors that will be written. After many writes to parts of one tensor, the next one reads them all."""
        written = schema.written(args, kwargs)
        for tensor in written:
            for part in self._memory.pending(tensor):
                uses.append(part << ARGUMENT_BITS | self._argument(WRITTEN_BEFORE))
        return written

    def _look_at_mask(self, mask: Any, constants: list[Any]) -> None:
        """Whether a mask is causal is in its numbers alone, which only the recorder sees."""
        if isinstance(mask, self._tensor) and (shown := shown_by(self._torch, mask)) is not None:
            constants += [MASK_SHOWS, shown]

    def _new_schema(self, func: Any) -> int:
        number = self._schemas[func] = len(self.log.schemas)
        self.log.schemas.append(Schema(func, self._argument))
        return number

    def _argument(self, name: str) -> int:
        argument = self._arguments.setdefault(name, len(self._arguments))
        if argument == len(self.log.argument_names):
            self.log.argument_names.append(name)
        return argument

    def _constant(self, constants: list[Any]) -> int:
        """Arguments that are not tensors, each set once: a model calls the same operators with the same ones."""
        if self.log.schemas[constants[0]].takes_storage:
            constants = [_words_for(item) if isinstance(item, self._storage) else item for item in constants]
        # With their types: 1, 1.0 and True are equal, but not the same argument.
        key: Any = (
            *[tuple(cast("list[Any]", c)) if isinstance(c, list) else c for c in constants],
            *map(type, constants),
        )
        try:
            known = self._constants.get(key)
        except TypeError:  # symbolic sizes, generators
            key = repr(constants)
            known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = len(self.log.constants)
            self.log.constants.append(tuple([_without_tensors(item, self._tensor) for item in constants]))
        return known

    def _name_outside(self, frame: FrameType | None) -> None:
        """Tensors met for the first time that nobody has named: what do the user's variables call them?"""
        outside = self._memory.outside
        new = [(value, reference()) for value, reference in outside[self._seen_outside :]]
        self._seen_outside = len(outside)
        wanted = {id(t): value for value, t in new if t is not None and self._memory.storage(value) not in self.named}
        while wanted and frame is not None and frame is not self._base:
            if not private.is_torch(self._torch, frame.f_code):
                for name, held in locals_of(frame).items():
                    # The outermost name counts: it is the user's own.
                    if id(held) in wanted and isinstance(held, self._tensor) and not name.startswith("_"):
                        self.variables[wanted[id(held)]] = name
            frame = frame.f_back

    # -- after ------------------------------------------------------------------------------------

    def _outputs(self, out: Any, written: list[Any]) -> None:
        made = self._memory.made
        returned = self._tensors(out)
        writes = {id(tensor) for tensor in written}
        found = [made(tensor, id(tensor) in writes) for tensor in returned]
        writes.difference_update([id(tensor) for tensor in returned])
        found.extend([made(tensor, True) for tensor in written if id(tensor) in writes])
        self.log.output_value.extend(found)

    def _tensors(self, out: Any) -> list[Any]:
        """The tensors that an operator returned: one, or several, some of them in a list."""
        if isinstance(out, self._tensor):
            return [out]
        if not isinstance(out, tuple | list):
            return []
        return [tensor for item in cast("list[Any]", out) for tensor in self._tensors(item)]

    def _new_node(self, node: Any) -> int:
        kind = cast("type[Any]", type(node))
        name = self._nodes[kind] = len(self.log.node_names)
        self.log.node_names.append(kind.__name__)
        return name

    def _accumulates(self, node: Any) -> None:
        variable = getattr(node, "variable", None)
        if variable is not None:
            self.log.accumulated[self.log.count] = self._memory.storage_of(variable)

    def _caller(self) -> Callable[[FrameType | None], FrameType | None]:
        """From the frame that called us to the one that called the operator: torch wraps dispatch modes, to keep its
        compiler away, in the same few frames every time."""
        wrappers = -1

        def caller(frame: FrameType | None) -> FrameType | None:
            nonlocal wrappers
            if wrappers == 2 and frame is not None and frame.f_back is not None:
                return frame.f_back.f_back
            if wrappers < 0:
                wrappers, walk = 0, frame
                while walk is not None and private.is_dispatch_wrapper(walk.f_code):
                    wrappers, walk = wrappers + 1, walk.f_back
            for _ in range(wrappers):
                frame = frame and frame.f_back
            return frame

        return caller

    def _call_of_generator(self, frame: FrameType | None) -> int:
        """What a module's generator does after the module returned it, belongs to that call."""
        while frame is not None and frame is not self._base:
            owner = locals_of(frame).get("self")
            if owner is not None and hasattr(owner, "_modules"):
                call = self._calls.last_call(owner)
                if call >= 0:
                    return call
            frame = frame.f_back
        return -1

    def _measure(self, out: Any) -> None:
        tensors = self._tensors(out)
        made = self.log.output_value[len(self.log.output_value) - len(tensors) :]
        for value, tensor in zip(made, tensors, strict=True):
            numbers = numbers_of(self._torch, tensor)
            if numbers is not None:
                self.log.measured[value] = measured(numbers)

    def _lose(self, error: Exception) -> None:
        self.lost += 1
        self.failure = self.failure or error


def _kind_of(value: Any, tensor_type: type[Any]) -> int:
    if isinstance(value, tensor_type):
        return TENSOR
    if isinstance(value, list | tuple) and any(isinstance(item, tensor_type) for item in cast("list[Any]", value)):
        return 1
    return OTHER


def _words_for(storage: Any) -> str:
    """Memory is not kept, and its bytes are nobody's argument."""
    return f"<{storage.nbytes()} bytes of memory>"


def _without_tensors(value: Any, tensor_type: type[Any]) -> Any:
    """No tensor and no function may be kept: they keep their memory."""
    if isinstance(value, tensor_type) or (callable(value) and not isinstance(value, type)):
        return f"<{type(value).__name__}>"
    if isinstance(value, dict):
        held = cast("dict[Any, Any]", value)
        return {str(key): _without_tensors(item, tensor_type) for key, item in held.items()}
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return [_without_tensors(item, tensor_type) for item in items]
    return value


def make_mode(recorder: Recorder) -> Any:
    """The object that torch calls. A class of its own, because its base is torch's."""
    mode: Any = private.dispatch_mode()

    class OpscopeMode(mode):
        # Without this, torch refuses to run higher-order operators under a mode.
        supports_higher_order_operators = True
        __torch_dispatch__ = recorder.dispatcher()

    return OpscopeMode()
