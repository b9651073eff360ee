"""`opscope stats --style megengine`: three tables with bars, shares and running sums, for any framework.

By MegEngine's convention one multiply-accumulate is one operation, and element-wise operations are added to it. A table
may have a million rows: it is made column by column, each when it is asked for, and there are no objects for rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from opscope.analysis.costs.stats import GraphStats
from opscope.ir import ROLE_ID, Pools
from opscope.ir.dtypes import bits_of
from opscope.ir.rows import Rows
from opscope.ops import canonical

from .rows import ACTIVATIONS, FLOPS, PARAMS, Row, TotalStats, sizeof_fmt, summary, table

_LONGEST_BAR = 20
_KEPT = 1 << 14  # texts of each kind
_NO_MEAN = ("mean", "std")
Shape = tuple[int, ...]
Column = Callable[[], Iterable[Any]]


class Table(NamedTuple):
    """Columns by name, which may be asked for again and again."""

    title: str
    shown: Sequence[str]
    columns: Mapping[str, Column]
    last: Row  # the sums, as they are shown
    length: int
    dims: int  # the sum of elements, if these are counted
    total: int  # the sum of bytes or operations

    def rows(self) -> Iterator[Row]:
        """For programs: one dictionary for each row."""
        names = list(self.columns)
        for values in zip(*(column() for column in self.columns.values()), strict=True):
            yield dict(zip(names, values, strict=True))
        yield self.last

    def lines(self) -> Iterator[str]:
        """For people, as MegEngine prints them."""
        yield f"{self.title} stats:"
        text = lru_cache(_KEPT)(str)
        cells = [[name, *map(text, self.columns[name]()), str(self.last.get(name, ""))] for name in self.shown]
        widths = [max(map(len, column)) for column in cells]
        rule = "  ".join("-" * width for width in widths)
        form = "  ".join(f"%-{width}s" for width in widths)
        yield rule
        yield from ((form % row).rstrip() for row in zip(*cells, strict=True))
        yield rule


class Tables(NamedTuple):
    """What `opscope stats --style megengine` shows."""

    stats: GraphStats
    params: Table
    flops: Table
    activations: Table

    @property
    def total(self) -> TotalStats:
        params, activations = self.params, self.activations
        return TotalStats(params.total, params.dims, self.flops.total, activations.total, activations.dims)

    @property
    def tables(self) -> dict[str, Table]:
        return {"params": self.params, "flops": self.flops, "activations": self.activations}

    def missing(self) -> Row:
        """For programs: what is not counted."""
        if not self.stats.unknown_ops and not self.stats.gaps:
            return {}
        return {key: figure for key, figure in self.stats.totals().items() if key in ("unknown_ops", "gaps")}

    def lines(self) -> Iterator[str]:
        stats = self.stats
        for found in self.tables.values():
            yield from found.lines()
        yield "summary"
        items = {"#ops": stats.graph.n_nodes, "#params": self.params.length, **summary(self.total)}
        yield table([("item", "value"), *items.items()])
        if stats.unknown_ops:
            yield "not counted: " + ", ".join(f"{op} ×{count}" for op, count in stats.unknown_ops.items())
        for gap in stats.gaps:
            yield f"not counted: {gap.sentence(stats.graph.pools)}"
        if stats.total.at_least:
            yield "so the totals are lower bounds"


def tables_of(stats: GraphStats, by: str = "module") -> Tables:
    """The tables; `by` says what the rows of the FLOPs are: module, op, kind or node."""
    return Tables(stats, _params(stats), _flops(stats, by), _activations(stats))


# -- columns ----------------------------------------------------------------------------------------


def _sized(title: str, shown: Sequence[str], columns: dict[str, Column], dims: str, sizes: Sequence[int]) -> Table:
    """A table of tensors: `sizes` are their bytes, the column `dims` has their elements."""
    elements, total = sum(columns[dims]()), sum(sizes)
    parts = _parts(sizes, total, "B")
    columns |= {"size": parts["text"], "size_cum": parts["sum"], "ratio": parts["ratio"]}
    columns |= {"percentage": parts["percentage"], "size_bar": parts["bar"]}
    last = {"name": "total", dims: elements, "size": sizeof_fmt(total)}
    return Table(title, shown, columns, last, len(sizes), elements, total)


def _parts(figures: Sequence[int], total: int, unit: str) -> dict[str, Column]:
    """Each figure as text, what they add up to so far, and its share of the total, as a bar too."""
    most = max(figures, default=0)

    def ratio(figure: int) -> float:
        return figure / total if total else 0.0

    @lru_cache(_KEPT)
    def text(figure: int) -> str:
        return sizeof_fmt(figure, unit)

    @lru_cache(_KEPT)
    def percentage(figure: int) -> str:
        return f"{ratio(figure) * 100:.2f}%"

    @lru_cache(_KEPT)
    def bar(figure: int) -> str:
        return "#" * (int(figure / most * _LONGEST_BAR) if most else 0)

    return {
        "text": lambda: map(text, figures),
        "sum": lambda: (sizeof_fmt(figure, unit) for figure in accumulate(figures)),
        "ratio": lambda: map(ratio, figures),
        "percentage": lambda: map(percentage, figures),
        "bar": lambda: map(bar, figures),
    }


def _column(values: Sequence[Any]) -> Column:
    return lambda: values


def _params(stats: GraphStats) -> Table:
    graph, strings = stats.graph, stats.graph.pools.strings
    shape_of = _shapes_of(graph.pools)
    shapes = {
        strings[int(graph.value_name[value])]: shape_of(int(graph.value_type[value]))
        for value in np.flatnonzero(graph.value_role == ROLE_ID["parameter"]).tolist()
    }
    found = [parameter for parameter in stats.parameters.each if parameter.elements is not None]
    bits = [bits_of(parameter.dtype) or 0 for parameter in found]
    elements = [parameter.elements or 0 for parameter in found]
    sizes = [
        count * nbits // 8 if parameter.bytes is None else parameter.bytes
        for parameter, count, nbits in zip(found, elements, bits, strict=True)
    ]
    nothing = [""] * len(found)
    columns: dict[str, Column] = {
        "name": _column([parameter.names[0] if parameter.names else "parameter" for parameter in found]),
        "dtype": _column([parameter.dtype for parameter in found]),
        "shape": _column([(shapes.get(parameter.names[0]) if parameter.names else None) or () for parameter in found]),
        "mean": _column(nothing),
        "std": _column(nothing),
        "param_dim": _column(elements),
        "nbits": _column(bits),
    }
    return _sized("param", [name for name in PARAMS if name not in _NO_MEAN], columns, "param_dim", sizes)


def _flops(stats: GraphStats, by: str) -> Table:
    graph, costs, read = stats.graph, stats.costs, Rows(stats.graph)
    shapes = _Shapes(graph, read)
    number: dict[str, int] = {}  # key -> its row
    names: list[str] = []
    classes: list[str] = []
    inputs: list[Sequence[Shape]] = []
    last: list[int] = []  # of each row, its last node
    flops: list[int] = []
    key_of = _keys(stats, read, by)
    for node in np.flatnonzero((costs.macs + costs.other > 0) & ~costs.unknown).tolist():
        key, name, class_name = key_of(node)
        row = number.setdefault(key, len(names))
        if row == len(names):
            names.append(name)
            classes.append(class_name)
            inputs.append(shapes.of(read.used(node)))
            last.append(node)
            flops.append(0)
        last[row] = node
        flops[row] += int(costs.macs[node]) + int(costs.other[node])
    outputs = [shapes.of(read.made(node)[-1:]) for node in last]
    total = sum(flops)
    parts = _parts(flops, total, "OPs")
    columns: dict[str, Column] = {
        "name": _column(names),
        "class_name": _column(classes),
        "input_shapes": _column(inputs),
        "flops_num": _column(flops),
        "output_shapes": _column(outputs),
        "flops_cum": parts["sum"],
        "ratio": parts["ratio"],
        "percentage": parts["percentage"],
        "bar": parts["bar"],
        "flops": parts["text"],
    }
    channels = sum(shape[1] for row in outputs for shape in row if len(shape) > 1)
    last_row = {"name": "total", "flops": sizeof_fmt(total, "OPs"), "output_shapes": channels}
    return Table("flops", FLOPS, columns, last_row, len(names), 0, total)


def _keys(stats: GraphStats, read: Rows, by: str) -> Callable[[int], tuple[str, str, str]]:
    """What says which row a node belongs to, with the name and the class of that row."""
    scopes = stats.graph.pools.scopes

    @lru_cache(_KEPT)
    def kind(op: str) -> str:
        return canonical(stats.framework, op)

    def key_of(node: int) -> tuple[str, str, str]:
        op = read.strings[read.op[node]]
        if by == "op":
            return op, op, kind(op)
        if by == "kind":
            return kind(op), kind(op), ""
        scope = read.scope[node]
        path = read.path(scope) if by != "node" else ""
        if not path:  # outside of all modules every operator is its own row; names may repeat
            name = read.strings[read.name[node]] or op
            return f"{name}\0{node}", name, op
        name = path.replace("/", ".")
        return name, name, scopes[scope].cls

    return key_of


def _activations(stats: GraphStats) -> Table:
    """What operators make in memory: a view makes nothing."""
    graph, costs, read = stats.graph, stats.costs, Rows(stats.graph)
    types, shape_of = graph.pools.types, _shapes_of(graph.pools)

    @lru_cache(_KEPT)
    def sized(type_: int) -> tuple[int, int] | None:
        """Elements, and the bits of each."""
        count, bits = types[type_].elements, bits_of(types[type_].dtype)
        return (count, bits) if count and bits is not None else None

    def op_of(node: int) -> str:
        return read.strings[read.op[node]]

    def name_of(node: int, value: int) -> str:
        named = read.strings[read.value_name[value]] or read.strings[read.name[node]]
        return named or f"{read.path(read.scope[node]).replace('/', '.')}.{op_of(node)}".lstrip(".")

    pairs = ((node, value) for node in np.flatnonzero(~costs.view).tolist() for value in read.made(node))
    found = [(node, value) for node, value in pairs if sized(read.value_type[value]) and not costs.inside[value]]
    made: list[int] = [read.value_type[value] for _, value in found]

    def each(figure: Callable[[int], Any]) -> Column:
        return lambda: map(lru_cache(_KEPT)(figure), made)

    def size(type_: int) -> int:
        count, bits = sized(type_) or (0, 0)
        return -(-count * bits // 8)

    columns: dict[str, Column] = {
        "name": lambda: (name_of(node, value) for node, value in found),
        "class_name": lambda: (op_of(node) for node, _ in found),
        "dtype": each(lambda type_: types[type_].dtype),
        "shape": each(lambda type_: shape_of(type_) or ()),
        "nbits": each(lambda type_: (sized(type_) or (0, 0))[1]),
        "act_dim": each(lambda type_: (sized(type_) or (0, 0))[0]),
    }
    return _sized("activations", ACTIVATIONS, columns, "act_dim", list(map(size, made)))


def _shapes_of(pools: Pools) -> Callable[[int], Any]:
    @lru_cache(_KEPT)
    def shape_of(type_: int) -> Any:
        shape = pools.types[type_].shape
        return None if shape is None else tuple(shape)

    return shape_of


class _Shapes:
    """The shapes of the activations among some values, where these are known."""

    def __init__(self, graph: Any, read: Rows) -> None:
        self._read, self._shape_of = read, _shapes_of(graph.pools)
        self._lists: dict[tuple[int, ...], Sequence[Shape]] = {}  # by types: the same ones again and again

    def of(self, values: list[int]) -> Sequence[Shape]:
        read = self._read
        types = tuple([read.value_type[value] for value in values if value >= 0 and read.role(value) == "activation"])
        found = self._lists.get(types)
        if found is None:
            shapes = map(self._shape_of, types)
            found = self._lists[types] = _Listed(
                shape for shape in shapes if shape is not None and all(isinstance(size, int) for size in shape)
            )
        return found


class _Listed(tuple[Shape, ...]):
    """Spelled as a list, and kept as a key."""

    __slots__ = ()

    def __str__(self) -> str:
        return str(list(self))
