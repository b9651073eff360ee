"""Everything that is watched while something compiles, from the first hook to the capture."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, NamedTuple, cast

from opscope.tracers.arguments import is_a
from opscope.tracers.frames import frame_at, locals_of
from opscope.tracers.torch import private
from opscope.tracers.torch.private import the_torch

from . import hooks, nodes
from .hooks import Hooks
from .nodes import Base, Modules
from .passes import Passes
from .schedule import Schedule
from .stream import Record, Stream

_LEVELS = {
    "before_pre_grad_graph": "pre_grad",
    "before_joint_graph": "joint",
    "aot_joint_graph": "joint",
    "before_post_grad_graph": "post_grad",
}


@dataclass
class Compiled:
    """A graph that Inductor has compiled."""

    graph: Any
    id: dict[str, int]  # the compilation; empty where that was before
    direction: str  # forward, backward, inference; "" where it is not known
    is_new: bool  # compiled while we watched
    runs: int = 0


class Missed(NamedTuple):
    """A call of something compiled in which no compiled code ran."""

    name: str
    backend: str
    where: str


class Calls:
    """Calls of what torch.compile returned."""

    def __init__(self) -> None:
        self.ran = 0  # compiled graphs, so far
        self.count = 0
        self.missed: dict[Missed, int] = {}
        self._open: dict[int, int] = {}  # frame -> what had run before it

    @property
    def is_inside(self) -> bool:
        return bool(self._open)

    def passed(self, frame: FrameType) -> None:
        """Torch's function around the call switches its compiler on, and later off again."""
        before = self._open.pop(id(frame), None)
        if before is None:
            self._open[id(frame)] = self.ran
            self.count += 1
        elif before == self.ran:
            missed = Missed(*private.compiled_call(frame))
            self.missed[missed] = self.missed.get(missed, 0) + 1


