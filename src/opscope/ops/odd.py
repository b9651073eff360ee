"""Operators on tensors that are not one block of numbers: nested and sparse ones.

A graph gives them a type like all others; what that cannot say is in the attributes NESTED and SPARSE. A nested
operator does to each part what the plain one does to a tensor of that size. A sparse one works on the numbers that are
stored: for products that is exact, for the rest an estimate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from opscope.ir import dtypes
from opscope.ir.attributes import NESTED, SPARSE
from opscope.ir.pools import Type

from .call import Call, NotKnown
from .cost import ESTIMATED, EXACT, UNKNOWN, ZERO, Argument, Cost

Count = Callable[[Sequence[Argument], Sequence[Type], Mapping[str, Any]], Cost]
_MOST_PARTS = 1 << 16


def _table(attrs: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    whole: Any = attrs[name]
    found: Any = whole.get(where, {})
    return cast("Mapping[str, Any]", found)


# -- nested --------------------------------------------------------------------------------------------


def nested(count: Count, inputs: Sequence[Argument], outputs: Sequence[Type], attrs: Mapping[str, Any]) -> Cost:
    """The sum over the parts, each counted as an operator on plain tensors."""
    given, made = _table(attrs, NESTED, "arguments"), _table(attrs, NESTED, "results")
    lists: list[list[Any]] = [list(sizes) for sizes in (*given.values(), *made.values())]
    lengths = {len(sizes) for sizes in lists}
    if len(lengths) != 1 or (number := lengths.pop()) > _MOST_PARTS:
        return Cost(how=UNKNOWN)
    plain = {name: value for name, value in attrs.items() if name != NESTED}
    alike = Counter(tuple(tuple(map(int, sizes[part])) for sizes in lists) for part in range(number))
    total = Cost(read=0, written=0, how=ZERO)
    for sizes, times in alike.items():
        by_name = dict(zip(given, sizes, strict=False))
        by_slot = dict(zip(made, sizes[len(given) :], strict=True))
        part = count(
            [Argument(a.name, _sized(a.type, by_name.get(a.name))) for a in inputs],
            [type_ for slot, t in enumerate(outputs) if (type_ := _sized(t, by_slot.get(str(slot)))) is not None],
            plain,
        )
        if part.how == UNKNOWN:
            return part
        total = _plus(total, part, times)
    return total


def _sized(type_: Type | None, shape: tuple[int, ...] | None) -> Type | None:
    return type_ if type_ is None or shape is None else Type(type_.dtype, shape)


def _plus(total: Cost, part: Cost, times: int) -> Cost:
    order = (ZERO, EXACT, ESTIMATED)
    moved = [None if x is None or y is None else x + y * times for x, y in zip(total[2:4], part[2:4], strict=True)]
    causal = part.macs if part.causal is None else part.causal
    before = total.macs if total.causal is None else total.causal
    told = total.causal is not None or part.causal is not None
    return Cost(
        total.macs + part.macs * times,
        total.other + part.other * times,
        moved[0],
        moved[1],
        max(total.how, part.how, key=order.index),
        None if not told else -1 if causal < 0 or before < 0 else before + causal * times,
        total.wire + part.wire * times,
    )


# -- sparse --------------------------------------------------------------------------------------------

_PRODUCTS = ("matmul", "linear", "sampled_matmul", "reduced_matmul")  # kinds that are counted by entries


def sparse(kind: str, rule: Callable[[Call], Cost], call: Call) -> Cost:
    """By the numbers that are stored. Where it is not known how many, only what costs nothing is known."""
    given, made = _table(call.attrs, SPARSE, "arguments"), _table(call.attrs, SPARSE, "results")
    if kind in _PRODUCTS:
        return product(kind, call, given)
    if None in given.values() or None in made.values():
        cost = rule(call)
        return cost if cost.how == ZERO and not cost.read else Cost(how=UNKNOWN)
    shapes = {a.type.shape for a in call.inputs if a.type is not None and a.name in given}
    shapes |= {t.shape for slot, t in enumerate(call.outputs) if str(slot) in made}
    most = max([*given.values(), *made.values()])

    def stored(type_: Type | None, entries: int | None) -> Type | None:
        if type_ is None or (entries is None and type_.shape not in shapes):
            return type_
        return Type(dtypes.of_element(type_.dtype), (most if entries is None else entries,))

    inputs = [Argument(a.name, stored(a.type, given.get(a.name))) for a in call.inputs]
    outputs = [stored(t, made.get(str(slot))) or t for slot, t in enumerate(call.outputs)]
    cost = rule(Call(inputs, outputs, call.attrs, call.places, call.lists, call.in_place, call.only_computed))
    # Which bytes are moved besides the numbers (their positions) is not known.
    return cost._replace(how=cost.how if cost.how == ZERO else ESTIMATED, read=cost.read or None, written=cost.written)


def product(kind: str, call: Call, entries: Mapping[str, Any]) -> Cost:
    """Every number that is stored is multiplied with a row, or a column, of the other matrix."""
    if kind == "sampled_matmul":  # only those results that the sparse one has
        count = _entries(call, "bias", entries)
        if count is None:
            raise NotKnown("entries")
        return Cost(macs=count * call.shape("a")[-1], other=0 if call.attr("beta", 1) == 0 else count)
    first, second = ("x", "weight") if kind == "linear" else ("a", "b")
    a, b = _entries(call, first, entries), _entries(call, second, entries)
    if (a is None) == (b is None):  # both: how many meet is not known; none: only what is added is sparse
        raise NotKnown("how many entries meet")
    left, right = call.shape(first), call.shape(second)
    if a is not None:
        wide = right[-2] if kind == "linear" else right[-1] if len(right) > 1 else 1
        macs = a * wide
    else:
        rows = 1
        for size in left[-2:-1] if kind != "linear" else left[:-1]:
            rows *= size
        macs = int(b or 0) * rows
    added = 0
    if call.given("bias") is not None and call.attr("beta", 1) != 0:
        added = sum(_size(t) for t in call.outputs[:1])
    return Cost(macs=macs, other=added, how=ESTIMATED if kind == "reduced_matmul" else EXACT)


def _entries(call: Call, role: str, entries: Mapping[str, Any]) -> int | None:
    """How many numbers the tensor in that role stores; None for one that is not sparse."""
    for name in call.names(role):
        if name in entries:
            count = entries[name]
            if not isinstance(count, int) or count < 0:
                raise NotKnown("entries")
            return count
    return None


def _size(type_: Type) -> int:
    if type_.elements is None:
        raise NotKnown("a size")
    return type_.elements
