"""The events of a trace as columns of a profile."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable
from itertools import count
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from opscope.ir.columns import view
from opscope.ir.pools import clean

from .profile import COPY, KERNEL, LAUNCH, OPERATOR, PYTHON, REGION, SET, Calls, Profile, Work

CALLS = {
    "cpu_op": OPERATOR,
    "operator": OPERATOR,  # as PyTorch 1.8 wrote it
    "user_annotation": REGION,
    "python_function": PYTHON,
    "cuda_runtime": LAUNCH,
    "cuda_driver": LAUNCH,
    "runtime": LAUNCH,
    "hip_runtime": LAUNCH,
    "hip_driver": LAUNCH,
    "xpu_runtime": LAUNCH,
    "xpu_driver": LAUNCH,
    "privateuse1_runtime": LAUNCH,
    "privateuse1_driver": LAUNCH,
    "mtia_runtime": LAUNCH,
}
WORK = {
    "kernel": KERNEL,
    "gpu_memcpy": COPY,
    "memcpy": COPY,
    "gpu_memset": SET,
    "memset": SET,
    "concurrent_kernel": KERNEL,
}
_NOT_ATTRS = frozenset(("External id", "external id", "correlation", "device", "stream", "queued", "context", "bytes"))
_NAMES = frozenset({int, str})  # what processes and threads are called by
_MOST_NAME = 2000  # characters of a kernel's name: templates of templates
_MOST_OTHERS = 16  # categories that are counted although they are none of ours
_LARGEST_ID = 1 << 62
_LATEST = 1e17  # microseconds since 1970: the year 5138


class Columns:
    """Takes events one by one; `profile` is called when all are there."""

    def __init__(self) -> None:
        self.names: dict[str, int] = _Numbered([""])
        self.threads: dict[str, int] = _Numbered()
        self.attrs: dict[str, int] = _Numbered(["{}"])
        self.skipped = 0
        self.collide = False  # several processes have calls with the same ids, and work that either may have started
        self._others: dict[str, int] = {}  # categories of events that are not a profiler's, or their kinds
        self._calls: list[array[Any]] = [array(code) for code in "ibiddqqq"]
        self._shapes = array("i")
        self._correlation = array("q")  # of calls of the device's library, otherwise -1
        self._process = array("i")
        self._work: list[array[Any]] = [array(code) for code in "ibiidd"]
        self._started_by = array("q"), array("q")  # the ident of the call, the correlation of the launch
        self._work_attrs = array("i")
        self._processes: dict[str, int] = _Numbered()
        self._where: dict[tuple[Any, Any], tuple[int, int]] = {}  # the number of a thread, and of its process
        self._thread_names: dict[str, str] = {}

    def take(self, events: Iterable[dict[str, Any]]) -> None:
        for event in events:
            if event.get("ph") == "X":
                category = event.get("cat")
                if not isinstance(category, str):
                    self._other("without a category")
                    continue
                kind = CALLS.get(category)
                if kind is None:
                    kind = CALLS.get(category.lower())
                if kind is not None:
                    self._call(event, kind)
                elif (work := WORK.get(category.lower())) is not None:
                    self._device(event, work)
                else:
                    self._other(category[:40])
            elif event.get("ph") == "M" and event.get("name") == "thread_name":
                name = clean(str(_args(event).get("name")))
                self._thread_names[f"{event.get('pid')}/{event.get('tid')}"] = name[:100]
            elif event.get("ph") in ("B", "E"):
                self._other("beginnings and ends apart")

    def _other(self, what: str) -> None:
        if what in self._others or len(self._others) < _MOST_OTHERS:
            self._others[what] = self._others.get(what, 0) + 1

    def others(self) -> str:
        """What a trace holds that is no profile of PyTorch's."""
        if not self._others:
            return ""
        listed = sorted(self._others, key=self._others.__getitem__, reverse=True)[:4]
        found = ", ".join(f"{self._others[what]:,} {clean(what)}" for what in listed)
        return f" (other events: {found}): torch.profiler did not write it"

    def _call(self, event: dict[str, Any], kind: int) -> None:
        interval, name = _interval(event), event.get("name")
        if interval is None or name is None:
            self.skipped += 1
            return
        start, duration = interval
        args = _args(event)
        names, kinds, threads, starts, durations, idents, records, sequences = self._calls
        names.append(self.names[name if type(name) is str and len(name) < _MOST_NAME else str(name)[:_MOST_NAME]])
        kinds.append(kind)
        thread, process = self._thread(event)
        threads.append(thread)
        starts.append(start)
        durations.append(duration if duration > 0.0 else 0.0)
        self._process.append(process)
        if kind == PYTHON:  # most events are calls of Python, which have none of the rest
            idents.append(-1)
            records.append(-1)
            sequences.append(-1)
            self._shapes.append(0)
            self._correlation.append(-1)
            return
        # What the library's call itself is called by is its correlation; it carries the id of the operator around it.
        idents.append(-1 if kind == LAUNCH else _whole(args.get("External id", args.get("external id"))))
        records.append(_whole(args.get("Record function id")))
        sequences.append(_whole(args.get("Sequence number")))
        shapes = args.get("Input Dims", args.get("Input dims"))
        self._shapes.append(self.names[json.dumps(shapes, separators=(",", ":"))[:_MOST_NAME]] if shapes else 0)
        self._correlation.append(_whole(args.get("correlation")) if kind == LAUNCH else -1)

    def _thread(self, event: dict[str, Any]) -> tuple[int, int]:
        """The numbers of the thread and of the process in which something ran."""
        pid, tid = event.get("pid"), event.get("tid")
        try:
            return self._where[pid, tid]
        except (KeyError, TypeError):  # new, or no names at all
            found = self.threads[f"{pid}/{tid}"], self._processes[str(pid)]
        if type(pid) in _NAMES and type(tid) in _NAMES:
            self._where[pid, tid] = found
        return found

    def _device(self, event: dict[str, Any], kind: int) -> None:
        interval, name = _interval(event), event.get("name")
        if interval is None or name is None:
            self.skipped += 1
            return
        start, duration = interval
        args = _args(event)
        names, kinds, devices, streams, starts, durations = self._work
        names.append(self.names[str(name)[:_MOST_NAME]])
        kinds.append(kind)
        devices.append(_small(args.get("device", event.get("pid"))))
        streams.append(_small(args.get("stream", event.get("tid"))))
        starts.append(start)
        durations.append(max(duration, 0.0))
        self._started_by[0].append(_whole(args.get("External id", args.get("external id"))))
        self._started_by[1].append(_whole(args.get("correlation")))
        kept = {key: value for key, value in args.items() if key not in _NOT_ATTRS}
        self._work_attrs.append(self.attrs[json.dumps(kept)] if kept else 0)

    def profile(self, format: str, fields: dict[str, Any], warnings: Iterable[str] = ()) -> Profile:
        order = np.lexsort((-_floats(self._calls[4]), _floats(self._calls[3]), _ints(self._calls[2])))
        columns = [np.frombuffer(column, dtype=column.typecode)[order] for column in self._calls]
        names, kinds, threads, starts, durations, idents, records, sequences = columns
        parents = _parents(threads, kinds, starts, durations)
        calls = Calls(
            name=names,
            kind=kinds,
            thread=threads,
            start=starts,
            duration=durations,
            parent=parents,
            ident=idents,
            record=records,
            sequence=sequences,
            shapes=_ints(self._shapes)[order],
        )
        found = list(warnings)
        process = _ints(self._process)[order]
        work = self._placed(calls, _longs(self._correlation)[order], process)
        if self.skipped:
            found.append(f"{self.skipped:,} events without a time or a name are left out")
        distributed = fields.get("distributedInfo")
        where = cast("dict[str, Any]", distributed) if isinstance(distributed, dict) else {}
        devices = fields.get("deviceProperties")
        return Profile(
            format=format,
            names=[clean(name) for name in self.names],
            threads=[self._thread_names.get(thread, thread) for thread in self.threads],
            calls=calls,
            work=work,
            attr_sets=[json.loads(text) for text in self.attrs],
            devices=[entry for entry in cast("list[Any]", devices) if isinstance(entry, dict)]
            if isinstance(devices, list)
            else [],
            rank=_optional(where.get("rank")),
            world=_optional(where.get("world_size")),
            warnings=tuple(found),
        )

    def _placed(self, calls: Calls, correlation: npt.NDArray[np.int64], process: npt.NDArray[np.int32]) -> Work:
        """The work of devices, each with the call that started it."""
        order = np.argsort(_floats(self._work[4]), kind="stable")
        names, kinds, devices, streams, starts, durations = (
            np.frombuffer(column, dtype=column.typecode)[order] for column in self._work
        )
        ids, correlated = (_longs(column)[order] for column in self._started_by)
        by_launch, twice = _looked_up(correlation, correlated, process)
        by_ident, twice_too = _looked_up(calls.ident, ids, process)
        self.collide = twice or twice_too
        around = np.where(by_launch >= 0, _outer(calls, by_launch), -1)
        return Work(
            name=names,
            kind=kinds,
            device=devices,
            stream=streams,
            start=starts,
            duration=durations,
            call=np.where(by_ident >= 0, by_ident, around).astype(np.int32),
            launch=by_launch,
            attrs=_ints(self._work_attrs)[order],
        )