class Watch:
    """Torch's compiler, watched between `open` and `close`. If the watching goes wrong, it compiles as ever."""

    def __init__(self, models: Iterable[tuple[str, Any]] = ()) -> None:
        self.stream = Stream()
        self.modules = Modules(models)
        self.trouble: list[str] = []
        self.graphs: dict[int, Compiled] = {}  # the compiled graphs that were made or ran, by id
        self.calls = Calls()
        self.on_run: Callable[[Compiled, Any, Callable[[], Any]], Any] = lambda compiled, inputs, run: run()
        self.on_compiled_code: Callable[[bool], None] = lambda is_inside: None
        self.on_wrapping: Callable[[Callable[[], Any]], Any] = lambda wrap: wrap()
        self._hooks = Hooks()
        self._passes = Passes(self.stream, self._print)
        self._schedules: dict[int, list[Schedule]] = {}  # by thread
        self._bases: dict[tuple[int, int, int], Base] = {}
        self._cached: set[str] = set()
        self._is_on = False
        self._way_to_print: tuple[tuple[Any, ...], dict[str, Any]] = (False,), {}
        self._printing = threading.local()

    # -- hooks ----------------------------------------------------------------------------------------

    def open(self) -> None:
        wrap = self._hooks.wrap
        wrap(hooks.GRAPH_TEXT, self._printed)
        wrap(hooks.PASS_BEGINS, self._around_pass(self._passes.begin))
        wrap(hooks.PASS_ENDS, self._around_pass(self._passes.end))
        wrap(hooks.NOT_FUSED, self._not_fused)
        for place in hooks.LAUNCHES:
            wrap(place, self._launched)
        wrap(hooks.LOWERING, self._lowering)
        wrap(hooks.TEMPLATES, self._tried)
        wrap(hooks.LOOK_UP, self._look_up)
        for place in hooks.SAVES:
            wrap(place, self._save)
        wrap(hooks.COMPILES, self._compiles)
        wrap(hooks.RUNS, self._runs)
        wrap(hooks.ENTERS, self._enters)
        wrap(hooks.WRAPS, self._wraps)
        self.stream.before_code = self._before_code
        self.stream.began = self._began
        self._is_on = True
        if not self.stream.open():
            self.trouble.append("this torch has no structured log of its compiler: its graphs are unknown")
        self._hooks.open()

    def close(self) -> None:
        self._is_on = False
        self.stream.shut()
        self._hooks.close()

    @contextlib.contextmanager
    def _safely(self) -> Generator[None, None, None]:
        try:
            yield
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            if said not in self.trouble:
                self.trouble.append(said)

    # -- graphs ---------------------------------------------------------------------------------------

    def _printed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def print_readable(module: Any, *args: Any, **kwargs: Any) -> Any:
            text = original(module, *args, **kwargs)
            if self._is_on and not getattr(self._printing, "is_ours", False):
                with self._safely():
                    self._way_to_print = args, kwargs
                    self._note(module, text)
            return text

        return print_readable

    def _note(self, module: Any, text: str) -> None:
        table = nodes.describe(module.graph, self.modules, self._base())

        def record(kind: str) -> Record:
            return Record(self.stream.about("nodes", of=kind), nodes.text(table, self.modules, kind))

        self.stream.printed.append((text, record))

    def _print(self, module: Any) -> tuple[str, Record | None]:
        """A graph in the middle of the passes, printed as torch prints those around them."""
        self._printing.is_ours = True
        try:
            args, kwargs = self._way_to_print
            text: str = module.print_readable(*args, **kwargs)
        finally:
            self._printing.is_ours = False
        table = nodes.describe(module.graph, self.modules, self._base())
        level = "aot_joint_graph" if self._passes.level == "joint" else ""
        return text, Record(self.stream.about("nodes", of="opscope_pass"), nodes.text(table, self.modules, level))

    def _around_pass(self, watch: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def around(observer: Any, *args: Any) -> Any:
                if self._is_on:
                    with self._safely():
                        watch(observer)
                return original(observer, *args)

            return around

        return make

    # -- frames ---------------------------------------------------------------------------------------

    def _began(self, kind: str) -> None:
        if kind in _LEVELS:
            self._passes.level = _LEVELS[kind]
        elif kind == "dynamo_start":
            with self._safely():
                base = self._compiled_frame()
                if base is not None:
                    self._bases[self._key()] = base

    def _key(self) -> tuple[int, int, int]:
        found = hooks.compile_id()
        return found.get("frame_id", -1), found.get("frame_compile_id", -1), found.get("compiled_autograd_id", -1)

    def _base(self) -> Base | None:
        return self._bases.get(self._key())

    def _compiled_frame(self) -> Base | None:
        """What the Python frame that is compiled belongs to. Dynamo's own frames, further up, hold it."""
        frame: FrameType | None = frame_at(1)
        while frame is not None:
            if private.is_frame_compiler(frame.f_code):
                own = locals_of(frame)
                code, variables = own.get("code"), own.get("locals")
                if is_a(code, CodeType) and is_a(variables, dict):
                    return self._base_of(cast("CodeType", code), cast("dict[str, Any]", variables), frame)
            frame = frame.f_back
        return None

    def _base_of(self, code: CodeType, variables: dict[str, Any], frame: FrameType) -> Base:
        torch = the_torch()
        owner = variables.get("self", variables.get(code.co_varnames[0]) if code.co_varnames else None)
        if is_a(owner, torch.nn.Module):
            place = self.modules.by_id(id(owner))
            if place is not None:
                return Base(place)
        if is_a(owner, torch.optim.Optimizer):
            return Base(self.modules.add_code(type(owner).__name__), "optimizer")
        caller = private.module_around(frame)  # what is left of its code after a break may not mention it
        place = self.modules.by_id(id(caller)) if caller is not None else None
        return Base(place or self.modules.add_code(private.users_function(code)))

    # -- the schedule ---------------------------------------------------------------------------------

    def _schedule(self) -> Schedule | None:
        open_ones = self._schedules.get(threading.get_ident())
        return open_ones[-1] if open_ones else None

    def _lowering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def codegen(*args: Any, **kwargs: Any) -> Any:
            if self._is_on:
                known = self._schedules.setdefault(threading.get_ident(), [])
                if not known:
                    known.append(Schedule())
            return original(*args, **kwargs)

        return codegen

    def _before_code(self) -> None:
        with self._safely():
            seen = self._passes.taken()
            if seen:
                self.stream.add("passes", json.dumps({"passes": seen}))
            schedules = self._schedules.pop(threading.get_ident(), [])
            if schedules:
                self.stream.add("launches", schedules[-1].text())

    def _launched(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def launched(scheduled: Any, kernel_name: Any, is_extern: bool = False) -> Any:
            if self._is_on and kernel_name:
                schedule = self._schedule()
                if schedule is not None:
                    with self._safely():
                        schedule.launched(scheduled, str(kernel_name), is_extern)
            return original(scheduled, kernel_name, is_extern)

        return launched

    def _not_fused(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def said(why: Any, reason: str, *args: Any) -> Any:
            if self._is_on:
                schedule = self._schedule()
                if schedule is not None:
                    with self._safely():
                        schedule.not_fused(why, reason, args)
            return original(why, reason, *args)

        return said

    def _tried(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def log_results(name: str, inputs: Any, timings: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_on:
                with self._safely():
                    known = self._schedules.setdefault(threading.get_ident(), [Schedule()])
                    known[-1].tried(private.lowered_operator(), inputs, timings)
            return original(name, inputs, timings, *args, **kwargs)

        return log_results

    # -- caches ---------------------------------------------------------------------------------------

    def _look_up(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """What is in a cache is compiled all the same: only so its passes can be seen. It is not written twice."""

        def find_guarded_entry(cls: Any, key: str, *args: Any, **kwargs: Any) -> Any:
            found = original(cls, key, *args, **kwargs)
            if not self._is_on or found[0] is None:
                return found
            self._cached.add(key)
            return None, None, {**found[2], "cache_status_detailed": "full_miss"}

        return find_guarded_entry

    def _save(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def write(key: str, *args: Any, **kwargs: Any) -> Any:
            return None if self._is_on and key in self._cached else original(key, *args, **kwargs)

        return write

    # -- compiled graphs ------------------------------------------------------------------------------

    def _compiles(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_inner(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            if self._is_on:
                with self._safely():
                    found = hooks.compile_id()
                    word = "backward" if kwargs.get("is_backward") else ""
                    word = word or ("inference" if kwargs.get("is_inference") else "forward")
                    self.graphs[id(made)] = Compiled(made, found, word, is_new=True)
            return made

        return compile_inner

    def _runs(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(graph: Any, inputs: Any) -> Any:
            if not self._is_on:
                return original(graph, inputs)
            compiled = self.graphs.get(id(graph))
            if compiled is None or compiled.graph is not graph:
                compiled = self.graphs[id(graph)] = Compiled(graph, {}, hooks.direction(graph), is_new=False)
            compiled.runs += 1
            self.calls.ran += 1
            return self.on_run(compiled, inputs, lambda: original(graph, inputs))

        return call

    def _enters(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def set_frame(callback: Any) -> Any:
            if self._is_on:
                frame = frame_at(1)
                if frame.f_code.co_name == "compile_wrapper":
                    with self._safely():
                        self.calls.passed(frame)
                        self.on_compiled_code(self.calls.is_inside)
            return original(callback)

        return set_frame

    def _wraps(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrap(context: Any, *args: Any, **kwargs: Any) -> Any:
            return (
                self.on_wrapping(lambda: original(context, *args, **kwargs))
                if self._is_on
                else original(context, *args, **kwargs)
            )

        return wrap
