"""Reading and writing at indices: only the rows taken are read, only those hit are written."""

from __future__ import annotations

from math import prod

from opscope.ops.call import Call, bits_of, bytes_of, shape_of, size_of
from opscope.ops.cost import EXACT, ZERO, Cost
from opscope.ops.kinds import kind


def _indices(call: Call) -> int:
    """Bytes of everything that says where."""
    found = [a.type for a in call.inputs if a.name.partition("[")[0] in ("index", "indices", "1", "mask")]
    return sum(map(bytes_of, found))


@kind("gather")
def gather(call: Call) -> Cost:
    """index, index_select, gather, take: as much is read as the result holds."""
    return Cost(read=bytes_of(call.out()) + _indices(call), how=ZERO)


@kind("embedding")
def embedding(call: Call) -> Cost:
    return Cost(read=bytes_of(call.out()) + bytes_of(call.tensor("indices")), how=ZERO)


@kind("embedding_backward")
def embedding_backward(call: Call) -> Cost:
    """Every row of the gradient is added to the row of its word."""
    return Cost(other=call.size("grad"))


@kind("embedding_bag")
def embedding_bag(call: Call) -> Cost:
    """Rows taken and added up (or averaged, or compared)."""
    weight, indices = call.tensor("weight"), call.tensor("indices")
    row = prod(call.shape("weight")[1:])
    taken = size_of(indices) * row
    weighted = call.given("per_sample_weights")
    mean = call.attr("mode") in (1, "mean")
    read = taken * bits_of(weight.dtype) // 8 + bytes_of(indices) + bytes_of(call.given("offsets"))
    return Cost(
        other=taken * (2 if weighted is not None else 1) + (size_of(call.out()) if mean else 0),
        read=read + bytes_of(weighted),
    )


@kind("embedding_bag_backward")
def embedding_bag_backward(call: Call) -> Cost:
    """The gradient of a bag is added to each of its rows."""
    return Cost(other=call.size("indices") * call.shape("grad")[-1])


def _scattered(call: Call, adds: bool) -> Cost:
    source, index = call.given("src"), call.given("index")
    listed = call.listed("index")
    # scatter has an index for each element; index_add one for each row, index_put one for each row or element.
    if source is None or (index is not None and len(shape_of(index)) == len(shape_of(source)) > 1):
        hits = size_of(index) if index is not None else max(map(size_of, listed))
    else:
        hits = max(map(size_of, (source, *((index,) if index is not None else listed))))
    each = bits_of(call.out().dtype) // 8
    where = bytes_of(index) + sum(map(bytes_of, listed))
    read = where + (hits * each if source is not None else 0)
    how = EXACT if adds else ZERO
    if call.in_place:
        return Cost(other=hits if adds else 0, read=read + (hits * each if adds else 0), written=hits * each, how=how)
    return Cost(other=hits if adds else 0, read=read + bytes_of(call.first()), how=how)


@kind("scatter")
def scatter(call: Call) -> Cost:
    return _scattered(call, adds=call.attr("accumulate", False) is True or call.attr("reduce") is not None)


@kind("scatter_add")
def scatter_add(call: Call) -> Cost:
    return _scattered(call, adds=True)


@kind("scatter/by-updates")
def scatter_by_updates(call: Call) -> Cost:
    """A copy, into which the updates are written; a reduction adds (or compares) them."""
    hits, first = call.size("src"), bytes_of(call.first())
    read = bytes_of(call.tensor("index")) + bytes_of(call.tensor("src")) + first
    adds = call.attr("reduction", "none") != "none"
    return Cost(other=hits if adds else 0, read=read, how=EXACT if adds else ZERO)


@kind("nonzero")
def nonzero(call: Call) -> Cost:
    """Every element is looked at."""
    return Cost(other=call.taken())


@kind("nll_loss")
def nll_loss(call: Call) -> Cost:
    """The log-probability of each target: taken, weighted, added."""
    targets = call.tensor("target")
    scores = call.first()
    read = size_of(targets) * bits_of(scores.dtype) // 8 + bytes_of(targets)
    return Cost(other=2 * size_of(targets), read=read)


@kind("nll_loss_backward")
def nll_loss_backward(call: Call) -> Cost:
    """Zeros, and one number for each target."""
    targets = call.tensor("target")
    return Cost(other=size_of(targets), read=bytes_of(call.tensor("grad")) + bytes_of(targets))