def _parents(
    threads: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.int8],
    starts: npt.NDArray[np.float64],
    durations: npt.NDArray[np.float64],
) -> npt.NDArray[np.int32]:
    """The call around each, where calls are in the order of their beginning within each thread.

    Python functions and the rest are recorded by two mechanisms, so that they may cross: a region begins inside of the
    function that opens it and outlives that, and ends inside of one that closes it.
    """
    parents = array("i")
    stack: list[int] = []
    ends: list[float] = []
    functions: list[bool] = []
    thread = -1
    rows = zip(view(threads), view(kinds), cast("memoryview[float]", view(starts)), view(durations), strict=True)
    for index, (own, kind, start, duration) in enumerate(rows):
        if own != thread:
            thread = own
            stack.clear()
            ends.clear()
            functions.clear()
        end = start + duration
        is_function = kind == PYTHON
        while ends and (ends[-1] <= start or (not is_function and functions[-1] and ends[-1] < end)):
            ends.pop()
            stack.pop()
            functions.pop()
        parents.append(stack[-1] if stack else -1)
        ends.append(min(end, ends[-1]) if stack else end)
        stack.append(index)
        functions.append(is_function)
    return _ints(parents)


def _looked_up(
    keys: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64], process: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], bool]:
    """Where each of `wanted` is among `keys` (-1: nowhere), and whether some is among the keys of several processes."""
    rows = np.flatnonzero(keys >= 0)
    rows = rows[np.argsort(keys[rows], kind="stable")]
    sorted_keys, owners = keys[rows], process[rows]
    clash = np.zeros(len(rows), dtype=bool)
    clash[1:] = (sorted_keys[1:] == sorted_keys[:-1]) & (owners[1:] != owners[:-1])
    bad = sorted_keys[clash]
    at = np.searchsorted(sorted_keys, wanted)
    inside = at < len(rows)
    found = np.full(len(wanted), -1, dtype=np.int32)
    hit = np.flatnonzero(inside & (wanted >= 0))
    hit = hit[(sorted_keys[at[hit]] == wanted[hit]) & ~np.isin(wanted[hit], bad)]
    found[hit] = rows[at[hit]]
    return found, bool(np.isin(wanted[wanted >= 0], bad).any()) if len(bad) else False


