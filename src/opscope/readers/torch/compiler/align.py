"""Which operator of Dynamo's graph each operator below it was made from, where the log does not say so.

AOTAutograd runs Dynamo's graph operator by operator, so what each becomes lies in one piece, in the same order; its
backward runs in the opposite order. Lines are kept. What remains open is where on one line a piece ends: what is read,
the types and the names of operators decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opscope.ir.pools import Dim
from opscope.readers.torch.names import base_name

from .decompositions import Parts, parts_of
from .flow import LIKE_VIEWS, Flow, flow_of
from .printed import Place, Printed, names_in

_LONGEST_PIECE = 40
_MOST_STATES = 6
_WRONG, _BACK, _FAR = 2.0, 4.0, 0.002
_FOREIGN, _LOST, _ODD = (
    2.0,
    4.0,
    0.7,
)  # reads what no source made; a function left nothing; an operator not of a function
_WINDOW = 24  # operators
_SURE = 0.05  # a second way that costs so little more is as good
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
_HANDING_ON = _PASSING | {"add", "iadd", "sub", "isub", "radd", "add_", "split", "chunk", "unbind"}
_MOST_REACHED = 64
_SAME = {"iadd": "add", "imul": "mul", "isub": "sub", "itruediv": "div", "truediv": "div", "matmul": "mm"}


@dataclass
class Upper:
    """Dynamo's graph: its operators in order, by the values that they make and read."""

    flow: Flow
    names: list[str]
    places: list[Place | None]
    short: list[str]  # `torch.nn.functional.relu` as `relu`
    held: list[frozenset[str]]  # the inputs that each reads, by the names that they have below
    reads: list[frozenset[int]] = field(default_factory=list["frozenset[int]"])  # positions
    reach: list[frozenset[int]] = field(
        default_factory=list["frozenset[int]"]
    )  # the same through what hands on gradients
    parts: list[Parts | None] = field(default_factory=list["Parts | None"])
    runs: list[tuple[int, int]] = field(default_factory=list["tuple[int, int]"])  # on one line
    by_place: dict[Place | None, list[int]] = field(default_factory=dict["Place | None", "list[int]"])


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
    position = {node.name: i for i, node in enumerate(nodes)}
    found.reads = [frozenset(position[r] for r in flow.reads[n.name] if r in position) for n in nodes]
    found.reach = _reach(found)
    found.parts = [parts_of(n.target.rpartition(".")[2]) for n in nodes]
    found.runs = list(_runs(found.places))
    for i, place in enumerate(found.places):
        found.by_place.setdefault(place, []).append(i)
    return found


def _reach(above: Upper) -> list[frozenset[int]]:
    """What an operator may get the gradient of its result from: a sum hands it on to both sides."""
    found: list[frozenset[int]] = []
    for i, reads in enumerate(above.reads):
        all_of = set(reads)
        for read in sorted(reads, reverse=True):
            if read < i and above.short[read] in _HANDING_ON and len(all_of) < _MOST_REACHED:
                all_of |= found[read]
        found.append(frozenset(all_of))
    return found


@dataclass
class Aligned:
    """By name of an operator: the position of the one that it was made from."""

    made: dict[str, int] = field(default_factory=dict[str, int])
    doubtful: set[str] = field(default_factory=set[str])  # another position is nearly as good


def forward(above: Upper, lower: Printed, flow: Flow, late: set[str]) -> Aligned:
    nodes = [node for node in lower.nodes if node.name not in late and node.target != "get_attr"]
    runs = list(_runs([node.place for node in nodes]))
    matched: list[int] = []
    at = 0
    for start, _ in runs:
        place = nodes[start].place
        found = next((r for r in range(at, len(above.runs)) if above.places[above.runs[r][0]] == place), -1)
        matched.append(found)
        at = found if found >= 0 else at
    result = Aligned()
    known: dict[object, tuple[list[int], bool]] = {}
    early = {node.name: i for i, node in enumerate(nodes)}
    for number, (start, end) in enumerate(runs):
        first = matched[number]
        if first < 0:
            continue
        after = next((r for r in matched[number + 1 :] if r > first), len(above.runs))
        place = nodes[start].place
        ops = [i for r in range(first, after) for i in range(*above.runs[r]) if above.places[i] == place]
        names = [node.name for node in nodes[start:end]]
        piece = _Pieces(above, flow, ops, names, early, result.made)
        key = piece.key()
        if key not in known:
            known[key] = piece.cut()
        positions, is_sure = known[key]
        for name, position in zip(names, positions, strict=True):
            result.made[name] = ops[position]
        if not is_sure:
            result.doubtful.update(names)
    for node in nodes:  # what is kept for backward is of what made it
        if base_name(flow.op[node.name]) in ("aten.alias", "aten.detach") and node.name in result.made:
            result.made[node.name] = result.made.get(flow.reads[node.name][0], result.made[node.name])
    return result


