"""Weights without a graph, as a capture: a tree of modules with their tensors.

Each tensor is a parameter that one operator `tensor` reads, so that it stands in its module. Nothing flows between
them, and the capture says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.errors import BadInput
from opscope.ir import Capture, GraphBuilder, Origin, Pools, Stage, Table, column
from opscope.ir.columns import frozen
from opscope.ir.measurements import Figures, figures_table
from opscope.ir.pools import clean
from opscope.ir.tally import figures_of
from opscope.readers.source import Options

FRAMEWORK = "weights"
OP = "tensor"
MOST_TENSORS = 2_000_000
LARGEST_DIM = 1 << 62
_BUFFERS = re.compile(r"(?:^|[._/])(?:running_(?:mean|var)|num_batches_tracked|_mean|_variance|inv_freq|position_ids)$")
_STATES = re.compile(
    r"optim|(?:^|[._/])(?:exp_avg|exp_avg_sq|momentum|moment[12]|master_weights|ema_state)", re.IGNORECASE
)
_PARTS = re.compile(r"[./]")

Piece = bytes | npt.NDArray[Any]


class Tensor(NamedTuple):
    """One tensor of a file. `within`: the keys around it, which are no part of its name."""

    name: str
    dtype: str  # as in ir/dtypes.py; "" or a name that is not there where the format has others
    shape: tuple[int, ...] | None
    size: int | None  # bytes
    within: tuple[str, ...] = ()
    storage: Hashable = None  # equal for those that share memory
    file: str = ""  # the file it lies in, where there are several
    at: int | None = None  # where it begins there
    attrs: Mapping[str, Any] = {}
    pieces: Callable[[], Iterator[Piece]] | None = None  # its numbers, for who asks
    is_big_endian: bool = False


def capture_of(
    tensors: Sequence[Tensor],
    *,
    format: str,
    version: str = "",
    metadata: str = "",
    warnings: Iterable[str] = (),
    classes: Mapping[str, str] | None = None,
    options: Options,
) -> Capture:
    """`classes`: what a module is, by its path, where the file says it."""
    if len(tensors) > MOST_TENSORS:
        raise BadInput(f"{len(tensors):,} tensors; {MOST_TENSORS:,} are the most")
    pools = Pools()
    b = GraphBuilder(pools)
    first: dict[Hashable, int] = {}
    values: list[int] = []
    for tensor in tensors:
        *path, _ = names = [part for part in _PARTS.split(tensor.name) if part] or ["?"]
        scope, at = 0, ""
        for part in (*tensor.within, *path[:100]):
            at = f"{at}.{part}" if at else part
            scope = pools.scope(scope, part, (classes or {}).get(at, ""))
        name = "/".join((*tensor.within, tensor.name))
        value = b.value(pools.type(tensor.dtype, tensor.shape), name=name, role=role_of(name))
        b.node(OP, [value], args=[names[-1]], name=name, scope=scope, attrs=tensor.attrs)
        if tensor.storage is not None:
            b.set_storage(value, first.setdefault(tensor.storage, value))
        values.append(value)
    said = [
        "weights without a graph: these are the tensors of the file, by module. For a graph, capture the model in its "
        "framework with opscope.trace(model, *inputs); to see these weights on it: --onto CAPTURE"
    ]
    stage = Stage("weights", b.freeze(), listings={"native": metadata} if metadata else {})
    capture = Capture(pools, [stage], origin=Origin(format, FRAMEWORK, clean(version)[:100], "file"))
    capture.warnings += [*said, *warnings]
    if values:
        capture.tables["weights in the file"] = _places(tensors, values)
    if options.visit is not None:
        options.visit(tensors)
    if options.weights:
        add_statistics(capture, dict(zip(values, tensors, strict=True)))
    return capture


def add_statistics(capture: Capture, tensors: Mapping[int, Tensor]) -> None:
    """The figures of each, by value; those that share memory are read once."""
    found: dict[int, Figures] = {}
    known: dict[Hashable, Figures | None] = {}
    for value, tensor in tensors.items():
        key = (tensor.storage, tensor.shape) if tensor.storage is not None else value
        if key not in known:
            known[key] = figures(tensor)
        one = known[key]
        if one is not None:
            found[value] = one
    if found:
        capture.add(figures_table(0, found))
    if len(found) < len(tensors):
        capture.warnings.append(f"{len(tensors) - len(found):,} of {len(tensors):,} tensors have no statistics")


def figures(tensor: Tensor) -> Figures | None:
    if tensor.pieces is None or tensor.shape is None:
        return None
    dtype = tensor.attrs.get("read as", tensor.dtype)
    count = 1
    for size in tensor.shape:
        count *= size
    return figures_of(tensor.pieces(), dtype, count, big_endian=tensor.is_big_endian)


def role_of(name: str) -> str:
    if _STATES.search(name):
        return "state"
    return "buffer" if _BUFFERS.search(name) else "parameter"


def _places(tensors: Sequence[Tensor], values: Sequence[int]) -> Table:
    sizes, places = [t.size for t in tensors], [t.at for t in tensors]
    columns = {
        "size": column(np.array([s or 0 for s in sizes], dtype=np.int64), "B", [s is not None for s in sizes]),
        "offset": column(np.array([a or 0 for a in places], dtype=np.int64), "", [a is not None for a in places]),
        "file": column([clean(t.file) for t in tensors], known=[bool(t.file) for t in tensors]),
    }
    return Table(0, "value", frozen(values), columns)
