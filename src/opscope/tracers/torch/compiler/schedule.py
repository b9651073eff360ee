"""What Inductor's scheduler knows of every launch: the operators in it, why it was not fused with its neighbours, and
the candidates that autotuning tried."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from opscope.errors import one_line

_OP = re.compile(r"op\d+")  # Inductor's names of what it schedules; what was fused is op3_op4
_MOST_REASONS = 200_000
_MOST_NEIGHBOURS = 64  # launches that share a buffer: what one buffer says beyond that, nobody reads


class Launch(NamedTuple):
    kernel: str
    nodes: list[str]  # of the post-grad graph
    parts: list[str]  # the scheduler's names for what is in it
    reads: frozenset[str]
    writes: frozenset[str]
    template: str  # the kind of template that it was made from; "": from none


class Tried(NamedTuple):
    """What autotuning compared for one product or convolution."""

    operator: str | None  # of the post-grad graph
    inputs: frozenset[str]  # buffers
    rows: list[tuple[str, float]]


class Schedule:
    """Of one graph that is being lowered."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self._reasons: dict[tuple[str, str], tuple[str, tuple[Any, ...]]] = {}
        self._tried: list[Tried] = []

    def not_fused(self, why: Any, reason: str, args: tuple[Any, ...]) -> None:
        if len(self._reasons) < _MOST_REASONS:
            self._reasons[str(why.name1), str(why.name2)] = (reason, args)

    def launched(self, scheduled: Any, kernel: str, is_extern: bool) -> None:
        """`scheduled`: the scheduler's nodes of a kernel, or Inductor's node of a library call."""
        template = ""
        if is_extern:
            origin = getattr(scheduled, "origin_node", None)
            nodes = [origin.name] if origin is not None else _last(scheduled)
            parts = [_called(scheduled, "get_operation_name")]
            reads = _buffers(getattr(scheduled, "inputs", ()))
            writes = frozenset(map(str, [_called(scheduled, "get_name")]))
        else:
            inside = [part for part in scheduled if getattr(part, "node", None) is not None]
            nodes = _names(part.node for part in inside)
            kinds = [type(part.node).__name__ for part in inside]
            template = next((kind.removesuffix("Buffer") for kind in kinds if "Template" in kind), "")
            parts = [str(part.get_name()) for part in inside]
            reads = frozenset(dep.name for part in inside for dep in part.read_writes.reads)
            writes = frozenset(dep.name for part in inside for dep in part.read_writes.writes)
        self.launches.append(Launch(kernel, nodes, [part for part in parts if part], reads - writes, writes, template))

    def tried(self, operator: str | None, inputs: Iterable[Any], timings: Mapping[Any, float]) -> None:
        """Autotuning compared these; the times are in milliseconds. `inputs` are Inductor's nodes."""
        rows = [(str(getattr(choice, "name", choice)), float(time) / 1e3) for choice, time in timings.items()]
        self._tried.append(Tried(operator, _buffers(inputs), sorted(rows, key=lambda row: row[1])))

    # -- the record -----------------------------------------------------------------------------------

    def text(self) -> str:
        return json.dumps(
            {
                "launches": [
                    {
                        "kernel": launch.kernel,
                        "nodes": launch.nodes,
                        "buffers": sorted(launch.writes),
                        **({"template": launch.template} if launch.template else {}),
                        **({"choices": rows} if (rows := self._tried_for(launch)) else {}),
                    }
                    for launch in self.launches
                ],
                "why": self._why(),
            }
        )

    def _tried_for(self, launch: Launch) -> list[tuple[str, float]]:
        """By the operator, or, where the choice was put off until kernels were fused, by what the operator reads."""
        for one in self._tried:
            if one.operator in launch.nodes:
                return one.rows
        if launch.template or launch.kernel.startswith("extern_kernels."):
            for one in self._tried:
                if one.inputs and one.inputs <= launch.reads:
                    return one.rows
        return []

    def _why(self) -> list[tuple[int, int, str]]:
        """The last reason that was given for each two launches that share a buffer."""
        place = {op: i for i, launch in enumerate(self.launches) for part in launch.parts for op in _OP.findall(part)}
        found: dict[tuple[int, int], str] = {}
        near = self._neighbours()
        for (one, other), (reason, args) in self._reasons.items():
            a, b = (place.get(ops[0]) if (ops := _OP.findall(name)) else None for name in (one, other))
            if a is None or b is None or a == b or (min(a, b), max(a, b)) not in near:
                continue
            try:
                said = reason % args if args else reason
            except (TypeError, ValueError):
                said = reason
            found[min(a, b), max(a, b)] = one_line(said)[:300]
        return [(a, b, reason) for (a, b), reason in sorted(found.items())]

    def _neighbours(self) -> set[tuple[int, int]]:
        users: dict[str, list[int]] = {}
        for i, launch in enumerate(self.launches):
            for buffer in launch.reads | launch.writes:
                users.setdefault(buffer, []).append(i)
        return {
            (a, b)
            for used in users.values()
            for k, a in enumerate(used[:_MOST_NEIGHBOURS])
            for b in used[k + 1 : _MOST_NEIGHBOURS]
        }


def _buffers(nodes: Iterable[Any]) -> frozenset[str]:
    """What Inductor's nodes are in memory."""
    return frozenset(str(name) for node in nodes if (name := _called(node, "get_name")))


def _names(nodes: Iterable[Any]) -> list[str]:
    """The operators of the graph that Inductor's nodes are made of, each once."""
    found = [
        (origin.name, origin)
        for node in nodes
        for origin in getattr(node, "origins", ())
        if getattr(origin, "op", "").startswith("call")
    ]
    return list(dict.fromkeys(name for name, _ in found))


def _last(node: Any) -> list[str]:
    """The operator that a library call is: its origins hold also what was computed for it on the way, before it."""
    origins = [origin for origin in getattr(node, "origins", ()) if getattr(origin, "op", "").startswith("call")]
    computing = [origin for origin in origins if getattr(origin.target, "__name__", "") != "getitem"] or origins
    if not computing or len({id(origin.graph) for origin in computing}) > 1:
        return [origin.name for origin in computing]
    names = {origin.name for origin in computing}
    return [other.name for other in computing[0].graph.nodes if other.name in names][-1:]


def _called(node: Any, method: str) -> Any:
    try:
        return getattr(node, method)()
    except Exception:  # a node of a kind that has none
        return None
