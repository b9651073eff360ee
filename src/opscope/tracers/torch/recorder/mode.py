"""The recorder's hot path: torch calls `__torch_dispatch__` for every operator that runs.

Here only numbers are appended to arrays; names, scopes and links are worked out when the recording is over.
This code runs some ten thousand times in a training step, so it is written for speed: few calls, local names, one
dictionary look-up where two would read nicer. benchmarks/bench_torch.py measures it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, cast

from opscope.ir.attributes import FAILED, INSIDE, MASK_SHOWS, ROWS, WRITTEN_BEFORE
from opscope.ir.measurements import all_of, measured
from opscope.tracers.arguments import is_a
from opscope.tracers.contract import FULL, STATISTICS, Part
from opscope.tracers.frames import frame_at, locals_of
from opscope.tracers.torch import private
from opscope.tracers.torch.words import numbers_of

from .account import Lost
from .calls import Calls
from .clock import clock as clock_of
from .communication import Peers
from .fakes import FakeResults
from .keeping import Keeping
from .log import ACCUMULATES, ARGUMENT_BITS, GRAD_ENABLED, IN_BACKWARD, NO_SEQUENCE, Log, pack
from .masks import shown_by
from .memory import WINDOW_BITS, Memory
from .places import GENERATOR, Places
from .profiler import marked_run
from .regions import Region
from .schemas import OFFSETS, OTHER, TENSOR, TENSORS, Schema, argument_number, schema_of
from .statistics import Statistics
from .wrapped import OPAQUE, described, plain

_LONGEST_REASON = 200
_LONGEST_ERROR = 2000
_NUMBERS = frozenset({float, int, bool, type(None)})  # results that are no tensors
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
        profiled: bool = False,
        values: bool | str = False,
        part: Part | None = None,
        lean: bool = False,
        fakes: FakeResults | None = None,
        before_write: Callable[[list[Any]], None] | None = None,
    ) -> None:
        self.log = Log()
        self.is_on = True
        self._lost: Counter[tuple[str, int, bool, str]] = Counter()  # see account.Lost
        self.unmeasured: Counter[str] = Counter()
        self.threads: Mapping[int, int] = {}  # thread -> its number, of those that work for this one
        self._opaque: set[Any] = set()  # classes of tensors that hold no others
        self._open: set[Any] = set()  # and of those that do
        self._passing: dict[int, Any] = {}  # thread -> the operator that goes on to the class of its arguments
        self._around: dict[int, str] = {}  # thread -> the operator on such tensors that others run inside of
        self.named: dict[int, Any] = {}  # storages that have a name already
        self.variables: dict[int, str] = {}  # value from outside -> the variable that held it
        self._torch = torch
        self._tensor: type[Any] = torch.Tensor
        self._module: type[Any] = torch.nn.Module
        self._memory = memory
        self._calls = calls
        self._places = places
        self._base = base
        self._times = times
        self._profiled = profiled
        self._values = values
        self.statistics = Statistics(torch) if values in (STATISTICS, FULL) else None
        self.whole: dict[int, list[float]] = {}  # with values="full": all numbers, of the operators of `part`
        self.peers = Peers(torch)
        self._keeps = Keeping(calls, part) if values == FULL else None
        self._failing: tuple[int, tuple[int, ...], list[int]] | None = None
        self._lean = lean  # without the Python lines that operators are called from
        self._fakes = fakes
        self._before_write = before_write
        self._storage: Any = torch.UntypedStorage
        self._seen_outside = 0
        # By id, since to hash an operator is a call into Python; and the operators themselves, which keep theirs.
        self._schemas: dict[int, tuple[int, Schema]] = {}
        self._operators: list[Any] = []
        self._items: dict[str, list[int]] = {}  # argument that takes a list -> the numbers of its items' names
        self._constants: dict[Any, int] = {}
        self._nodes: dict[type[Any], int] = {}
        self._sequence_number: Callable[[], int] = private.sequence_number(torch) or (lambda: 0)
        self._current_node = private.current_node(torch)
        self._engine = {id(code) for code in private.engine_codes(torch)}
        self._grad_enabled: Callable[[], bool] = torch.is_grad_enabled

    def dispatcher(
        self, compiler: Callable[[], Any] = lambda: None, away_from_compiler: Callable[..., Any] | None = None
    ) -> Any:
        """What torch calls: runs one operator and notes it. One function with local names, because it is hot.
        `compiler` says whether torch's compiler looks at what runs now; then the other function is called instead."""
        log, memory, places = self.log, self._memory, self._places
        known_schemas, outside = self._schemas, memory.outside
        tensor_type, made, new_storage = self._tensor, memory.made, memory.new_storage
        by_object, places_of, addresses = memory.by_object, memory.place, memory.address
        storage_ids, window_ids, newest_at = memory.storage_ids, memory.window_ids, memory.newest_at
        last_write, since, wrote, wrote_all = memory.last_write, memory.since, memory.wrote, memory.wrote_all
        before_write, crowded = self._before_write, memory.crowded
        sequence_number, current_node, thread = self._sequence_number, self._current_node, threading.get_ident
        active_calls, base, place_at, flags = self._calls.active, self._base, places.at, places.flags
        uses_log, outputs_log, rows = log.uses, log.output_value, log.rows
        times, values, home = self._times, self._values, threading.get_ident()
        clock = clock_of(self._torch) if times else time.perf_counter

        # The bare function is called by torch itself, without the frames that keep the compiler away.
        caller = self._caller() if away_from_compiler is None else None
        grad_enabled = self._grad_enabled
        engine, nodes, lean = self._engine, self._nodes, self._lean
        run = self._fakes.run if self._fakes is not None else marked_run(log) if self._profiled else None
        opaque, around_others, numbers = self._opaque, self._around, self.threads
        # A lock is taken only once another thread works for this recording: `threads` has none before.
        acquire, release = self._calls.lock.acquire, self._calls.lock.release

        def dispatch(
            mode: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if compiler() is not None and away_from_compiler is not None:
                return away_from_compiler(mode, func, types, args, kwargs)
            if kwargs is None:
                kwargs = {}
            # Whatever goes wrong in the noting: the operator runs exactly once.
            if not self.is_on:
                return func(*args, **kwargs)
            number, schema = known_schemas.get(id(func)) or self._new_schema(func)
            if types and not opaque.issuperset(types) and self._goes_inside(schema, types):
                return self._inside(mode, schema, func, types, args, kwargs)
            if not schema.computes:
                return func(*args, **kwargs) if run is None else run(func, args, kwargs)
            uses: list[int] = []
            constants: list[Any] = [number]
            written: list[Any] | None = None
            is_locked = numbers and acquire()
            try:
                # Before it runs: in-place operators change what their arguments show.
                for (name, kind, argument), value in zip(schema.slots, args):  # noqa: B905 (defaults are left out)
                    if kind == OTHER:
                        constants.append(name)
                        constants.append(tuple(cast("list[Any]", value)) if type(value) is list else value)
                    elif kind == TENSOR and isinstance(value, tensor_type):
                        # The same object on the same memory, which nothing else has written since: its window
                        # changes only in operators that we see. All else is looked up.
                        shown = by_object.get(id(value), -1)
                        if shown >= 0:
                            try:
                                address = value.untyped_storage()._cdata
                            except (RuntimeError, NotImplementedError):  # sparse
                                address = 0
                            if addresses[shown] == address:
                                before = last_write.get(address, -1)
                                if before < 0 or (before <= shown and shown not in since):
                                    uses.append(shown << ARGUMENT_BITS | argument)
                                    continue
                        self._input(name, kind, value, uses, constants)
                    elif kind == TENSORS and value is not None:
                        self._list(name, value, uses, constants)
                    else:
                        self._input(name, kind, value, uses, constants)
                if kwargs or not schema.slots:
                    self._rare_inputs(schema, args, kwargs, uses, constants)
                if len(outside) != self._seen_outside:
                    frame = frame_at(0).f_back
                    self._name_outside(frame if caller is None else caller(frame))
                if not schema.is_plain:
                    if schema.asks_numbers:
                        self._look_at_numbers(schema, args, kwargs, constants)
                    if schema.communicates:
                        constants = self.peers.named(schema, args, kwargs, constants)
                    if schema.writes_self and before_write is None and not crowded and args:
                        written = [args[0]] if schema.slots[0][1] == TENSOR else list(args[0])
                    elif schema.may_write:
                        written = self._about_to_write(schema, args, kwargs, uses)
                    elif schema.shows_more:
                        written = []
                if around_others:
                    self._note_around(constants)
            except Exception as error:
                self._lose(error, schema)
                number = -1
            except BaseException:  # a signal; the script may go on
                log.drop_unfinished()
                raise
            finally:
                if is_locked:
                    release()
            if number < 0:
                return func(*args, **kwargs) if run is None else run(func, args, kwargs)
            sequence = sequence_number() - 1
            began = clock() if times else 0.0
            try:
                out = func(*args, **kwargs) if run is None else run(func, args, kwargs)
            except Exception as error:
                self._fails(error, number, uses, constants, sequence)
                raise
            took = clock() - began if times else 0.0
            is_locked = numbers and acquire()
            try:
                if written is None and isinstance(out, tensor_type):
                    # As `made` does it.
                    try:
                        held = out.untyped_storage()
                        address = held._cdata
                        window = window_ids[out.storage_offset(), out.shape, out.stride(), out.dtype]
                    except (KeyError, TypeError, RuntimeError):
                        outputs_log.append(made(out, False))
                    else:
                        storage = storage_ids.get(address)
                        if storage is None:
                            storage = new_storage(out, held, address)
                        place = storage << WINDOW_BITS | window
                        shown = len(places_of)
                        places_of.append(place)
                        addresses.append(address)
                        newest_at[place] = by_object[id(out)] = shown
                        outputs_log.append(shown)
                elif written is None and type(out) is tuple:
                    for item in cast("tuple[Any, ...]", out):
                        if isinstance(item, tensor_type):
                            outputs_log.append(made(item, False))
                        elif item is not None:
                            outputs_log.extend([made(inner, False) for inner in self._tensors(item)])
                elif schema.writes_self and written and (out is None or out is written[0]):
                    if len(written) == 1:
                        outputs_log.append(wrote(written[0]))
                    else:
                        outputs_log.extend(wrote_all(written))
                elif written is not None or type(out) not in _NUMBERS:
                    if schema.shows_more:
                        self._uses_what_it_shows(out, schema, uses)
                    self._outputs(out, written or [])
                ident = thread()
                if ident != home:
                    log.threads[log.count] = numbers.get(ident, ident)
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
                    frame = frame_at(0).f_back
                    if caller is not None:
                        frame = caller(frame)
                    place = place_at(frame, stop, around)
                    if call < 0 and flags[place] & GENERATOR:
                        call = self._call_of_generator(frame)
                    state, node_sequence, node_name = 0, NO_SEQUENCE, 0
                else:
                    frame = frame_at(0).f_back
                    if caller is not None:
                        frame = caller(frame)
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
                    is_one = written is None and isinstance(out, tensor_type)
                    alone: list[tuple[int, Any]] = [(log.output_value[-1], out)] if is_one else []
                    found = alone or self._made(out, written or [])
                    self._measured(found, written or [], schema)
                    if self._keeps is not None and self._keeps(schema.name, call, sequence, node_sequence):
                        self._keep(found)
            except Exception as error:
                self._lose(error, schema)
            except BaseException:
                log.drop_unfinished()
                raise
            finally:
                if is_locked:
                    release()
            return out  # pyright: ignore[reportUnknownVariableType]  # whatever the operator returned

        self._calls.inside = dispatch.__code__
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
        by_name = schema.by_name
        for name, value in kwargs.items():
            slot = by_name.get(name)
            if slot is not None and slot[1] == OTHER:
                constants.append(name)
                constants.append(tuple(cast("list[Any]", value)) if type(value) is list else value)
            else:
                self._input(name, slot[1] if slot else _kind_of(value, self._tensor), value, uses, constants)
        if not schema.slots:  # a higher-order operator
            for place, value in enumerate(args):
                self._input(str(place), _kind_of(value, self._tensor), value, uses, constants)

    def _input(self, name: str, kind: int, value: Any, uses: list[int], constants: list[Any]) -> None:
        if kind == OTHER:
            constants.append(name)
            constants.append(tuple(cast("list[Any]", value)) if type(value) is list else value)
        elif kind == TENSOR:
            if isinstance(value, self._tensor):
                shown = self._memory.read(value)
                parts = [shown] if isinstance(shown, int) else shown
                uses.extend([part << ARGUMENT_BITS | argument_number(name) for part in parts])
            elif value is None:
                uses.append(-1 << ARGUMENT_BITS | argument_number(name))
            elif type(value) is list:  # a list of lists
                self._list(name, value, uses, constants)
            else:  # a number where a tensor may be: `x + 1`
                constants.append(name)
                constants.append(value)
        elif value is not None:
            self._list(name, value, uses, constants)

    def _list(self, name: str, values: Any, uses: list[int], constants: list[Any]) -> None:
        numbers = self._items.setdefault(name, [])
        if len(numbers) < len(values):
            for place in range(len(numbers), len(values)):
                numbers.append(argument_number(f"{name}[{place}]"))
        shown = self._memory.shown(values)
        if -1 not in shown:
            uses += [value << ARGUMENT_BITS | number for value, number in zip(shown, numbers, strict=False)]
            return
        for place, value in enumerate(shown):
            if value >= 0:
                uses.append(value << ARGUMENT_BITS | numbers[place])
            else:
                self._input(f"{name}[{place}]", TENSOR, values[place], uses, constants)

    def _about_to_write(
        self, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any], uses: list[int]
    ) -> list[Any]:
        """The tensors that will be written. After many writes to parts of one tensor, the next one reads them all."""
        written = schema.written(args, kwargs)
        if self._before_write is not None:
            self._before_write(written)
        for tensor in written:
            for part in self._memory.pending(tensor):
                uses.append(part << ARGUMENT_BITS | argument_number(WRITTEN_BEFORE))
        return written

    def _look_at_numbers(self, schema: Schema, args: Any, kwargs: Any, constants: list[Any]) -> None:
        """What is in the numbers of an argument alone, which only the recorder sees: where the groups of a product end,
        whether a mask is causal."""
        if OFFSETS in schema.by_name:
            ends = schema.argument(OFFSETS, args, kwargs)
            if type(ends) is self._tensor and not ends.is_meta and ends.numel():
                constants += [ROWS, int(ends[-1])]
            return
        mask = schema.mask(args, kwargs)
        if isinstance(mask, self._tensor) and (shown := shown_by(self._torch, mask)) is not None:
            constants += [MASK_SHOWS, shown]

    def _new_schema(self, func: Any) -> tuple[int, Schema]:
        made = func.schema() if isinstance(func, Region) else schema_of(func)
        found = self._schemas[id(func)] = len(self.log.schemas), made
        self._operators.append(func)
        self.log.schemas.append(made)
        return found

    def _constant(self, constants: list[Any]) -> int:
        """Arguments that are not tensors, each set once: a model calls the same operators with the same ones."""
        if self.log.schemas[constants[0]].takes_storage:
            constants = [_words_for(item) if isinstance(item, self._storage) else item for item in constants]
        # With their types: 1, 1.0 and True are equal, but not the same argument.
        key: Any = (*constants, *map(type, constants))
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
        """Tensors met for the first time that have no name yet: what do the user's variables call them?"""
        outside = self._memory.outside
        new = [(value, reference()) for value, reference in outside[self._seen_outside :]]
        self._seen_outside = len(outside)
        if self._values:
            self._measured([(value, tensor) for value, tensor in new if tensor is not None], [])
        wanted = {id(t): value for value, t in new if t is not None and self._memory.storage(value) not in self.named}
        while wanted and frame is not None and frame is not self._base:
            if not private.is_torch(self._torch, frame.f_code):
                for name, held in locals_of(frame).items():
                    # The outermost name counts: it is the user's own.
                    if id(held) in wanted and isinstance(held, self._tensor) and not name.startswith("_"):
                        self.variables[wanted[id(held)]] = name
            frame = frame.f_back

    # -- after ------------------------------------------------------------------------------------

    def _uses_what_it_shows(self, out: Any, schema: Schema, uses: list[int]) -> None:
        """A view of more than its argument: of all that was written there."""
        if isinstance(out, self._tensor):
            argument = schema.slots[0][2]
            known = {use >> ARGUMENT_BITS for use in uses} | {-1}
            shown = [value for value in self._memory.made_of(out) if value not in known]
            uses.extend([value << ARGUMENT_BITS | argument for value in shown])

    def _outputs(self, out: Any, written: list[Any]) -> None:
        made = self._memory.made
        writes = {id(tensor) for tensor in written}
        found = [made(tensor, id(tensor) in writes) for tensor in _made_and_written(self._tensors(out), written)]
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
            if self._open:
                _, variable = next(plain(variable))
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
            if is_a(owner, self._module):
                call = self._calls.last_call(owner)
                if call >= 0:
                    return call
            frame = frame.f_back
        return -1

    # -- tensors of other classes -----------------------------------------------------------------

    def _goes_inside(self, schema: Schema, types: Any) -> bool:
        """Whether an operator has tensors among its arguments whose class runs others instead of it."""
        for cls in types:
            if cls not in self._opaque and cls not in self._open:
                answers = getattr(cls, "__torch_dispatch__", None) != self._tensor.__torch_dispatch__
                (self._open if answers and cls.__name__ not in OPAQUE else self._opaque).add(cls)
        return not schema.is_higher_order and not self._opaque.issuperset(types)

    def _inside(self, mode: Any, schema: Schema, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Let the class of the arguments answer, and record the operators that it runs."""
        thread = threading.get_ident()
        if self._passing.get(thread) is func:
            del self._passing[thread]
            return NotImplemented  # torch asks the class next, and we see what that runs
        count, lost = self.log.count, len(self._lost)
        around = self._around.get(thread)
        self._passing[thread] = func
        if schema.computes:
            self._around[thread] = described(func, [*args, *kwargs.values()], types)
        try:
            private.push_mode(mode)
            try:
                out = func(*args, **kwargs)
            finally:
                private.pop_mode(mode)
        finally:
            self._passing.pop(thread, None)
            if around is None:
                self._around.pop(thread, None)
            else:
                self._around[thread] = around
        if schema.computes and not schema.is_view and lost == len(self._lost):
            inside = list(self.log.schemas_since(count))
            if all(ran.is_view for ran in inside):  # or nothing ran: something else computed the result
                self._lose(None, schema, types)
        return out

    def _note_around(self, constants: list[Any]) -> None:
        around = self._around.get(threading.get_ident())
        if around is not None:
            constants += [INSIDE, around]

    # -- measured, and lost -----------------------------------------------------------------------

    def _made(self, out: Any, written: list[Any]) -> list[tuple[int, Any]]:
        """The tensors that the last operator made and wrote, with their values."""
        tensors = _made_and_written(self._tensors(out), written)
        return list(zip(self.log.output_value[len(self.log.output_value) - len(tensors) :], tensors, strict=True))

    def _measured(self, found: list[tuple[int, Any]], written: list[Any], schema: Schema | None = None) -> None:
        """The operator is recorded, whether its numbers can be read or not."""
        if schema is not None and schema.makes_empty:
            if self.statistics is not None:
                for value, _ in found:
                    self.statistics.made_empty(self._memory.storage(value))
            return
        for value, tensor in found:
            try:
                if self.statistics is not None:
                    is_write = bool(written) and any(tensor is one for one in written)
                    self.statistics.take(value, tensor, self._memory.storage(value), is_write)
                elif (numbers := numbers_of(self._torch, tensor)) is not None:
                    self.log.measured[value] = measured(numbers)
            except Exception as error:
                self.unmeasured[f"{type(error).__name__}: {' '.join(str(error).split())[:_LONGEST_REASON]}"] += 1

    def _keep(self, found: list[tuple[int, Any]]) -> None:
        for value, tensor in found:
            with contextlib.suppress(Exception):  # its figures say what can be said
                if (numbers := numbers_of(self._torch, tensor)) is not None:
                    self.whole[value] = all_of(numbers)

    def _fails(self, error: Exception, number: int, uses: list[int], constants: list[Any], sequence: int) -> None:
        """An operator raised. It is recorded when that ends the recording: programs may go on after an exception."""
        try:
            active = self._calls.active.get(threading.get_ident())
            call, _, stop, around = active[-1] if active else (-1, None, self._base, 0)
            place = 0 if self._lean else self._places.at(self._caller()(frame_at(2)), stop, around)
            state = IN_BACKWARD if self._current_node() is not None else 0
            told = [*constants, FAILED, f"{type(error).__name__}: {str(error)[:_LONGEST_ERROR]}"]
            self._failing = self.log.count, (number, self._constant(told), call, place, state, sequence), list(uses)
        except Exception:  # the user's own exception is what counts
            self._failing = None

    def ends_failing(self) -> bool:
        """The recording ends with an exception: note the operator that raised it, if one did and nothing ran since."""
        if self._failing is None or self._failing[0] != self.log.count:
            return False
        _, fields, uses = self._failing
        self.log.uses.fromlist(uses)
        ends = len(self.log.uses), len(self.log.output_value)
        self.log.rows.extend(pack(*fields, NO_SEQUENCE, 0, *ends))
        if self._times:
            self.log.seconds.append(0.0)
        return True

    def _lose(self, error: Exception | None, schema: Schema, types: Any = ()) -> None:
        """An operator ran and is not recorded. Of the exception only the text is kept: its frames hold tensors."""
        if error is None:
            names = ", ".join(sorted({cls.__name__ for cls in types}))
            reason = f"{names} answers it without running an operator that a dispatch mode sees"
        else:
            self.log.drop_unfinished()
            text = " ".join(str(error).split())
            reason = f"recording it failed ({type(error).__name__}: {text[:_LONGEST_REASON]})"
        active = self._calls.active.get(threading.get_ident())
        is_backward = self._current_node() is not None
        self._lost[schema.name, active[-1].call if active else -1, is_backward, reason] += 1

    @property
    def lost(self) -> list[Lost]:
        return [Lost(*key, count) for key, count in self._lost.items()]


def _made_and_written(returned: list[Any], written: list[Any]) -> list[Any]:
    """What an operator returned, then what it wrote and did not return: the order of its outputs in the log."""
    if not written:
        return returned
    known = {id(tensor) for tensor in returned}
    return [*returned, *(tensor for tensor in written if id(tensor) not in known)]


def _kind_of(value: Any, tensor_type: type[Any]) -> int:
    if isinstance(value, tensor_type):
        return TENSOR
    if isinstance(value, list | tuple) and any(isinstance(item, tensor_type) for item in cast("list[Any]", value)):
        return 1
    return OTHER


def _words_for(storage: Any) -> str:
    """Memory is not kept, and its bytes are no argument."""
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

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """What is compiled stays compiled: torch.compile would run it as written otherwise."""
            return True

    # Torch wraps what such a class is made with, to keep its compiler away; the wrapper takes as long as an operator,
    # and there is nearly always nothing to keep away.
    at_work = private.compiler_at_work()
    if at_work is not None:
        callback, skip = at_work
        bare = recorder.dispatcher(callback, OpscopeMode.__torch_dispatch__)
        skip(bare.__code__)
        OpscopeMode.__torch_dispatch__ = bare
    return OpscopeMode()
