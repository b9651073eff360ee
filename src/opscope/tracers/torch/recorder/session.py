"""One recording: puts the recorder in place, takes names, and gives back everything as it was."""

from __future__ import annotations

import contextlib
import gc
import os
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, cast

from opscope.ir import Capture
from opscope.sources import embed, exact
from opscope.tracers import session
from opscope.tracers.arguments import is_a, tensors_in
from opscope.tracers.contract import DEVICE, Part
from opscope.tracers.frames import OWN, frame_at, held_in, name_in_frame, tensors_held_in
from opscope.tracers.session import NothingRecorded
from opscope.tracers.torch import private
from opscope.tracers.torch.compiler.recording import CompiledCode
from opscope.tracers.torch.parts import parts

from .account import Account, Names, StepEnd
from .assemble import assemble
from .calls import Calls
from .fakes import FakeResults
from .memory import Memory
from .mode import Recorder, make_mode
from .names import Modules, Named, optimizer_tensors
from .places import Places
from .profiler import Profiler
from .threads import Threads
from .wrapped import plain

# What tensors raise that are asked where their numbers are: parameters of lazy modules, and those of a kind of their
# own. They stay without a name until they are used.
_CANNOT_SAY = (RuntimeError, ValueError, NotImplementedError, AttributeError, TypeError)


