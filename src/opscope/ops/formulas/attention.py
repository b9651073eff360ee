"""Attention, counted densely: masked and causal positions are computed like all others.

Forward: Q·Kᵀ and P·V. Backward: dV, dP, dQ, dK, and Q·Kᵀ again, because the fused kernels do not keep it.
Element-wise, for each score: scale 1, softmax 5, mask 1; in the backward 3 to make P again, 3 for its gradient.

Next to the dense count there is the causal one: what is left if nothing is computed that a causal mask hides.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from opscope.ir.attributes import MASK_SHOWS
from opscope.ops.call import Call, NotKnown, Shape, size_of
from opscope.ops.cost import ESTIMATED, NOT_TOLD, Cost
from opscope.ops.kinds import kind


class _Sizes(NamedTuple):
    scores: int
    key: int  # the width of queries and keys
    value: int
    queries: int  # of one head
    keys: int


def _sizes(call: Call, heads_last: bool = False) -> _Sizes:
    """From [batch…, heads, length, width]; groups of queries may share the heads of keys and values."""
    q, k, v = call.shape("q"), call.shape("k"), call.shape("v")
    if heads_last:  # [batch, length, heads, width]
        q, k, v = _swap(q), _swap(k), _swap(v)
    if min(len(q), len(k), len(v)) < 2:
        raise NotKnown("lengths")
    return _Sizes(prod(q[:-1]) * k[-2], q[-1], v[-1], q[-2], k[-2])


def _swap(shape: Shape) -> Shape:
    if len(shape) < 3:
        raise NotKnown("heads")
    return (*shape[:-3], shape[-2], shape[-3], shape[-1])


def _forward(sizes: _Sizes, masked: bool, shown: int | None) -> Cost:
    width = sizes.key + sizes.value
    return Cost(sizes.scores * width, sizes.scores * (7 if masked else 6), causal=_causal(sizes, shown, width))


def _backward(sizes: _Sizes, rows: int, shown: int | None) -> Cost:
    # dV and dP are as wide as the values; dQ, dK and the scores as wide as the keys.
    width = 3 * sizes.key + 2 * sizes.value
    return Cost(sizes.scores * width, 6 * sizes.scores + 2 * rows, causal=_causal(sizes, shown, width))


def _causal(sizes: _Sizes, shown: int | None, width: int) -> int | None:
    if shown is None or shown == NOT_TOLD:
        return shown
    return sizes.scores // (sizes.queries * sizes.keys) * shown * width if sizes.scores else 0


def _shown(call: Call, sizes: _Sizes) -> int | None:
    """How many scores of one head a causal mask shows; None where no causal mask hides any."""
    if call.attr("window_size_left") is not None or call.attr("window_size_right") is not None:
        return NOT_TOLD  # it sees less than a causal mask shows
    if call.attr("is_causal") is True or call.attr("causal") is True or call.attr("custom_mask_type") in (1, 2):
        # The first query sees the first key, the second one two, …
        whole = min(sizes.queries, sizes.keys)
        return whole * (whole + 1) // 2 + (sizes.queries - whole) * sizes.keys
    if call.given("mask") is None:
        return None
    told = call.attr(MASK_SHOWS)
    return NOT_TOLD if not isinstance(told, int) or isinstance(told, bool) else told or None


@kind("attention")
def attention(call: Call) -> Cost:
    sizes = _sizes(call)
    return _forward(sizes, call.given("mask") is not None or bool(call.attr("is_causal")), _shown(call, sizes))


@kind("attention_backward")
def attention_backward(call: Call) -> Cost:
    sizes = _sizes(call)
    return _backward(sizes, call.size("grad"), _shown(call, sizes))


@kind("attention/heads-last")
def attention_heads_last(call: Call) -> Cost:
    """The layout of the flash-attention kernels. Of packed sequences only the sum of the lengths is known."""
    if len(call.shape("q")) < 4:
        raise NotKnown("the lengths of packed sequences")
    sizes = _sizes(call, heads_last=True)
    return _forward(sizes, bool(call.attr("is_causal")), _shown_last(call, sizes))


@kind("attention_backward/heads-last")
def attention_backward_heads_last(call: Call) -> Cost:
    if len(call.shape("q")) < 4:
        raise NotKnown("the lengths of packed sequences")
    sizes = _sizes(call, heads_last=True)
    return _backward(sizes, call.size("grad"), _shown_last(call, sizes))


def _shown_last(call: Call, sizes: _Sizes) -> int | None:
    """Releases of the flash-attention kernels differ in where the diagonal of a matrix that is not square begins."""
    shown = _shown(call, sizes)
    return shown if shown is None or sizes.queries == sizes.keys else NOT_TOLD


@kind("flex_attention")
def flex_attention(call: Call) -> Cost:
    """Blocks that its mask leaves out are not computed, and how many is not known: the dense count is the most."""
    return _forward(_sizes(call), True, NOT_TOLD)._replace(how=ESTIMATED)


@kind("flex_attention_backward")
def flex_attention_backward(call: Call) -> Cost:
    return _backward(_sizes(call), call.size("q"), NOT_TOLD)._replace(how=ESTIMATED)


@kind("attention/by-heads")
def attention_by_heads(call: Call) -> Cost:
    """[batch, length, heads · width], where attributes say how many heads; or heads as a dimension of their own. Keys
    of earlier calls (`past`) come before those of this one."""
    q, k, v = (_by_heads(call, role) for role in ("q", "k", "v"))
    past = call.given("past")
    before = call.shape("past")[-2] if past is not None else 0
    keys = k[2] + before
    scores = q[0] * q[1] * q[2] * keys
    sizes = _Sizes(scores, q[3], v[3], q[2], keys)
    causal = bool(call.attr("causal", 0))
    masked = causal or call.given("mask") is not None
    shown = None
    if causal:
        shown = sum(min(before + i + 1, keys) for i in range(min(q[2], keys))) + max(q[2] - keys, 0) * keys
    elif masked:
        shown = NOT_TOLD
    return _forward(sizes, masked, shown)


def _by_heads(call: Call, role: str) -> Shape:
    """[batch, heads, length, width]."""
    shape = call.shape(role)
    if len(shape) == 4:
        return shape
    heads = call.attr("q_heads" if role == "q" else "kv_heads", call.attr("q_heads"))
    if len(shape) != 3 or not isinstance(heads, int) or heads < 1:
        raise NotKnown("heads")
    return shape[0], heads, shape[1], shape[2] // heads


@kind("attention/projecting")
def attention_projecting(call: Call) -> Cost:
    """Projects its input to queries, keys and values with one matrix, then attends."""
    x, weight, heads = call.shape("x"), call.shape("in_weight"), call.attr("q_heads")
    if len(x) != 3 or len(weight) != 2 or not isinstance(heads, int) or heads < 1:
        raise NotKnown("heads")
    rows, width = prod(x[:-1]), size_of(call.out()) // max(prod(x[:-1]), 1)
    before = call.shape("past")[-2] if call.given("past") is not None else 0
    scores = x[0] * heads * x[1] * (x[1] + before)
    key = (weight[1] - width) // 2 // heads
    masked = call.given("mask") is not None or bool(call.attr("causal", 0))
    inner = _forward(_Sizes(scores, key, width // heads, x[1], x[1] + before), masked, NOT_TOLD if masked else None)
    projected = rows * prod(weight)
    causal = NOT_TOLD if masked else None
    return Cost(inner.macs + projected, inner.other + rows * weight[1], causal=causal)


class _Layer(NamedTuple):
    """The sizes of one attention layer."""

    queries: int  # over the whole batch
    keys: int  # over the whole batch
    length: int  # keys of one sample
    width: int
    heads: int


def _layer(call: Call, heads: int, time_first: bool = False) -> _Layer:
    q = call.shape("q")
    k = call.shape("k") if call.given("k") is not None else q
    if len(q) not in (2, 3):
        raise NotKnown("lengths")
    length = k[0] if len(k) == 2 or time_first else k[1]
    return _Layer(prod(q[:-1]), prod(k[:-1]), length, q[-1], heads)


def _projected(layer: _Layer) -> Cost:
    """Project to queries, keys and values, attend, project back; with biases."""
    square = layer.width * layer.width
    macs = 2 * layer.queries * square + 2 * layer.keys * square + 2 * layer.queries * layer.length * layer.width
    bias = (2 * layer.queries + 2 * layer.keys) * layer.width
    return Cost(macs=macs, other=bias + 6 * layer.queries * layer.length * layer.heads)


@kind("multi_head_attention")
def multi_head_attention(call: Call) -> Cost:
    return _whole(call, time_first=False)


@kind("multi_head_attention/time-first")
def multi_head_attention_time_first(call: Call) -> Cost:
    return _whole(call, time_first=True)


def _whole(call: Call, time_first: bool) -> Cost:
    heads = call.attr("num_heads")
    if call.given("in_weight") is None:
        raise NotKnown("keys or values of another width")
    cost = _projected(_layer(call, heads if isinstance(heads, int) else 1, time_first))
    if call.given("mask") is not None:
        cost = cost._replace(causal=NOT_TOLD)
    # A module that fx left whole says neither the heads nor which dimension is the batch.
    return cost if isinstance(heads, int) else cost._replace(how=ESTIMATED)


@kind("encoder_layer")
def encoder_layer(call: Call) -> Cost:
    """A whole transformer layer as one operator: attention, two linear layers, two norms, two sums."""
    heads = call.attr("num_heads")
    layer = _layer(call, heads if isinstance(heads, int) else 1)
    cost = _projected(layer)
    hidden = call.shape("ffn1")[0]
    rows, width = layer.queries, layer.width
    activation = 5 if call.attr("use_gelu", False) else 1
    macs = cost.macs + rows * (call.size("ffn1") + call.size("ffn2"))
    other = cost.other + rows * (hidden * (1 + activation) + width + 2 * 8 * width + 2 * width)
    causal = NOT_TOLD if call.given("mask") is not None else None
    return Cost(macs=macs, other=other, how=cost.how if isinstance(heads, int) else ESTIMATED, causal=causal)
