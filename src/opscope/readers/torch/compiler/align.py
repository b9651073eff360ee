"""Which operator of Dynamo's graph each operator below it was made from, where the log does not say so.

AOTAutograd runs Dynamo's graph operator by operator, so what each becomes lies in one piece, in the same order; its
backward runs in the opposite order. Lines are kept. What remains open is where on one line a piece ends: what is read,
the types and the names of operators decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opscope.readers.torch.names import base_name

from .flow import LIKE_VIEWS, Flow, flow_of
from .printed import Place, Printed, names_in

_LONGEST_PIECE = 40
_MOST_STATES = 6
_WRONG, _BACK, _FAR = 2.0, 4.0, 0.002
# Dynamo's operators that often leave nothing behind.
_PASSING = frozenset(
    ("getattr", "getitem", "size", "contiguous", "dropout", "to", "float", "detach", "view", "reshape", "expand",
     "flatten", "type_as", "requires_grad_", "_log_api_usage_once", "unflatten", "squeeze", "unsqueeze", "identity",
     "dim", "numel")
)  # fmt: skip
_VIEWING = frozenset(
    ("view", "reshape", "transpose", "permute", "flatten", "unsqueeze", "squeeze", "expand", "getitem", "chunk",
     "split", "t", "T", "mT", "unflatten", "narrow", "select", "unbind", "contiguous", "movedim", "swapaxes",
     "repeat_interleave")
)  # fmt: skip
_SAME = {"iadd": "add", "imul": "mul", "isub": "sub", "itruediv": "div", "truediv": "div", "matmul": "mm"}


@dataclass
class Upper:
    """Dynamo's graph: its operators in order, by the values that they make and read."""

    flow: Flow
    names: list[str]
    places: list[Place | None]
    short: list[str]  # `torch.nn.functional.relu` as `relu`
    held: list[frozenset[str]]  # the inputs that each reads, by the names that they have below
    runs: list[tuple[int, int]] = field(default_factory=list["tuple[int, int]"])  # on one line
    by_place: dict[Place, list[int]] = field(default_factory=dict[Place, "list[int]"])


def upper(printed: Printed, below: Mapping[str, str]) -> Upper:
    """`below` gives the name that an input has in the graphs that are made from it."""
    flow = flow_of(printed)
    nodes = [node for node in printed.nodes if node.target != "get_attr"]
    held = [
        frozenset(
            below[name]
            for argument in node.arguments
            for name in (printed.aliases.get(n, n) for n in names_in(argument.text))
            if name in below
        )
        for node in nodes
    ]
    found = Upper(flow, [n.name for n in nodes], [n.place for n in nodes], [_short(n.target) for n in nodes], held)
    found.runs = list(_runs(found.places))
    for i, place in enumerate(found.places):
        if place is not None:
            found.by_place.setdefault(place, []).append(i)
    return found


def forward(above: Upper, lower: Printed, flow: Flow, late: set[str]) -> dict[str, int]:
    """By name of an operator: the position of the one that it was made from."""
    nodes = [node for node in lower.nodes if node.name not in late and node.target != "get_attr"]
    runs = list(_runs([node.place for node in nodes]))
    matched: list[int] = []
    at = 0
    for start, _ in runs:
        place = nodes[start].place
        found = next((r for r in range(at, len(above.runs)) if above.places[above.runs[r][0]] == place), -1)
        matched.append(found)
        at = found if found >= 0 else at
    result: dict[str, int] = {}
    known: dict[object, list[int]] = {}
    early = {node.name: i for i, node in enumerate(nodes)}
    for number, (start, end) in enumerate(runs):
        first = matched[number]
        if first < 0:
            continue
        after = next((r for r in matched[number + 1 :] if r > first), len(above.runs))
        place = nodes[start].place
        ops = [i for r in range(first, after) for i in range(*above.runs[r]) if above.places[i] == place]
        names = [node.name for node in nodes[start:end]]
        piece = _Pieces(above, flow, ops, names, early)
        key = piece.key()
        if key not in known:
            known[key] = piece.cut()
        for name, position in zip(names, known[key], strict=True):
            result[name] = ops[position]
    return result