def _outer(calls: Calls, launch: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The operator or region around each launch; otherwise the launch itself."""
    if not len(calls):  # kernels alone
        return launch
    at = launch.copy()
    for _ in range(64):  # a launch is right inside of an operator, or a few calls of the library deep
        up = np.where(at >= 0, calls.parent[at], -1)
        inner = (at >= 0) & np.isin(calls.kind[at], (PYTHON, LAUNCH)) & (up >= 0)
        if not inner.any():
            break
        at = np.where(inner, up, at)
    is_found = (at >= 0) & np.isin(calls.kind[at], (OPERATOR, REGION))
    return np.where(is_found, at, launch).astype(np.int32)


class _Numbered(dict[str, int]):
    """Texts, each with its number: asking for a new one adds it."""

    def __init__(self, first: Iterable[str] = ()) -> None:
        super().__init__((text, index) for index, text in enumerate(first))
        self._next = count(len(self)).__next__

    def __missing__(self, text: str) -> int:
        number = self[text] = self._next()
        return number


def _interval(event: dict[str, Any]) -> tuple[float, float] | None:
    """Start and duration in microseconds; None where they are none that a clock can show."""
    try:
        start, duration = event["ts"], event.get("dur", 0.0)
        if type(start) is not float or type(duration) is not float:
            start, duration = float(start), float(duration)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return (start, duration) if abs(start) < _LATEST and abs(duration) < _LATEST else None


def _args(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    return cast("dict[str, Any]", args) if type(args) is dict else {}


def _whole(value: Any) -> int:
    """A number that names something; -1: none. Some releases write it as text."""
    if type(value) is int:
        return value if 0 <= value < _LARGEST_ID else -1
    if type(value) is str and value.isdecimal() and len(value) < 19:
        return int(value)
    return -1


def _small(value: Any) -> int:
    found = _whole(value)
    return found if found < 1 << 31 else -1


def _optional(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 31 else None


def _floats(column: array[Any]) -> npt.NDArray[np.float64]:
    return np.frombuffer(column, dtype=np.float64)


def _ints(column: array[Any]) -> npt.NDArray[np.int32]:
    return np.frombuffer(column, dtype=np.int32)


def _longs(column: array[Any]) -> npt.NDArray[np.int64]:
    return np.frombuffer(column, dtype=np.int64)