class Session(session.Session):
    """With `steps`, the recording ends when every optimizer has made so many; with `ends`, the program does, too.
    `lean`: without source lines, for counting only. `fakes`: the mode of the fake tensors that are counted on.
    `before_write`: is called with the tensors that an operator is about to write.
    `compiled`: what torch.compile has compiled, or compiles, runs compiled; else it runs as it is written.
    `compiles`: models that are called run compiled, too."""

    def __init__(
        self,
        torch: Any,
        caller: FrameType,
        *,
        models: Sequence[tuple[str, Any]] = (),
        main: Any = None,
        optimizers: Sequence[tuple[str, Any]] = (),
        arguments: Sequence[tuple[str, Any]] = (),
        hide_root: bool = False,
        values: bool | str = False,
        part: Part | None = None,
        times: bool | str = False,
        steps: int | None = None,
        ends: bool = False,
        after_step: Callable[[], None] | None = None,
        lean: bool = False,
        fakes: Any = None,
        before_write: Callable[[list[Any]], None] | None = None,
        compiled: bool = False,
        compiles: bool = False,
    ) -> None:
        models = _as_written(models) if compiled else models
        self._torch = torch
        self._root = os.path.dirname(torch.__file__) + os.sep
        self._caller: FrameType | None = caller
        given = [
            Named(path, tensor, "input")
            for name, value in arguments
            for held_as, outer in tensors_in(torch.Tensor, value, name)
            for path, tensor in plain(outer, held_as)
        ]
        self._arguments = [named.name for named in given]
        self._optimizers: dict[int, tuple[str, weakref.ref[Any]]] = {}
        self._steps: list[StepEnd] = []
        self._most_steps = steps
        self._ends = ends
        self._when_stepped = after_step
        self._stepping: list[tuple[int, int]] = []
        self._sequence = private.sequence_number(torch)
        self._first_sequence = self._sequence() if self._sequence else 0
        self._lean = lean
        self._places = Places(torch)
        self._memory = Memory(torch)
        self._modules = Modules(list(models), private.uncompiled(main) if compiled else main, hide_root)
        base = caller.f_back
        self._calls = Calls(torch, self._modules, self._places, base, lean=lean, compiled=compiled)
        self._recorder = Recorder(
            torch,
            self._memory,
            self._calls,
            self._places,
            base,
            times=times is True,
            profiled=times == DEVICE,
            values=values,
            part=part,
            lean=lean,
            fakes=FakeResults(torch, fakes, self._memory) if fakes is not None else None,
            before_write=before_write,
        )
        self._threads = Threads(torch, self._calls, self._places, lambda: type(self._mode)(), base, lean=lean)
        self._recorder.threads = self._threads.number
        self.open()
        self._handles: list[Any] = []
        self._watch_optimizers(True)
        self._names = Names()
        self._mode: Any = None
        self._aside = contextlib.ExitStack()
        self._compiled: CompiledCode | None = None
        self._profiler: Profiler | None = None
        if compiled:
            self._compiled = CompiledCode(list(models), self._recorder, self._switch, compiles)
        try:
            if self._compiled is None:
                self._aside.enter_context(private.without_compiler())
                self._aside.enter_context(private.with_control_flow(self._switch))
            self._aside.enter_context(private.no_word_about_hooks())
            self._aside.enter_context(private.rank_that_writes(torch))
            for name, optimizer in optimizers:
                self._know_optimizer(optimizer, name)
            self._take_names(given)
            if times == DEVICE:
                self._profiler = Profiler(torch)
            self._mode = make_mode(self._recorder)
            self._mode.__enter__()
            if self._compiled is not None:
                self._aside.callback(self._compiled.close)
                self._compiled.open(self._mode)
            self._threads.open()
        except BaseException:
            self.abort()
            raise

    @property
    def count(self) -> int:
        return self._recorder.log.count

    # -- the end --------------------------------------------------------------------------------

    def fails(self) -> None:
        self._recorder.ends_failing()

    def finish(self, result: Any = None) -> Capture:
        try:
            self.close()
            # Without source lines nothing but gradients gets a name while the model runs.
            if not self._lean or len(self._recorder.log.node_names) > 1:
                self._take_names([])
            if not self.count:
                raise NothingRecorded(
                    "PyTorch ran no operator while it was recorded: there is no graph to show"
                    + "".join(f" ({lost.op}: {lost.reason})" for lost in self._recorder.lost[:1])
                )
            self._recorder.peers.look()
            capture = assemble(self._account(result))
            if self._compiled is not None:
                capture = self._compiled.joined(capture)
            if self._profiler is not None:
                self.measured = self._profiler.measured(capture.warnings)
        finally:
            self._memory.release()
        # torch's own text is the same for everybody, and longer than most models.
        embed(capture, lambda path: None if path.startswith(self._root) else exact(path))
        return capture

    def abort(self) -> None:
        super().abort()
        self._memory.release()

    def restore(self) -> None:
        self._recorder.is_on = False
        self._threads.close()
        self._calls.remove()
        self._watch_optimizers(False)
        if self._mode is not None:
            private.leave_mode(self._mode)
        if self._profiler is not None:
            self._profiler.stop()
        self._aside.close()

    def _watch_optimizers(self, is_on: bool) -> None:
        if is_on and not self._handles:
            self._handles = private.watch_optimizers(self._before_step, self._after_step)
        elif not is_on:
            for handle in self._handles:
                handle.remove()
            self._handles = []

    def _switch(self, is_inside: bool) -> None:
        """Compiled code begins, or is over: it is compiled without our hooks in it, and again because of them."""
        if is_inside:
            self._calls.pause()
            self._watch_optimizers(False)
        elif self.is_open:
            self._calls.resume()
            self._watch_optimizers(True)

    def _account(self, result: Any) -> Account:
        tensors = [inner for _, tensor in tensors_in(self._torch.Tensor, result) for _, inner in plain(tensor)]
        outputs = [value for value in map(self._memory.newest, tensors) if value is not None]
        return Account(
            log=self._recorder.log,
            memory=self._memory,
            calls=self._calls.rows,
            places=self._places,
            names=self._names,
            variables=self._recorder.variables,
            arguments=self._arguments,
            outputs=outputs if result is not None else None,
            steps=self._steps,
            first_sequence=self._first_sequence,
            has_sequences=self._sequence is not None,
            version=str(self._torch.__version__),
            lost=self._recorder.lost,
            unseen=self._calls.unseen,
            threads=self._threads.unseen,
            statistics=self._recorder.statistics.finish() if self._recorder.statistics is not None else {},
            whole=self._recorder.whole,
            unmeasured=dict(self._recorder.unmeasured),
            runs_compiled=self._compiled is not None,
            rank=self._recorder.peers.rank,
            groups=self._recorder.peers.groups,
        )

    # -- names ----------------------------------------------------------------------------------

    def _take_names(self, given: list[Named]) -> None:
        """Read what everything is called now. Earlier names stay: a parameter keeps its name to the end."""
        memory, names = self._memory, self._names
        found = list(self._modules.tensors())
        parameters: dict[int, str] = {}
        for named in found:
            parameters.setdefault(id(named.tensor), named.name)  # tied weights: the first name counts
        for name, reference in self._optimizers.values():
            optimizer = reference()
            if optimizer is not None:
                found.extend(optimizer_tensors(optimizer, name, parameters))
        for named in [*found, *given]:
            with contextlib.suppress(*_CANNOT_SAY):
                self._take_name(named)
        held = tensors_held_in(self._caller, self._torch.Tensor, depth=3) if self._caller is not None else ()
        for name, tensor in ((name, inner) for held_as, outer in held for name, inner in plain(outer, held_as)):
            with contextlib.suppress(*_CANNOT_SAY):
                if self.is_open:
                    names.add(memory.place_of(tensor), memory.storage_of(tensor), name, "input")
                elif (value := memory.newest(tensor)) is not None:
                    self._recorder.variables.setdefault(value, name)  # a result: `loss`
        self._recorder.named = names.storages
        if not self.is_open:
            self._caller = None

    def _take_name(self, named: Named) -> None:
        memory, names = self._memory, self._names
        gradient = getattr(named.tensor, "grad", None) if named.role == "parameter" else None
        if gradient is not None:
            for name, inner in plain(gradient, f"{named.name}.grad"):
                names.add(memory.place_of(inner), memory.storage_of(inner), name, "gradient")
        for name, inner in plain(named.tensor, named.name):
            names.add(memory.place_of(inner), memory.storage_of(inner), name, named.role, named.owner)

    def _know_optimizer(self, optimizer: Any, name: str | None = None) -> str:
        if id(optimizer) not in self._optimizers:
            found = (
                name or (name_in_frame(self._caller, optimizer) if self._caller else None) or self._called(optimizer)
            )
            self._optimizers[id(optimizer)] = found or type(optimizer).__name__, weakref.ref(optimizer)
        return self._optimizers[id(optimizer)][0]

    def _called(self, optimizer: Any) -> str | None:
        """What the code that calls it calls it: a script's variables are in none of the frames that we are given."""
        frame: FrameType | None = frame_at(1)
        while frame is not None:
            if not frame.f_code.co_filename.startswith((self._root, OWN)):
                name = name_in_frame(frame, optimizer)
                if name is not None:
                    return name
            frame = frame.f_back
        return None

    # -- steps ----------------------------------------------------------------------------------

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._most_steps is not None and self._made(optimizer) >= self._most_steps:
            self._recorder.is_on = False
        if not self._recorder.is_on:
            return
        self._know_optimizer(optimizer)
        self._stepping.append((id(optimizer), self.count))

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        while self._stepping:
            key, began = self._stepping.pop()
            if key == id(optimizer):
                name = self._optimizers[key][0]
                self._steps.append(StepEnd(key, name, type(optimizer).__name__, began, self.count))
                break
        if self._when_stepped is not None and not self._stepping and self._recorder.is_on:
            if self._recorder.statistics is not None and self._recorder.statistics.has_nan():
                raise SystemExit  # as if the script ended here: what was recorded is kept
            self._when_stepped()
            return
        if not self._recorder.is_on or self._most_steps is None:
            return
        # Where there are several optimizers, a step is over when each has made its own.
        if self._made(optimizer) >= self._most_steps:
            others = [o for o in gc.get_objects() if issubclass(type(o), self._torch.optim.Optimizer)]
            if all(self._made(other) >= self._most_steps for other in others):
                self._recorder.is_on = False
                if self._ends:
                    raise SystemExit  # as if the script ended here

    def _made(self, optimizer: Any) -> int:
        return sum(step.optimizer == id(optimizer) for step in self._steps)


