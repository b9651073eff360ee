"""One recording: switches Jittor's tracer on, watches, and turns what was dumped into a Capture."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any, NamedTuple

from opscope.errors import OpscopeError
from opscope.ir import Capture, Pools
from opscope.readers.jittor import KnownVar, from_dump
from opscope.sources import embed, exact
from opscope.tracers import session
from opscope.tracers.contract import STATISTICS
from opscope.tracers.frames import frame_at
from opscope.tracers.session import NothingRecorded

from . import dumps
from .dumps import Dump
from .names import Variable
from .stacks import Rewriter, number_of, show_lines
from .variables import by_node, follow, named_tensors, probe
from .watch import Rebound, Watcher, depth_of


class Part(NamedTuple):
    """What was recorded between two calls of jt.clear_trace_data()."""

    name: str
    data: Dump
    known: dict[int, Variable]  # by number in the dump
    steps: list[tuple[int, int]]  # see Watcher.steps


def import_jittor() -> Any:
    if sys.version_info >= (3, 11):
        raise OpscopeError(
            "Jittor's tracer works on Python 3.10 and older, and this is "
            f"{sys.version_info.major}.{sys.version_info.minor}: run the model on Python 3.10 to capture it"
        )
    import jittor  # pyright: ignore[reportMissingImports]

    return jittor


class Session(session.Session):
    def __init__(
        self,
        jt: Any,
        roots: list[tuple[str, Any]],
        caller: FrameType,
        *,
        model: Any = None,
        arguments: Sequence[tuple[str, Any]] = (),
        values: bool | str = False,
        times: bool = False,
    ) -> None:
        self._jt = jt
        self._base = depth_of(caller)
        self._model: Callable[[], Any] = weakref.ref(model) if model is not None else lambda: None
        self._parts: list[Part] = []
        self._figures = values == STATISTICS
        self._warnings: list[str] = []
        self._flags: dict[str, int] = {}
        self._patched: list[tuple[Any, str, Any]] = []
        self._report: list[Any] | None = None
        self._profiler: Any = None
        self._aside: Dump | None = None
        self._watcher = Watcher(jt, roots)
        self._watching = False
        self._on = False
        self.open()
        try:
            self._begin(arguments, caller, bool(values), times)
        except BaseException:
            self.abort()
            raise

    def _begin(self, arguments: Sequence[tuple[str, Any]], caller: FrameType, values: bool, times: bool) -> None:
        jt = self._jt
        self._seen = self._watcher.can_install()
        if not self._seen:
            self._warnings.append(
                "another profiler was running, so the modules that operators belong to could not be seen: "
                "only their source lines are known"
            )
        # The user may be tracing himself: then his trace goes on, and we cut our part out of it.
        self._shared: bool = jt.flags.trace_py_var >= 2
        earlier: Dump = jt.dump_trace_data()
        self._after = dumps.last_group(earlier) if self._shared else -1
        if earlier["node_data"] and not self._shared:
            # He may have left a trace behind. Tensors freed since are in it by their addresses, which new ones
            # now have: only an empty trace is a right one. His comes back when we are done.
            self._aside = earlier
            jt.clear_trace_data()
        self._dump: Callable[[], Dump] = jt.dump_trace_data
        self._clear: Callable[[], None] = jt.clear_trace_data
        self._on = True
        if not self._shared:
            self._set("trace_py_var", 3)  # full stacks; the modules we see ourselves
        if values:
            self._set("trace_var_data", 1)
        self._open_part(arguments, caller)
        self._patch("dump_trace_data", lambda: dumps.without(self._dump(), self._own))
        self._patch("clear_trace_data", self._cleared)
        if times:
            self._profiler = jt.profile_scope(warmup=0, rerun=0)
            self._report = self._profiler.__enter__()
        self._began = self._watcher.counter()
        if self._seen:
            self._watcher.install()
            self._watching = True

    # -- the end --------------------------------------------------------------------------------

    def finish(self) -> Capture:
        """Run what is still pending, so that it is in the trace, and put everything back."""
        try:
            self._stop_watching()
            self._jt.sync_all()
            if self._jt.flags.trace_py_var < 2:
                self._warnings.append(
                    f"Jittor's tracer was switched off in the code (trace_py_var={self._jt.flags.trace_py_var}): "
                    "what ran after that is not in the capture"
                )
            self._stop_profiler()
            self._close_part("")
        except BaseException:
            self.abort()
            raise
        self.close()
        return self._capture()

    def restore(self) -> None:
        self._stop_watching()
        try:
            self._stop_profiler()
        finally:
            self._restore_flags()

    def _stop_watching(self) -> None:
        if self._watching:
            self._watcher.remove()
            self._watching = False
            if self._watcher.lost:
                self._warnings.append(
                    "the watching of calls was interrupted, most likely by another profiler: the modules that "
                    "operators belong to were not all seen, so none are shown"
                )

    def _stop_profiler(self) -> None:
        if self._profiler is not None:
            profiler, self._profiler = self._profiler, None
            silent = self._jt.flags.log_silent
            self._jt.flags.log_silent = 1  # or Jittor would print the whole profile
            try:
                profiler.__exit__(None, None, None)
            finally:
                self._jt.flags.log_silent = silent

    def _restore_flags(self) -> None:
        for place, name, before in reversed(self._patched):
            setattr(place, name, before)
        self._patched.clear()
        for name, before in self._flags.items():
            setattr(self._jt.flags, name, before)
        self._flags.clear()
        if self._on and not self._shared:
            self._clear()
        if self._aside is not None:
            keep_aside(self._jt, self._aside)
            self._aside = None
        self._on = False

    def _set(self, flag: str, value: int) -> None:
        self._flags.setdefault(flag, getattr(self._jt.flags, flag))
        setattr(self._jt.flags, flag, value)

    def _patch(self, name: str, value: Any) -> None:
        for place in (self._jt, self._jt.core):
            self._patched.append((place, name, getattr(place, name)))
            setattr(place, name, value)

    # -- parts ----------------------------------------------------------------------------------

    def _open_part(self, arguments: Sequence[tuple[str, Any]] = (), frame: FrameType | None = None) -> None:
        tensors = named_tensors(self._jt, self._watcher.roots(), self._model(), arguments, frame)
        self._at_start = by_node(tensors)
        self._first_step = len(self._watcher.steps)
        self._places, self._own = ({}, set[int]()) if self._shared else probe(self._jt, tensors)

    def _close_part(self, name: str) -> None:
        data = dumps.without(self._dump(), self._own)
        if self._shared:
            data = dumps.since(data, self._after)
            self._after = -1
        data, earlier = dumps.without_earlier(data, self._began)
        if earlier:
            self._warnings.append(
                f"{earlier} operators were left out: they were created before the recording and ran during it "
                "(Jittor is lazy), such as those that initialise parameters"
            )
        if not data["execute_op_info"]:
            return
        at_end = by_node(named_tensors(self._jt, self._watcher.roots(), self._model()))
        known = follow(self._at_start, at_end, self._watcher.rebound)
        # Where the dump has each node: those it describes, and those that only the probe found.
        keys = {number_of(node): key for key, node in data["node_data"].items()}
        before = {node: key for key, node in self._places.items()}
        mark_writes(data, self._watcher.rebound, {**before, **keys}, known)
        by_key = {key: known[node] for node, key in {**before, **keys}.items() if node in known}
        self._parts.append(Part(name, data, by_key, self._watcher.steps[self._first_step :]))

    def _cleared(self) -> None:
        """In place of jt.clear_trace_data: what the user throws away becomes a part of the capture."""
        caller = frame_at(1).f_code.co_name
        self._close_part("" if caller.startswith("<") else caller)
        self._clear()
        self._open_part()

    # -- the capture ----------------------------------------------------------------------------

    def _capture(self) -> Capture:
        if not self._parts:
            raise NothingRecorded(
                "Jittor ran no operator while it was recorded: there is no graph to show. Jittor is lazy, so what "
                "is computed must be used (or synced) and still be held when the recording ends"
            )
        pools = Pools()
        captures: list[Capture] = []
        for part, name in zip(self._parts, _distinct([part.name for part in self._parts]), strict=True):
            if not self._watcher.lost and self._seen:
                Rewriter(part.data, self._watcher, part.steps, self._base, self._began).rewrite()
            else:
                show_lines(part.data, self._base)
            captures.append(
                from_dump(
                    with_known(part.data, part.known),
                    origin={"how": "recorded live", "version": self._jt.__version__},
                    known={key: KnownVar(*variable) for key, variable in part.known.items()},
                    report=self._report,
                    stage=name,
                    pools=pools,
                    figures=self._figures,
                )
            )
        capture = joined(captures)
        capture.warnings.extend(self._warnings)
        embed(capture, exact)
        return capture


def with_known(data: Dump, known: dict[int, Variable]) -> Dump:
    """The dump with the tensors that it refers to but does not describe, and with the names of parameters."""
    nodes: dict[int, Any] = data["node_data"]
    readers: dict[int, list[int]] = {}
    for key, node in nodes.items():
        for other in node["inputs"]:
            if other not in nodes:
                readers.setdefault(other, []).append(key)
    for key, variable in known.items():
        if key in nodes and variable.role in ("parameter", "buffer"):
            nodes[key]["attrs"]["name"] = variable.name
        elif key not in nodes and key in readers:
            attrs = {
                "is_var": "1",
                "name": variable.name,
                "dtype": variable.dtype,
                "shape": "[" + "".join(f"{size}," for size in variable.shape) + "]",
            }
            nodes[key] = {"id": key, "inputs": [], "outputs": readers[key], "stacks": [], "attrs": attrs}
    return data


def mark_writes(data: Dump, rebound: list[Rebound], keys: dict[int, int], known: dict[int, Variable]) -> None:
    """Say of each tensor which one it was written over: it lives in the same place."""
    for before, after, method in rebound:
        if before not in keys or keys.get(after) not in data["node_data"]:
            continue
        # `a.assign(b)` also gives `a` the node that `b` goes on to hold: that writes over nothing. So it counts
        # where both are the same named tensor, or where it is a write to a part (`a[0] = 1`).
        is_same = before in known and known[before] == known.get(after)
        if is_same or (method == "check_cascade_setitem" and after not in known):
            data["node_data"][keys[after]]["replaces"] = keys[before]


def joined(captures: list[Capture]) -> Capture:
    """Captures with the same pools as stages of one."""
    first = captures[0]
    for capture in captures[1:]:
        for name, table in capture.tables.items():
            label = f"{name}, {capture.stages[0].name}"
            first.tables[label] = replace(table, stage=len(first.stages))
        first.stages.extend(capture.stages)
    return first


def _distinct(names: list[str]) -> list[str]:
    """Stage names from the functions that cleared the trace: `trace`, `trace 2`, `test_resnet`."""
    seen: Counter[str] = Counter()
    found: list[str] = []
    for name in names:
        name = name or "trace"
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found


def keep_aside(jt: Any, data: Dump) -> None:
    """Make the user's own, older trace come back with his next dump, until he clears it.

    Jittor never reuses the numbers of a trace, so the two do not collide.
    """
    before = {(place, name): getattr(place, name) for place in (jt, jt.core) for name in _ASIDE}

    def dump() -> Dump:
        new = before[jt, "dump_trace_data"]()
        return {key: {**data[key], **new[key]} for key in new}

    def clear() -> None:
        for (place, name), function in before.items():
            setattr(place, name, function)
        jt.clear_trace_data()

    for place in (jt, jt.core):
        place.dump_trace_data, place.clear_trace_data = dump, clear


_ASIDE = ("dump_trace_data", "clear_trace_data")
