"""Puts what the watcher saw into the stacks of a dump, in the form that Jittor's own dumps have.

Jittor gives either modules (level 2) or source lines (level 3). We record lines and know the modules, so a
stack here has both, outermost first: an entry with a type is a module and is at the line that calls
it, an entry without one is a line. We add what Jittor does not write: to entries `function` (of the line),
`kind` (module, optimizer, init) and `call` (which call of that module it is, from 0); to nodes `step` (which
training step, from 1) and `pending` (it was made before the recording and ran in it). Variables also have
`replaces` where one was written over another (see session.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Any, NamedTuple

from opscope.tracers.frames import OWN
from opscope.tracers.steps import step_ends

from .watch import Call, Watcher

Dump = dict[str, Any]
Entry = dict[str, Any]

Numbered = tuple[Call, int]  # a call, and which call of that module by its caller it is

_DISPATCH = frozenset({"__call__", "__hooked_call__", "__half_call__"})


class _Line(NamedTuple):
    file: str
    line: int
    function: str
    calls: list[Numbered]  # the modules that this line calls


class Rewriter:
    """Gives every node of a dump its new stack."""

    def __init__(self, data: Dump, watcher: Watcher, steps: list[tuple[int, int]], base: int, began: int) -> None:
        self._nodes: dict[int, Any] = data["node_data"]
        self._watcher = watcher
        self._base = base  # how many frames lie below the one that records
        self._began = began  # nodes up to this number were made before
        self._steps = step_ends(steps)
        self._made = sorted((key, number_of(node)) for key, node in self._nodes.items())

    def rewrite(self) -> None:
        chains: dict[int, list[int]] = {}
        for key, node in self._nodes.items():
            if number_of(node) <= self._began:
                node["pending"] = True
            else:
                chains[key] = self._chain(self._forward_of(key, count_grads(node["stacks"])))
        numbers = self._numbers({call for chain in chains.values() for call in chain})
        for key, chain in chains.items():
            node = self._nodes[key]
            calls = [(self._watcher.calls[call], numbers[call]) for call in chain]
            grads = count_grads(node["stacks"])
            lines = node["stacks"][grads:]
            node["stacks"] = node["stacks"][:grads] + (entries(lines, calls, self._base) if lines else [])
            step = self._step(number_of(node))
            if step and not (calls and calls[0][0].kind == "init"):
                node["step"] = step

    def _chain(self, number: int) -> list[int]:
        """The calls in which the node of this number was made, outermost first."""
        call = self._watcher.call_at(number) if number > self._began else -1
        chain: list[int] = []
        while call >= 0:
            chain.append(call)
            call = self._watcher.calls[call].parent
        return chain[::-1]

    def _numbers(self, used: set[int]) -> dict[int, int]:
        """How often each call's module had been called before in the same place, calls that made nothing aside.
        Outside every module, each training step counts from zero."""
        counts: Counter[Any] = Counter()
        numbers: dict[int, int] = {}
        for index in sorted(used):
            call = self._watcher.calls[index]
            key = (call.parent, self._step(call.start) if call.parent < 0 else 0, call.steps)
            numbers[index] = counts[key]
            counts[key] += 1
        return numbers

    def _forward_of(self, key: int, grads: int) -> int:
        """The number of the node whose (so many times) gradient this is, or -1 where that cannot be said."""
        for _ in range(grads):
            target = self._nodes[key]["attrs"].get("grad_op_id") if key in self._nodes else None
            if target is None:
                return -1
            key = int(target)
        if key in self._nodes:
            return number_of(self._nodes[key])
        # It never ran, so it is not in the dump. Its neighbours show it, if they were made in the same call.
        place = bisect_left(self._made, (key, 0))
        if 0 < place < len(self._made):
            before, after = self._made[place - 1][1], self._made[place][1]
            if before > self._began and self._watcher.call_at(before) == self._watcher.call_at(after):
                return before
        return -1

    def _step(self, number: int) -> int:
        """Which training step the node was made in; 0 after the last one, and where there is only one."""
        place = bisect_left(self._steps, number)
        return place + 1 if place < len(self._steps) else 0


def number_of(node: Any) -> int:
    """The number that Jittor gave the node when it was made."""
    return int(node["attrs"]["__id"])


def count_grads(stack: list[Entry]) -> int:
    """How many `grad` entries a stack begins with: 1 for a gradient, 2 for a gradient of a gradient."""
    return next((place for place, entry in enumerate(stack) if entry["type"] != "Grad"), len(stack))


def entries(raw: list[Entry], chain: list[Numbered], base: int) -> list[Entry]:
    """One stack: the lines that Jittor recorded with the calls that the watcher saw."""
    if not _is_lines(raw):
        # Recorded at level 2, as the user's own code asked for: modules, which we know better, or at most
        # three lines where there is no module.
        inside = [
            entry
            for call, number in chain
            for entry in _call_entries(call, number, _Line(call.file, call.line, call.function, []))
        ]
        return inside or [entry for entry in raw if not entry["type"] and not _is_hidden(_line(entry))]
    lines = [_line(entry) for entry in raw]
    for call, number in chain:
        if 0 < call.depth <= len(lines):
            lines[call.depth - 1].calls.append((call, number))
    shown: list[_Line] = []
    for line in lines[base:]:
        if not _is_hidden(line):
            shown.append(line)
        elif line.calls and shown:
            shown[-1].calls.extend(line.calls)
        elif line.calls:
            shown.append(_Line("", 0, "", line.calls))
    stack: list[Entry] = []
    for line in shown:
        for call, number in line.calls:
            stack.extend(_call_entries(call, number, line))
        if not line.calls:
            place = {"file_path": line.file, "lineno": line.line, "function": line.function}
            stack.append({"name": f"{line.file}:{line.line}", "type": "", **place})
    return stack


def show_lines(data: Dump, base: int) -> None:
    """Without a watcher: the lines as Jittor recorded them, without the ones below and inside opscope."""
    for node in data["node_data"].values():
        raw: list[Entry] = node["stacks"]
        grads = count_grads(raw)
        if _is_lines(raw[grads:]):
            lines = [entry for entry in raw[grads + base :] if not _is_hidden(_line(entry))]
            node["stacks"] = raw[:grads] + lines


def _line(entry: Entry) -> _Line:
    return _Line(entry["file_path"], entry["lineno"], entry["type"], [])


def _call_entries(call: Call, number: int, line: _Line) -> list[Entry]:
    """One entry for the module, after one for each container on the way to it (a ModuleList), without a line."""
    found: list[Entry] = []
    for name, cls in call.steps:
        found.append({"name": name, "type": cls, "file_path": "", "lineno": 0, "kind": call.kind})
    found[-1] |= {"file_path": line.file, "lineno": line.line, "function": line.function, "call": number}
    return found


def _is_lines(raw: list[Entry]) -> bool:
    return all(entry["type"] and entry["name"] == f"{entry['file_path']}:{entry['lineno']}" for entry in raw)


def _is_hidden(line: _Line) -> bool:
    """opscope's own lines, Python's imports, and Jittor's way from a module's call to its execute()."""
    return line.file.startswith((OWN, "<frozen ")) or (
        line.function in _DISPATCH and line.file.endswith("/jittor/__init__.py")
    )