def models_in(torch: Any, caller: FrameType, given: Any) -> list[tuple[str, Any]]:
    """The models given, or else those among the user's variables, with their names."""
    modules = _listed(given)
    named = [
        (name_in_frame(caller, module) or type(module).__name__, module)
        for module in modules
        if is_a(module, torch.nn.Module)
    ]
    candidates = list(held_in(caller, (torch.nn.Module,)))
    # A variable for a part of a model (`head = model.fc`) is not another model.
    inside = {id(part) for _, module in [*named, *candidates] for part in parts(module) if part is not module} | {
        id(module) for _, module in named
    }
    for name, module in candidates:
        if id(module) not in inside:
            inside.add(id(module))
            named.append((name, module))
    return named


def _as_written(models: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The models that torch.compile was given, instead of what it made of them."""
    found: dict[int, tuple[str, Any]] = {}
    for name, module in sorted(models, key=lambda model: private.uncompiled(model[1]) is not model[1]):
        plain = private.uncompiled(module)
        found.setdefault(id(plain), (name, plain))
    return list(found.values())


def optimizers_in(torch: Any, caller: FrameType, given: Any) -> list[tuple[str, Any]]:
    optimizers = _listed(given)
    return [
        (name_in_frame(caller, optimizer) or type(optimizer).__name__, optimizer)
        for optimizer in optimizers
        if is_a(optimizer, torch.optim.Optimizer)
    ]


def _listed(given: Any) -> list[Any]:
    return list(cast("list[Any]", given)) if is_a(given, (list, tuple)) else [given]