class _Pieces:
    """The operators of one line, cut into one piece for each of Dynamo's operators there."""

    def __init__(
        self,
        above: Upper,
        flow: Flow,
        ops: list[int],
        names: list[str],
        early: Mapping[str, int],
        made: Mapping[str, int],
    ) -> None:
        self.above, self.flow, self.ops, self.names = above, flow, ops, names
        self.here = {name: i for i, name in enumerate(names)}
        self.reads = [[self.here.get(read, -1) for read in flow.reads[name]] for name in names]
        self.held = [frozenset(read for read in flow.reads[name] if read in flow.inputs) for name in names]
        # What was made on lines before is read by what reads its source.
        self.outside = [
            frozenset(made[read] for read in flow.reads[name] if read not in self.here and read in made)
            for name in names
        ]
        # The last of these operators that reads each; those of later lines count as the end.
        self.last = [
            max((self.here.get(r, len(names)) for r in flow.readers.get(name, ()) if r in early), default=-1)
            for name in names
        ]
        self.op = [base_name(flow.op[name]).rpartition(".")[2] for name in names]
        self.is_view = [f"aten.{op}" in LIKE_VIEWS or op == "getitem" for op in self.op]
        self.wanted = [above.flow.type(above.names[i]) for i in ops]
        self.types = [flow.type(name) for name in names]
        self.order = {position: k for k, position in enumerate(ops)}
        self.came: list[list[int]] = []

    def key(self) -> object:
        """Lines that run again and again are cut in the same way."""
        inputs = sorted(
            {read for held in self.held for read in held} | {r for i in self.ops for r in self.above.held[i]}
        )
        number: dict[object, int] = {name: i for i, name in enumerate(inputs)}
        for outside in (*self.outside, *(self.above.reads[i] for i in self.ops)):
            for position in sorted(outside):
                number.setdefault(position, len(number))
        return (
            tuple(self.above.short[i] for i in self.ops),
            tuple(tuple(sorted(number[read] for read in self.above.held[i])) for i in self.ops),
            tuple(tuple(sorted(number[p] for p in self.above.reads[i])) for i in self.ops),
            tuple(self.op),
            tuple(map(tuple, self.reads)),
            tuple(tuple(sorted(number[read] for read in held)) for held in self.held),
            tuple(tuple(sorted(number[p] for p in outside)) for outside in self.outside),
            tuple(self.last),
            tuple(map(str, self.types)),
        )

    def cut(self) -> tuple[list[int], bool]:
        """For each operator, the position in `ops`, and whether nothing speaks against it."""
        count, length = len(self.ops), len(self.names)
        if count == 1:
            return [0] * length, True
        longest = _LONGEST_PIECE if count * length * min(length, _LONGEST_PIECE) < 60_000 else 16
        if count * length * longest > 2_000_000:
            return [min(i * count // length, count - 1) for i in range(length)], False
        best: list[float] = [float("inf")] * (length + 1)
        best[0] = 0.0
        for k in range(count):
            fresh, source = [float("inf")] * (length + 1), [0] * (length + 1)
            for start in range(length + 1):
                if best[start] == float("inf"):
                    continue
                stop = length if k == count - 1 else min(length, start + longest)
                foreign = self.foreign(k, start, stop)
                for end in range(start, stop + 1):
                    if k == count - 1 and end != length:
                        continue
                    cost = best[start] + self.cost(k, start, end) + _FOREIGN * foreign[end - start]
                    if cost < fresh[end]:
                        fresh[end], source[end] = cost, start
            best = fresh
            self.came.append(source)
        result = [0] * length
        end = length
        for k in range(count - 1, -1, -1):
            start = self.came[k][end]
            result[start:end] = [k] * (end - start)
            end = start
        return result, best[length] < _ODD

    def foreign(self, k: int, start: int, stop: int) -> list[int]:
        """How many operators of a piece from `start` on read what its source does not read, by where it ends."""
        inside, outside = self.sources(k, start)
        found, count = [0], 0
        for at in range(start, stop):
            wrong = any(0 <= read < start and read not in inside for read in self.reads[at])
            count += wrong or not self.outside[at] <= outside
            found.append(count)
        return found

    def sources(self, k: int, start: int) -> tuple[set[int], set[int]]:
        """What the source of a piece reads: operators on this line, and positions. Of what left nothing behind, what
        that read."""
        inside, outside = set[int](), set[int]()
        ends = [start]
        for j in range(k - 1, -1, -1):
            ends.append(self.came[j][ends[-1]])
        seen = set[int]()
        todo = list(self.above.reads[self.ops[k]])
        while todo:
            position = todo.pop()
            if position in seen:
                continue
            seen.add(position)
            j = self.order.get(position, k)
            if j < k:
                begin, end = ends[k - j], ends[k - j - 1]
                inside.update(range(begin, end))
                if begin < end and not all(self.is_view[begin:end]):
                    continue
            else:
                outside.add(position)
            if len(seen) < _WINDOW:
                todo += self.above.reads[position]
        return inside, outside

    def cost(self, k: int, start: int, end: int) -> float:
        i = self.ops[k]
        short, held, parts = self.above.short[i], self.above.held[i], self.above.parts[i]
        if start == end:
            may = short in _PASSING or (parts is not None and parts.may_be_none)
            return (0.3 if may else _LOST if parts is not None else 1.5) + 1.5 * len(held)
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
            cost -= 0.5
        views = self.is_view[start:end]
        if parts is not None:
            odd = [n for n, view in zip(names, views, strict=True) if not view and n not in parts.forward]
            return cost + _ODD * len(odd) + (_ODD if all(views) and parts.forward else 0.0)
        moves = all(view or name == "clone" for name, view in zip(names, views, strict=True))
        return cost + (0.4 if moves != (short in _VIEWING) else 0.0)


def backward(
    above: Upper,
    lower: Printed,
    flow: Flow,
    late: set[str],
    made: Mapping[str, int],
    gradients: Mapping[str, str],
) -> Aligned:
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

    path = _Path(above, flow, late)
    kept: list[str] = []
    about: dict[str, list[set[int]]] = {}
    for node in lower.nodes:
        if node.name not in late or node.place not in above.by_place:
            continue
        if _is_kept(flow, node.name, late):
            kept.append(node.name)
            continue
        about[node.name] = list(hints(node.name))
        if node.place is not None or about[node.name]:
            path.step(node.name, above.by_place[node.place], about[node.name])
    found = path.end()
    _give_views(above, flow, late, found.made)
    found.doubtful = _doubtful(above, flow, late, found.made, about)
    for name in reversed(kept):  # it is of whatever reads it
        reader = next((r for r in flow.readers.get(name, ()) if r in found.made), None)
        if reader is not None:
            found.made[name] = found.made[reader]
            if reader in found.doubtful:
                found.doubtful.add(name)
    return found


def _give_views(above: Upper, flow: Flow, late: set[str], made: dict[str, int]) -> None:
    """A gradient goes from one operator to the next in the shape of what the next has made: views before are of the
    one, views behind of the other."""
    views = [name for name in made if base_name(flow.op[name]) in LIKE_VIEWS]
    order = sorted(views, key=flow.order.__getitem__)
    for name in reversed(order):
        readers = {made[r] for r in flow.readers.get(name, ()) if r in made and not is_sum(flow, r, late)}
        if len(readers) != 1 or made[name] in readers:
            continue
        (reader,) = readers
        apart = made[name] not in {made[read] for read in flow.reads[name] if read in made}
        is_next = reader in above.reach[made[name]]
        if apart or (is_next and has_other_shape(flow, name, above.flow.type(above.names[reader]))):
            made[name] = reader
    moved = set[str]()
    for name in order:
        read = flow.reads[name][0] if flow.reads[name] else ""
        position = made[read] if read in moved else made[name]
        if made.get(read) != position or len(above.reads[position]) != 1:
            continue
        (source,) = above.reads[position]
        wanted = above.flow.type(above.names[source])
        if (
            wanted is not None
            and not has_other_shape(flow, read, wanted)
            and has_other_shape(flow, name, wanted)
            and flow.nodes[name].place == above.places[source]
        ):
            made[name] = source
            moved.add(name)
        elif read in moved and above.places[position] == flow.nodes[name].place:
            made[name] = position
            moved.add(name)


def _doubtful(
    above: Upper, flow: Flow, late: set[str], made: Mapping[str, int], hints: Mapping[str, list[set[int]]]
) -> set[str]:
    """Backward operators that do not do what the one does from which they seem to be: together with what is beside
    them there."""
    found: set[str] = set()
    group: list[str] = []
    speaks, last = False, -1
    for name in sorted(made, key=flow.order.__getitem__):
        if name not in late or is_sum(flow, name, late):
            continue
        position = made[name]
        if position != last:
            found.update(group if speaks else ())
            group, speaks, last = [], False, position
        group.append(name)
        op = base_name(flow.op[name])
        parts = above.parts[position]
        wanted = above.flow.type(above.names[position])
        if parts is not None and op not in LIKE_VIEWS and op != "operator.getitem":
            speaks = speaks or op.rpartition(".")[2] not in parts.backward
        speaks = speaks or any(position not in hint for hint in hints.get(name, ()))
        for read in flow.reads[name]:
            other = made.get(read, position) if read in late and not is_sum(flow, read, late) else position
            if other != position:
                speaks = speaks or position not in above.reach[other] or has_other_shape(flow, read, wanted)
    found.update(group if speaks else ())
    return found


def has_other_shape(flow: Flow, name: str, wanted: tuple[str, tuple[Dim, ...]] | None) -> bool:
    found = flow.type(name)
    return found is not None and wanted is not None and found[1] != wanted[1]


def is_sum(flow: Flow, name: str, late: set[str]) -> bool:
    """Of two gradients of one value, which torch adds up between the backward operators."""
    read = flow.reads[name]
    return flow.op[name] == "aten.add.Tensor" and len(read) == 2 and all(other in late for other in read)


def _is_kept(flow: Flow, name: str, late: set[str]) -> bool:
    """Another name for a value that the forward pass has kept: `alias`, or an alias of that."""
    if base_name(flow.op[name]) not in ("aten.alias", "aten.detach"):
        return False
    return all(read not in late or _is_kept(flow, read, late) for read in flow.reads[name])


class _Path:
    """The cheapest way through the operators, from the last to the first."""

    def __init__(self, above: Upper, flow: Flow, late: set[str]) -> None:
        self.above, self.flow, self.late = above, flow, late
        # position -> (cost, entry in `trail`)
        self.states: dict[int, tuple[float, int]] = {len(above.names): (0.0, -1)}
        self.trail: list[tuple[str, int, int]] = []  # (operator, position, entry before)

    def step(self, name: str, places: Sequence[int], hints: Sequence[set[int]]) -> None:
        fitting = [p for p in places if all(p in hint for hint in hints)] if hints else []
        fresh: dict[int, tuple[float, int]] = {}
        rows = sorted(self.states.items(), reverse=True)
        back, back_entry = min(state for _, state in rows)
        near, near_entry, i = float("inf"), -1, 0
        op = base_name(self.flow.op[name])
        is_view = op in LIKE_VIEWS or op == "operator.getitem"
        short = op.rpartition(".")[2]
        reads = {read for read in self.flow.reads[name] if not self.is_sum(read)}
        for position in reversed(fitting or places):
            while i < len(rows) and rows[i][0] >= position:
                cost = rows[i][1][0] + rows[i][0] * _FAR
                if cost < near:
                    near, near_entry = cost, rows[i][1][1]
                i += 1
            own = _WRONG * sum(position not in hint for hint in hints)
            parts = self.above.parts[position]
            if parts is not None and not is_view and short not in parts.backward:
                own += _ODD
            ahead = near - position * _FAR
            cost, entry = (ahead, near_entry) if ahead <= back + _BACK else (back + _BACK, back_entry)
            own += _ODD * self.foreign(position, entry, reads)
            self.trail.append((name, position, entry))
            fresh[position] = (cost + own, len(self.trail) - 1)
        best = sorted(fresh.items(), key=lambda row: row[1][0])[:_MOST_STATES]
        self.states = dict(best)

    def is_sum(self, name: str) -> bool:
        """Of two gradients of one value."""
        return name in self.late and is_sum(self.flow, name, self.late)

    def foreign(self, position: int, entry: int, reads: set[str]) -> int:
        """How many of the last gradients that are read are of operators which do not read this one, or are no gradient
        of what it makes: that has the shape of it."""
        count = 0
        wanted = self.above.flow.type(self.above.names[position]) if reads else None
        for _ in range(_WINDOW):
            if entry < 0 or not reads:
                break
            name, other, entry = self.trail[entry]
            if name in reads and other != position:
                reads = reads - {name}
                count += position not in self.above.reach[other] or has_other_shape(self.flow, name, wanted)
        return count

    def end(self) -> Aligned:
        found = Aligned()
        _, entry = min(self.states.values())
        while entry >= 0:
            name, position, entry = self.trail[entry]
            found.made[name] = position
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