class _Pieces:
    """The operators of one line, cut into one piece for each of Dynamo's operators there."""

    def __init__(self, above: Upper, flow: Flow, ops: list[int], names: list[str], early: Mapping[str, int]) -> None:
        self.above, self.flow, self.ops, self.names = above, flow, ops, names
        self.here = {name: i for i, name in enumerate(names)}
        self.reads = [[self.here.get(read, -1) for read in flow.reads[name]] for name in names]
        self.held = [frozenset(read for read in flow.reads[name] if read in flow.inputs) for name in names]
        # The last of these operators that reads each; those of later lines count as the end.
        self.last = [
            max((self.here.get(r, len(names)) for r in flow.readers.get(name, ()) if r in early), default=-1)
            for name in names
        ]
        self.op = [base_name(flow.op[name]).rpartition(".")[2] for name in names]
        self.wanted = [above.flow.type(above.names[i]) for i in ops]
        self.types = [flow.type(name) for name in names]

    def key(self) -> object:
        """Lines that run again and again are cut in the same way."""
        inputs = sorted(
            {read for held in self.held for read in held} | {r for i in self.ops for r in self.above.held[i]}
        )
        number = {name: i for i, name in enumerate(inputs)}
        return (
            tuple(self.above.short[i] for i in self.ops),
            tuple(tuple(sorted(number[read] for read in self.above.held[i])) for i in self.ops),
            tuple(self.op),
            tuple(map(tuple, self.reads)),
            tuple(tuple(sorted(number[read] for read in held)) for held in self.held),
            tuple(self.last),
            tuple(map(str, self.types)),
        )

    def cut(self) -> list[int]:
        """For each operator, the position in `ops`."""
        count, length = len(self.ops), len(self.names)
        if count == 1:
            return [0] * length
        longest = _LONGEST_PIECE if count * length * min(length, _LONGEST_PIECE) < 60_000 else 16
        if count * length * longest > 2_000_000:
            return [min(i * count // length, count - 1) for i in range(length)]
        best: list[float] = [float("inf")] * (length + 1)
        best[0] = 0.0
        came: list[list[int]] = []
        for k in range(count):
            fresh, source = [float("inf")] * (length + 1), [0] * (length + 1)
            for start in range(length + 1):
                if best[start] == float("inf"):
                    continue
                stop = length if k == count - 1 else min(length, start + longest)
                for end in range(start, stop + 1):
                    if end - start > longest and end != length:
                        continue
                    cost = best[start] + self.cost(k, start, end)
                    if cost < fresh[end]:
                        fresh[end], source[end] = cost, start
            best = fresh
            came.append(source)
        result = [0] * length
        end = length
        for k in range(count - 1, -1, -1):
            start = came[k][end]
            result[start:end] = [k] * (end - start)
            end = start
        return result

    def cost(self, k: int, start: int, end: int) -> float:
        i = self.ops[k]
        short, held = self.above.short[i], self.above.held[i]
        if start == end:
            return (0.3 if short in _PASSING else 1.5) + 1.5 * len(held)
        read: set[str] = set()
        cost = 0.0
        for at in range(start, end):
            read |= self.held[at]
        cost += 1.5 * len(read ^ held)
        if self.wanted[k] is not None:  # one value of a piece is read outside: its result
            results = [at for at in range(start, end) if self.last[at] >= end]
            cost += 1.0 * max(0, len(results) - 1)
            if all(self.types[at] not in (None, self.wanted[k]) for at in results or [end - 1]):
                cost += 1.0
        names = self.op[start:end]
        if short in names or f"{short}_" in names or short.rstrip("_") in names:
            return cost - 0.5 + 0.1 * (len(names) - 1)
        if all(f"aten.{name}" in LIKE_VIEWS for name in names) != (short in _VIEWING):
            cost += 0.4
        return cost


def backward(
    above: Upper,
    lower: Printed,
    flow: Flow,
    late: set[str],
    made: Mapping[str, int],
    gradients: Mapping[str, str],
) -> dict[str, int]:
    """The same for backward operators, from the modules' last operator to the first. `made` is what `forward` gave;
    `gradients` are results that are the gradient of an input."""
    readers: dict[str, set[int]] = {}
    for name, position in made.items():
        for read in flow.reads[name]:
            readers.setdefault(read, set()).add(position)
    for position, held in enumerate(above.held):
        for name in held:
            readers.setdefault(name, set()).add(position)
    wanted = {name: readers.get(of, set()) for name, of in gradients.items()}

    def hints(name: str) -> Iterable[set[int]]:
        for other in flow.reads[name]:
            read = flow.base(other) if other in late else other
            if read not in late and (read in made or read in readers):
                yield readers.get(read, set()) | ({made[read]} if read in made else set())
        if wanted.get(name):
            yield wanted[name]

    path = _Path(len(above.names))
    for node in lower.nodes:
        if node.name in late and node.place is not None and node.place in above.by_place:
            path.step(node.name, above.by_place[node.place], list(hints(node.name)))
    return path.end()


class _Path:
    """The cheapest way through the operators, from the last to the first."""

    def __init__(self, count: int) -> None:
        self.states: dict[int, tuple[float, int]] = {count: (0.0, -1)}  # position -> (cost, entry in `trail`)
        self.trail: list[tuple[str, int, int]] = []  # (operator, position, entry before)

    def step(self, name: str, places: Sequence[int], hints: Sequence[set[int]]) -> None:
        fitting = [p for p in places if all(p in hint for hint in hints)] if hints else []
        fresh: dict[int, tuple[float, int]] = {}
        rows = sorted(self.states.items(), reverse=True)
        back, back_entry = min(state for _, state in rows)
        near, near_entry, i = float("inf"), -1, 0
        for position in reversed(fitting or places):
            while i < len(rows) and rows[i][0] >= position:
                cost = rows[i][1][0] + rows[i][0] * _FAR
                if cost < near:
                    near, near_entry = cost, rows[i][1][1]
                i += 1
            own = _WRONG * sum(position not in hint for hint in hints)
            ahead = near - position * _FAR
            cost, entry = (ahead, near_entry) if ahead <= back + _BACK else (back + _BACK, back_entry)
            self.trail.append((name, position, entry))
            fresh[position] = (cost + own, len(self.trail) - 1)
        best = sorted(fresh.items(), key=lambda row: row[1][0])[:_MOST_STATES]
        self.states = dict(best)

    def end(self) -> dict[str, int]:
        found: dict[str, int] = {}
        _, entry = min(self.states.values())
        while entry >= 0:
            name, position, entry = self.trail[entry]
            found[name] = position
        return found


def _runs(places: Sequence[Place | None]) -> Iterable[tuple[int, int]]:
    start = 0
    for i in range(1, len(places) + 1):
        if i == len(places) or places[i] != places[start]:
            yield start, i
            start = i


def _short(target: str) -> str:
    name = target.rpartition(".")[2]
    return _SAME.get(name, name)
