"""Formulas against loops that really multiply: small shapes, every product counted where it happens."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from itertools import product as combinations
from math import ceil, floor, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.ir.attributes import MASK_SHOWS, MODULE, WRITTEN_BEFORE
from opscope.ir.pools import Type
from opscope.ops import Argument, Cost, canonical, cost_of
from opscope.ops.aliases import aliases, frameworks, read
from opscope.ops.cost import NOT_TOLD, formula, registered
from opscope.ops.kinds import RULES, kind_of

Shape = tuple[int, ...]
few = st.integers(1, 3)


class Meter:
    """Multiplies and adds, and counts it."""

    def __init__(self) -> None:
        self.macs = self.other = 0

    def mac(self, total: float, a: float, b: float) -> float:
        self.macs += 1
        return total + a * b

    def matmul(self, a: Any, b: Any) -> Any:
        out = np.zeros((a.shape[0], b.shape[1]))
        for i, j, k in np.ndindex(a.shape[0], b.shape[1], a.shape[1]):
            out[i, j] = self.mac(out[i, j], a[i, k], b[k, j])
        return out


def t(*shape: int, dtype: str = "float32") -> Type:
    return Type(dtype, shape)


def cost(
    op: str, outputs: Sequence[Type] | Type, attrs: dict[str, Any] | None = None, /, **inputs: Type | None
) -> Cost:
    made = [outputs] if isinstance(outputs, Type) else outputs
    named = [Argument(name.replace("__", "[").replace("_at_", "]"), type_) for name, type_ in inputs.items()]
    return cost_of("torch", op, named, made, attrs or {})


def numbers(*shape: int) -> Any:
    return np.random.default_rng(prod(shape)).integers(-4, 5, shape).astype(float)


# -- convolutions --------------------------------------------------------------------------------------


@st.composite
def convolutions(draw: Any) -> dict[str, Any]:
    dims = draw(st.integers(1, 2))
    groups = draw(few)
    kernel, dilation = draw(st.tuples(*[few] * dims)), draw(st.tuples(*[few] * dims))
    padding = draw(st.tuples(*[st.integers(0, 2)] * dims))
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding, strict=True)]
    return {
        "x": (draw(few), groups * draw(few), *[n + draw(st.integers(0, 3)) for n in least]),
        "out": groups * draw(few),
        "kernel": kernel,
        "stride": draw(st.tuples(*[few] * dims)),
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }


def places(at: Shape, stride: Shape, dilation: Shape, inside: Shape) -> Shape:
    return tuple(a * s + d * k for a, s, d, k in zip(at, stride, dilation, inside, strict=True))


def naive_conv(c: dict[str, Any], meter: Meter) -> tuple[Shape, Shape, Any]:
    """A convolution over a padded image, one product at a time."""
    x, groups, kernel = numbers(*c["x"]), c["groups"], c["kernel"]
    padded = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in c["padding"]]])
    weight = numbers(c["out"], c["x"][1] // groups, *kernel)
    sizes = tuple(
        (n - d * (k - 1) - 1) // s + 1
        for n, d, k, s in zip(padded.shape[2:], c["dilation"], kernel, c["stride"], strict=True)
    )
    out = np.zeros((c["x"][0], c["out"], *sizes))
    per_group = c["out"] // groups
    for index in np.ndindex(*out.shape):
        n, o, *at = index
        for i, *inside in np.ndindex(*weight.shape[1:]):
            where = places(tuple(at), c["stride"], c["dilation"], tuple(inside))
            seen = padded[(n, o // per_group * weight.shape[1] + i, *where)]
            out[index] = meter.mac(out[index], seen, weight[(o, i, *inside)])
    return out.shape, weight.shape, out


@given(convolutions(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_conv(c: dict[str, Any], has_bias: bool):
    meter = Meter()
    out, weight, _ = naive_conv(c, meter)
    attrs = {k: list(c[k]) for k in ("stride", "padding", "dilation")} | {"groups": c["groups"], "transposed": False}
    bias = t(c["out"]) if has_bias else None
    found = cost("aten.convolution", t(*out), attrs, input=t(*c["x"]), weight=t(*weight), bias=bias)
    assert found == Cost(macs=meter.macs, other=prod(out) if has_bias else 0)
    # The same as a composite operator, as a module of fx, and by position.
    for op in ("aten.conv2d", "nn.Conv2d", "torch.conv2d"):
        assert cost(op, t(*out), {}, input=t(*c["x"]), weight=t(*weight), bias=bias) == found
    by_position = [Argument("0", t(*c["x"])), Argument("1", t(*weight)), Argument("2", bias)]
    assert cost_of("torch", "aten.conv2d", by_position, [t(*out)], {"3": [1, 1]}) == found


@given(convolutions(), st.tuples(st.booleans(), st.booleans(), st.booleans()))
@settings(max_examples=40, deadline=None)
def test_conv_backward(c: dict[str, Any], mask: tuple[bool, bool, bool]):
    """The gradients by the chain rule: each product of the forward pass has one in each of the two gradients."""
    forward = Meter()
    out, weight, _ = naive_conv(c, forward)
    meter, groups = Meter(), c["groups"]
    grad = numbers(*out)
    padded = tuple(n + 2 * p for n, p in zip(c["x"][2:], c["padding"], strict=True))
    dx, dw, x, w = np.zeros((*c["x"][:2], *padded)), np.zeros(weight), np.ones((*c["x"][:2], *padded)), np.ones(weight)
    for n, o, *at in np.ndindex(*out):
        for i, *inside in np.ndindex(*weight[1:]):
            where = places(tuple(at), c["stride"], c["dilation"], tuple(inside))
            source = (n, o // (out[1] // groups) * weight[1] + i, *where)
            place = (o, i, *inside)
            if mask[0]:
                dx[source] = meter.mac(dx[source], grad[(n, o, *at)], w[place])
            if mask[1]:
                dw[place] = meter.mac(dw[place], grad[(n, o, *at)], x[source])
    attrs = {"transposed": False, "groups": groups, "output_mask": list(mask)}
    found = cost("aten.convolution_backward", [], attrs, grad_output=t(*out), input=t(*c["x"]), weight=t(*weight))
    assert found == Cost(macs=meter.macs, other=prod(out) if mask[2] else 0)


@given(convolutions())
@settings(max_examples=30, deadline=None)
def test_conv_transpose(c: dict[str, Any]):
    """Every input is spread over the outputs that its kernel reaches."""
    groups, kernel, meter = c["groups"], c["kernel"], Meter()
    x = numbers(*c["x"])
    weight = numbers(c["x"][1], c["out"] // groups, *kernel)
    sizes = tuple(
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(x.shape[2:], c["stride"], c["dilation"], kernel, strict=True)
    )
    out = np.zeros((c["x"][0], c["out"], *sizes))
    for n, i, *at in np.ndindex(*x.shape):
        for o, *inside in np.ndindex(*weight.shape[1:]):
            where = places(tuple(at), c["stride"], c["dilation"], tuple(inside))
            target = (n, i // (c["x"][1] // groups) * weight.shape[1] + o, *where)
            out[target] = meter.mac(out[target], x[(n, i, *at)], weight[(i, o, *inside)])
    types = {"input": t(*c["x"]), "weight": t(*weight.shape), "bias": None}
    assert cost("aten.convolution", t(*out.shape), {"transposed": True}, **types) == Cost(macs=meter.macs)
    for op in ("aten.conv_transpose2d.input", "nn.ConvTranspose2d"):
        assert cost(op, t(*out.shape), {}, **types) == Cost(macs=meter.macs)
    backward = {"transposed": True, "output_mask": [True, True, False]}
    found = cost(
        "aten.convolution_backward",
        [],
        backward,
        grad_output=t(*out.shape),
        input=types["input"],
        weight=types["weight"],
    )
    assert found.macs == 2 * meter.macs


# -- matrix products -------------------------------------------------------------------------------------


@st.composite
def factors(draw: Any) -> tuple[Shape, Shape]:
    """Two shapes that `@` takes: vectors, matrices, batches that are broadcast."""
    inner = draw(few)
    batch = draw(st.lists(few, max_size=2))
    left = [draw(st.sampled_from([n, 1])) for n in batch[draw(st.integers(0, len(batch))) :]]
    a = draw(st.sampled_from([(inner,), (*left, draw(few), inner)]))
    b = draw(st.sampled_from([(inner,), (*batch, inner, draw(few))]))
    return a, b


@given(factors())
@settings(max_examples=80, deadline=None)
def test_matmul(shapes: tuple[Shape, Shape]):
    a, b = numbers(*shapes[0]), numbers(*shapes[1])
    out = np.matmul(a, b)
    meter = Meter()
    full_a = np.broadcast_to(
        a if a.ndim > 1 else a[None],
        (*out.shape[: max(b.ndim - 2, a.ndim - 2, 0)], *a.shape[-2:]) if a.ndim > 1 else (1, *a.shape),
    )
    rows = full_a.reshape(-1, full_a.shape[-2], full_a.shape[-1])
    full_b = b if b.ndim > 1 else b[:, None]
    wide = np.broadcast_to(full_b, (*out.shape[: max(b.ndim - 2, a.ndim - 2, 0)], *full_b.shape[-2:]))
    wide = wide.reshape(-1, *full_b.shape[-2:])
    count = max(len(rows), len(wide))
    results = [meter.matmul(rows[i % len(rows)], wide[i % len(wide)]) for i in range(count)]
    assert np.allclose(np.stack(results).ravel(), out.ravel())
    assert cost("aten.matmul", t(*out.shape), self=t(*a.shape), other=t(*b.shape)) == Cost(macs=meter.macs)
    assert cost("operator.matmul", [], **{"0": t(*a.shape), "1": t(*b.shape)}).macs == meter.macs


@given(few, few, few, few)
def test_products_with_names_of_their_own(n: int, m: int, k: int, b: int):
    macs = Meter()
    macs.matmul(numbers(n, k), numbers(k, m))
    one = macs.macs
    a2, b2, a3, b3 = t(n, k), t(k, m), t(b, n, k), t(b, k, m)
    assert cost("aten.mm", t(n, m), self=a2, mat2=b2) == Cost(macs=one)
    assert cost("aten.addmm", t(n, m), self=t(m), mat1=a2, mat2=b2) == Cost(macs=one, other=n * m)
    assert cost("aten.addmm", t(n, m), {"beta": 0}, self=t(m), mat1=a2, mat2=b2) == Cost(macs=one)
    assert cost("aten.addmm", t(n, m), {"alpha": 0.5}, self=t(m), mat1=a2, mat2=b2).other == 2 * n * m
    assert cost("aten.bmm", t(b, n, m), self=a3, mat2=b3) == Cost(macs=b * one)
    assert cost("aten.baddbmm", t(b, n, m), self=t(b, n, m), batch1=a3, batch2=b3).macs == b * one
    assert cost("aten.addbmm", t(n, m), self=t(n, m), batch1=a3, batch2=b3).macs == b * one
    assert cost("aten.mv", t(n), self=a2, vec=t(k)) == Cost(macs=n * k)
    assert cost("aten.addmv", t(n), self=t(n), mat=a2, vec=t(k)) == Cost(macs=n * k, other=n)
    assert cost("aten.dot", t(), self=t(k), tensor=t(k)) == Cost(macs=k)
    assert cost("aten.outer", t(n, m), self=t(n), vec2=t(m)) == Cost(macs=n * m)
    assert cost("aten.linear", t(b, n, m), input=a3, weight=t(m, k), bias=t(m)) == Cost(b * one, b * n * m)
    assert cost("nn.Linear", t(b, n, m), input=a3, weight=t(m, k)) == Cost(macs=b * one)
    assert cost("quantized.linear_dynamic", t(b, n, m), X=a3).macs == b * one
    assert cost("aten._grouped_mm", t(n, m), self=a2, mat2=b3, offs=t(b, dtype="int32")).macs == one
    assert cost("aten._grouped_mm", t(b, k, m), self=t(k, n), mat2=t(n, m), offs=t(b)).macs == one
    assert cost("aten.tensordot", t(b, n, m), self=a3, other=b2).macs == b * one


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_einsum(data: Any):
    sizes = dict(zip("abcd", data.draw(st.tuples(few, few, few, few)), strict=True))
    letters = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True).map("".join)
    first, second = data.draw(letters), data.draw(letters)
    both = sorted(set(first + second))
    result = "".join(data.draw(st.lists(st.sampled_from(both), unique=True, max_size=3)))
    meter = _einsum(first, second, result, sizes)
    a, b = (t(*[sizes[i] for i in term]) for term in (first, second))
    attrs = {"equation": f"{first},{second}->{result}"}
    out = t(*[sizes[i] for i in result])
    found = cost_of("torch", "aten.einsum", [Argument("tensors[0]", a), Argument("tensors[1]", b)], [out], attrs)
    assert found == Cost(macs=meter.macs, other=meter.other)


def _einsum(first: str, second: str, result: str, sizes: dict[str, int]) -> Meter:
    """What only one of them has is added up first; then one product for every combination, which is added to a sum if
    there is one."""
    meter = Meter()
    terms = [[i for i in term if sizes[i] > 1] for term in (first, second)]
    for term, other in (terms, terms[::-1]):
        if any(i not in result and i not in other for i in term):
            meter.other += sum(1 for _ in combinations(*[range(sizes[i]) for i in term]))
            term[:] = [i for i in term if i in result or i in other]
    both = sorted({*terms[0], *terms[1]})
    for _ in combinations(*[range(sizes[i]) for i in both]):
        if all(i in result for i in both):
            meter.other += 1
        else:
            meter.mac(0, 1, 1)
    return meter


def test_einsum_of_axes_behind_dots_and_of_one():
    def of(equation: str, *shapes: tuple[int, ...]) -> Cost:
        arguments = [Argument(f"tensors[{i}]", t(*shape)) for i, shape in enumerate(shapes)]
        return cost_of("torch", "aten.einsum", arguments, [t(1)], {"equation": equation})

    assert of("...ij,...jk->...ik", (2, 3, 4), (4, 5)) == Cost(macs=2 * 3 * 4 * 5)
    assert of("ij,jk->ik", (3, 1), (1, 5)) == Cost(other=15)  # torch multiplies
    assert of("ij,jk->k", (3, 4), (4, 5)) == Cost(macs=20, other=12)  # torch adds up the rows first
    assert of("ij,jk", (3, 4), (4, 5)) == Cost(macs=60)


def test_sparse_products_by_their_entries():
    """Loops over the entries alone."""
    rng = np.random.default_rng(0)
    dense = rng.random((5, 4)) * (rng.random((5, 4)) < 0.4)
    entries = [(int(i), int(k)) for i, k in np.argwhere(dense)]
    right, left, vector = rng.random((4, 3)), rng.random((2, 5)), rng.random(4)

    def said(names: dict[str, int | None], results: dict[str, int | None] | None = None) -> dict[str, Any]:
        return {"sparse_entries": {"arguments": names, "results": results or {}}}

    meter, out = Meter(), np.zeros((5, 3))
    for i, k in entries:
        for j in range(3):
            out[i, j] = meter.mac(out[i, j], dense[i, k], right[k, j])
    assert np.allclose(out, dense @ right)
    held = said({"self": len(entries)})
    assert cost("aten.mm", t(5, 3), held, self=t(5, 4), mat2=t(4, 3)) == Cost(macs=meter.macs)
    added = said({"mat1": len(entries)})
    assert cost("aten.addmm", t(5, 3), added, self=t(5, 3), mat1=t(5, 4), mat2=t(4, 3)) == Cost(
        macs=meter.macs, other=15
    )

    meter, out = Meter(), np.zeros((2, 4))
    for i, k in entries:
        for row in range(2):
            out[row, k] = meter.mac(out[row, k], left[row, i], dense[i, k])
    assert np.allclose(out, left @ dense)
    held = said({"mat2": len(entries)})
    assert cost("aten.mm", t(2, 4), held, self=t(2, 5), mat2=t(5, 4)) == Cost(macs=meter.macs)
    held = said({"weight": len(entries)})
    assert cost("aten.linear", t(2, 5), held, input=t(2, 4), weight=t(5, 4)) == Cost(macs=meter.macs)

    meter, out = Meter(), np.zeros(5)
    for i, k in entries:
        out[i] = meter.mac(out[i], dense[i, k], vector[k])
    assert np.allclose(out, dense @ vector)
    held = said({"self": len(entries)})
    assert cost("aten.mv", t(5), held, self=t(5, 4), vec=t(4)) == Cost(macs=meter.macs)

    meter = Meter()  # only the results that the sparse matrix has
    a, b = rng.random((5, 7)), rng.random((7, 4))
    for i, k in entries:
        total = 0.0
        for j in range(7):
            total = meter.mac(total, a[i, j], b[j, k])
    held = said({"self": len(entries)}, {"0": len(entries)})
    sampled = cost("aten.sparse_sampled_addmm", t(5, 4), held, self=t(5, 4), mat1=t(5, 7), mat2=t(7, 4))
    assert sampled == Cost(macs=meter.macs, other=len(entries))


def test_sparse_operators_that_are_not_known():
    unknown = Cost(how="unknown")
    nobody_knows = {"sparse_entries": {"arguments": {"self": None}, "results": {}}}
    assert cost("aten.mm", t(5, 3), nobody_knows, self=t(5, 4), mat2=t(4, 3)) == unknown
    assert cost("aten.relu", t(5, 3), nobody_knows, self=t(5, 3)) == unknown
    both = {"sparse_entries": {"arguments": {"self": 3, "mat2": 4}, "results": {"0": 5}}}
    assert cost("aten.mm", t(5, 3), both, self=t(5, 4), mat2=t(4, 3)) == unknown
    assert cost("aten._sparse_mm", t(5, 3), sparse=t(5, 4), dense=t(4, 3)) == unknown
    stored = {"sparse_entries": {"arguments": {"self": 7}, "results": {"0": 7}}}
    assert cost("aten.relu", t(5, 3), stored, self=t(5, 3)) == Cost(other=7, how="estimated")


def test_nested_operators_are_the_sum_of_their_parts():
    rows, meter = [2, 5], Meter()
    for n in rows:
        meter.matmul(numbers(n, 8), numbers(8, 3))
    sizes = {"nested_sizes": {"arguments": {"input": [[n, 8] for n in rows]}, "results": {"0": [[n, 3] for n in rows]}}}
    packed = t(sum(rows), 3)
    assert cost("aten.linear", packed, sizes, input=t(7, 8), weight=t(3, 8), bias=t(3)) == Cost(
        macs=meter.macs, other=21
    )

    meter = Meter()  # every sample with itself
    for n in rows:
        meter.matmul(numbers(n, 8), numbers(8, n))
    table = {"self": [[n, 8] for n in rows], "mat2": [[8, n] for n in rows]}
    sizes = {"nested_sizes": {"arguments": table, "results": {"0": [[n, n] for n in rows]}}}
    assert cost("aten.bmm", t(29), sizes, self=t(7, 8), mat2=t(8, 7)) == Cost(macs=meter.macs)
    sizes["nested_sizes"]["results"]["0"].append([1, 1])
    assert cost("aten.bmm", t(29), sizes, self=t(7, 8), mat2=t(8, 7)) == Cost(how="unknown")  # as many parts, or none


def test_groups_and_distances():
    rows, k, m = 16, 6, 4
    meter = Meter()
    for begin, end in ((0, 3), (3, 9)):  # two groups; what comes after is in none
        meter.matmul(numbers(end - begin, k), numbers(k, m))
    seen = {"rows_in_groups": 9}
    given = {"self": t(rows, k), "mat2": t(2, k, m), "offs": t(2, dtype="int32")}
    assert cost("aten._grouped_mm", t(rows, m), seen, **given) == Cost(macs=meter.macs)
    assert cost("aten._grouped_mm", t(rows, m), **given) == Cost(macs=rows * k * m, how="estimated")  # nobody saw them

    x, y, meter = numbers(30, 3), numbers(5, 3), Meter()
    ones = [np.ones((30, 1)), np.ones((5, 1))]
    squares = [np.square(x).sum(1, keepdims=True), np.square(y).sum(1, keepdims=True)]
    wide = [np.hstack([-2 * x, squares[0], ones[0]]), np.hstack([y, ones[1], squares[1]])]
    found = np.sqrt(np.maximum(meter.matmul(wide[0], wide[1].T), 0))
    assert np.allclose(found, np.linalg.norm(x[:, None] - y[None], axis=-1))
    assert cost("aten._euclidean_dist", t(30, 5), x1=t(30, 3), x2=t(5, 3)).macs == meter.macs
    assert cost("aten._cdist_forward", t(30, 5), {"p": 2.0}, x1=t(30, 3), x2=t(5, 3)).macs == meter.macs
    for attrs in ({"p": 1.0}, {"p": 2.0, "compute_mode": 2}):
        assert cost("aten._cdist_forward", t(30, 5), attrs, x1=t(30, 3), x2=t(5, 3)) == Cost(other=3 * 30 * 5 * 3)


def test_systems_with_a_decomposition():
    assert cost("aten.linalg_ldl_solve", t(4, 2), LD=t(4, 4), pivots=t(4), B=t(4, 2)) == Cost(
        other=2 * 4 * 8, how="estimated"
    )
    found = cost("aten.ormqr", t(5, 3), self=t(5, 4), input2=t(4), input3=t(5, 3))
    assert found == Cost(other=4 * 4 * 15, how="estimated")
    assert cost("aten.linalg_lstsq", [t(3, 2), t(2), t(), t(3)], self=t(5, 3), b=t(5, 2)).how == "estimated"
    assert cost("aten.lu_unpack", [t(3, 3)] * 3, LU_data=t(3, 3), LU_pivots=t(3)).how == "zero"


def test_bilinear_is_two_products():
    """x1 with the weights, and the result with x2."""
    n, i, j, o = 2, 3, 4, 5
    meter = Meter()
    x1, x2, weight = numbers(n, i), numbers(n, j), numbers(o, i, j)
    out = np.zeros((n, o))
    for row in range(n):
        for k in range(o):
            half = meter.matmul(x1[row : row + 1], weight[k])
            out[row, k] = meter.matmul(half, x2[row][:, None])[0, 0]
    assert np.allclose(out, np.einsum("ni,oij,nj->no", x1, weight, x2))
    types = {"input1": t(n, i), "input2": t(n, j), "weight": t(o, i, j), "bias": t(o)}
    assert cost("aten.bilinear", t(n, o), **types) == Cost(macs=meter.macs, other=n * o)


# -- attention ---------------------------------------------------------------------------------------------


@given(few, few, few, few, few, few)
@settings(max_examples=40, deadline=None)
def test_attention(batch: int, heads: int, queries: int, keys: int, width: int, depth: int):
    forward, backward = Meter(), Meter()
    for _ in range(batch * heads):
        q, k, v = numbers(queries, width), numbers(keys, width), numbers(keys, depth)
        grad = numbers(queries, depth)
        p = np.exp(forward.matmul(q, k.T))
        forward.matmul(p, v)
        backward.matmul(q, k.T)  # made again: the fused kernels do not keep it
        backward.matmul(p.T, grad)
        ds = backward.matmul(grad, v.T)
        backward.matmul(ds, k)
        backward.matmul(ds.T, q)
    q, k, v = t(batch, heads, queries, width), t(batch, heads, keys, width), t(batch, heads, keys, depth)
    out = t(batch, heads, queries, depth)
    scores = batch * heads * queries * keys
    for op in ("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu"):
        found = cost(f"aten.{op}", out, query=q, key=k, value=v)
        assert found == Cost(macs=forward.macs, other=6 * scores)
        assert cost(f"aten.{op}", out, {"is_causal": True}, query=q, key=k, value=v).macs == forward.macs
    for kind in ("flash_attention_for_cpu", "flash_attention", "efficient_attention", "cudnn_attention"):
        op = f"aten._scaled_dot_product_{kind}_backward"
        assert cost(op, [q, k, v], grad_out=out, query=q, key=k, value=v).macs == backward.macs
    # Groups of queries share keys: each query still meets each key.
    shared = t(batch, 1, keys, width), t(batch, 1, keys, depth)
    found = cost("aten.scaled_dot_product_attention", out, query=q, key=shared[0], value=shared[1])
    assert found.macs == forward.macs


@given(few, few, st.integers(1, 5), st.integers(1, 5), few, few)
@settings(max_examples=60, deadline=None)
def test_causal_attention(batch: int, heads: int, queries: int, keys: int, width: int, depth: int):
    """Next to the dense count: what a kernel computes that leaves out all that the mask hides."""
    forward, backward = Meter(), Meter()
    for _ in range(batch * heads):
        for i in range(queries):
            for _ in range(min(i + 1, keys)):  # query i sees the keys 0 to i
                forward.matmul(numbers(1, width), numbers(width, 1))
                forward.matmul(numbers(1, 1), numbers(1, depth))
                for inner in (width, width, width, depth, depth):  # Q·Kᵀ, dQ, dK; dV, dP
                    backward.matmul(numbers(1, inner), numbers(inner, 1))
    q, k, v = t(batch, heads, queries, width), t(batch, heads, keys, width), t(batch, heads, keys, depth)
    out, mask = t(batch, heads, queries, depth), t(queries, keys, dtype="bool")
    op, causal = "aten._scaled_dot_product_flash_attention_for_cpu", {"is_causal": True}
    assert cost(op, out, causal, query=q, key=k, value=v).causal == forward.macs
    found = cost(f"{op}_backward", [q, k, v], causal, grad_out=out, query=q, key=k, value=v)
    assert found.causal == backward.macs
    # Without a mask nothing is hidden; of a mask that is known only by its numbers, nothing is known.
    assert cost(op, out, query=q, key=k, value=v).causal is None
    assert cost(op, out, query=q, key=k, value=v, attn_mask=mask).causal == NOT_TOLD
    # A recording has looked at it: so many scores, or it is another kind of mask.
    seen = cost(op, out, {MASK_SHOWS: 2}, query=q, key=k, value=v, attn_mask=mask)
    assert seen.causal == batch * heads * 2 * (width + depth)
    assert cost(op, out, {MASK_SHOWS: 0}, query=q, key=k, value=v, attn_mask=mask).causal is None
    # Where the diagonal of a matrix begins that is not square differs from one flash-attention kernel to the next.
    last = [t(*(shape[0], shape[2], shape[1], shape[3])) for shape in (q.shape, k.shape, v.shape) if shape]
    flash = cost("aten._flash_attention_forward", out, causal, query=last[0], key=last[1], value=last[2])
    assert flash.causal == (forward.macs if queries == keys else NOT_TOLD)


@given(few, few, few, st.integers(1, 2))
@settings(max_examples=20, deadline=None)
def test_multi_head_attention(batch: int, length: int, each: int, heads: int):
    width, meter = heads * each, Meter()
    for _ in range(batch):
        x, w = numbers(length, width), numbers(width, width)
        q, k, v = meter.matmul(x, w), meter.matmul(x, w), meter.matmul(x, w)
        for head in range(heads):
            part = slice(head * each, (head + 1) * each)
            meter.matmul(meter.matmul(q[:, part], k[:, part].T), v[:, part])
        meter.matmul(x, w)
    x = t(batch, length, width)
    found = cost(
        "aten._native_multi_head_attention", x, {"num_head": heads, "embed_dim": width},
        query=x, key=x, value=x, qkv_weight=t(3 * width, width), proj_weight=t(width, width),
    )  # fmt: skip
    assert found.macs == meter.macs
    assert found.how == "exact"
    hidden = 2 * width
    whole = cost(
        "aten._transformer_encoder_layer_fwd", x, {"num_heads": heads},
        src=x, qkv_weight=t(3 * width, width), ffn_weight_1=t(hidden, width), ffn_weight_2=t(width, hidden),
    )  # fmt: skip
    assert whole.macs == meter.macs + 2 * batch * length * width * hidden


# -- recurrent -----------------------------------------------------------------------------------------------


@given(few, few, few, few, st.sampled_from([("lstm", 4, 2), ("gru", 3, 3), ("rnn_tanh", 1, 1)]), st.integers(1, 2))
@settings(max_examples=40, deadline=None)
def test_recurrent(time: int, batch: int, width: int, hidden: int, cell: tuple[str, int, int], layers: int):
    name, gates, mode = cell
    meter, params, inside = Meter(), list[Type](), width
    for _ in range(layers):
        for _ in range(time):
            meter.matmul(numbers(batch, inside), numbers(inside, gates * hidden))
            meter.matmul(numbers(batch, hidden), numbers(hidden, gates * hidden))
        params += [t(gates * hidden, inside), t(gates * hidden, hidden), t(gates * hidden), t(gates * hidden)]
        inside = hidden
    inputs = [Argument("input", t(time, batch, width)), Argument("hx", t(layers, batch, hidden))]
    inputs += [Argument(f"params[{i}]", p) for i, p in enumerate(params)]
    out = [t(time, batch, hidden), t(layers, batch, hidden)]
    assert cost_of("torch", f"aten.{name}.input", inputs, out, {}).macs == meter.macs
    weights = [Argument(f"weight_{i}", p) for i, p in enumerate(params)]
    if name == "lstm":
        assert cost_of("torch", "nn.LSTM", [inputs[0], *weights], [Type("", None)], {}).macs == meter.macs
    if layers == 1:
        one = {f"weight{i}": p for i, p in enumerate(params)} | {"input": t(time, batch, width)}
        forward = cost("aten.mkldnn_rnn_layer", out, {"mode": mode}, **one)
        assert forward.macs == meter.macs
        backward = cost("aten.mkldnn_rnn_layer_backward", out, {"mode": mode}, **one)
        assert backward.macs == 2 * meter.macs
        step = {"input": t(batch, width), "w_ih": params[0], "w_hh": params[1]}
        short = "rnn_tanh_cell" if name == "rnn_tanh" else f"{name}_cell"
        assert cost(f"aten.{short}", t(batch, hidden), **step).macs * time == meter.macs


# -- pooling -------------------------------------------------------------------------------------------------


@given(few, few, st.integers(2, 6), st.integers(1, 2), st.integers(1, 3), st.integers(0, 1))
@settings(max_examples=40, deadline=None)
def test_pool(batch: int, channels: int, size: int, kernel: int, stride: int, padding: int):
    padded = size + 2 * padding
    results = (padded - kernel) // stride + 1
    looked = 0
    for _ in np.ndindex(batch, channels, results, results, kernel, kernel):
        looked += 1
    out = t(batch, channels, results, results)
    attrs = {"kernel_size": [kernel, kernel], "stride": [stride, stride], "padding": [padding, padding]}
    x = t(batch, channels, size, size)
    assert cost("aten.max_pool2d_with_indices", [out, out], attrs, self=x).other == looked
    assert cost("aten.avg_pool2d", out, attrs, self=x).other == looked
    assert cost("aten.avg_pool2d_backward", x, attrs, grad_output=out, self=x).other == looked
    module = {MODULE: f"MaxPool2d(kernel_size={kernel}, stride={stride}, padding={padding})"}
    assert cost("nn.MaxPool2d", out, module, input=x).other == looked
    assert cost("aten.max_pool2d_with_indices_backward", x, attrs, grad_output=out, self=x).other == prod(
        out.shape or ()
    )


_POOL = """
    int k3 = i3*2-1; int k2 = i2*2-1;
    int k3_ = min(k3 + {kernel}, in0_shape3);
    int k2_ = min(k2 + {kernel}, in0_shape2);
    for (int p = k2; p < k2_; ++p) for (int q = k3; q < k3_; ++q)
"""


@given(few, few, st.integers(2, 6), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_pools_that_are_code(batch: int, channels: int, results: int, kernel: int):
    """As Jittor writes them."""
    looked = len(list(np.ndindex(batch, channels, results, results, kernel, kernel)))
    x, out = t(batch, channels, 2 * results, 2 * results), t(batch, channels, results, results)

    def found(code: str, made: Type, *inputs: Type) -> Cost:
        return cost_of("jittor", "code", [Argument(str(i), x) for i, x in enumerate(inputs)], [made], {"code": code})

    text = _POOL.format(kernel=kernel)
    assert found(text + "@out(i0,i1,i2,i3) = max(@in0(i0,i1,p,q));", out, x) == Cost(other=looked)
    one = "if (@pout(i0,i1,i2,i3) == @in0(i0,i1,p,q)) @out(i0,i1,p,q) += @dout(i0,i1,i2,i3);"
    assert found(text + one, x, x, out, out).other == prod(out.shape or ())
    assert found(text + "@out(i0,i1,p,q) += @dout(i0,i1,i2,i3) / n;", x, x, out, out).other == looked
    assert found("@out(i) = sqrt(@in0(i));", out, x).how == "unknown"
    assert found(text.replace("p < k2_", "p < 3"), out, x).how == "unknown"


@given(few, st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5))
def test_adaptive_pool(channels: int, height: int, width: int, rows: int, columns: int):
    looked = 0
    for i, j in np.ndindex(rows, columns):
        top, bottom = floor(i * height / rows), ceil((i + 1) * height / rows)
        left, right = floor(j * width / columns), ceil((j + 1) * width / columns)
        looked += channels * (bottom - top) * (right - left)
    found = cost("aten._adaptive_avg_pool2d", t(1, channels, rows, columns), self=t(1, channels, height, width))
    assert found == Cost(other=looked)


# -- what is read and written --------------------------------------------------------------------------------


@given(st.integers(1, 9), few, st.lists(st.integers(0, 8), min_size=1, max_size=9))
def test_embedding_reads_the_rows_it_takes(words: int, width: int, taken: list[int]):
    rows = [i % words for i in taken]
    read = sum(4 * width for _ in rows) + 8 * len(rows)
    indices, out = t(len(rows), dtype="int64"), t(len(rows), width)
    found = cost("aten.embedding", out, weight=t(words, width), indices=indices)
    assert found == Cost(read=read, how="zero")
    assert cost("nn.Embedding", out, input=indices, weight=t(words, width)) == found
    assert cost("aten.index_select", out, self=t(words, width), index=indices) == found
    bag = cost("aten._embedding_bag", t(1, width), weight=t(words, width), indices=indices, offsets=t(1, dtype="int64"))
    assert bag == Cost(other=len(rows) * width, read=read + 8)
    assert (
        cost("aten.embedding_dense_backward", t(words, width), grad_output=out, indices=indices).other
        == len(rows) * width
    )


@pytest.mark.parametrize(
    ("op", "inputs", "read", "written"),
    [
        ("aten.view", {"self": t(4, 4)}, 0, 0),
        ("aten.slice.Tensor", {"self": t(4, 4)}, 0, 0),
        ("aten.expand", {"self": t(4, 4)}, 0, 0),
        ("aten.empty_like", {"self": t(4, 4)}, 0, 0),
        ("aten.zeros_like", {"self": t(4, 4)}, 0, None),
        ("aten.zero_", {"self": t(4, 4)}, 0, None),
        ("aten.normal_", {"self": t(4, 4)}, 0, None),
        ("aten.copy_", {"self": t(4, 4), "src": t(4, 4, dtype="float16")}, 32, None),
        ("aten.clone", {"self": t(4, 4)}, None, None),
        ("aten.cat", {"tensors__0_at_": t(2, 4), "tensors__1_at_": t(2, 4)}, None, None),
        ("aten.relu.out", {"self": t(4, 4), "out": t(4, 4)}, 64, None),
        ("aten.add_.Tensor", {"self": t(4, 4), "other": t(4, 4)}, None, None),
        ("aten.add_.Tensor", {"self": t(4, 4), "other": t(4, 4), WRITTEN_BEFORE: t(2)}, 128, None),
        ("aten.scatter_add_", {"self": t(4, 4), "index": t(2, 4, dtype="int64"), "src": t(3, 4)}, 64 + 32 + 32, 32),
        ("aten.index_add_", {"self": t(4, 4), "index": t(2, dtype="int64"), "source": t(2, 4)}, 16 + 32 + 32, 32),
        ("aten.to.dtype", {"self": t(4, 4)}, 0, 0),
        ("aten.to.dtype", {"self": t(4, 4, dtype="float16")}, None, None),
    ],
)
def test_bytes_where_the_general_rule_is_wrong(op: str, inputs: dict[str, Type], read: int | None, written: int | None):
    found = cost(op, t(4, 4), **inputs)
    assert (found.read, found.written) == (read, written)
    assert found.how != "unknown"


# -- element by element --------------------------------------------------------------------------------------


@given(st.lists(few, max_size=3), st.data())
def test_elementwise_counts_results(shape: list[int], data: Any):
    """Broadcasting: as many operations as results."""
    small = [data.draw(st.sampled_from([n, 1])) for n in shape]
    out = np.broadcast_shapes(tuple(shape), tuple(small))
    count = sum(1 for _ in np.ndindex(*out))
    a, b = t(*shape), t(*small)
    assert cost("aten.add.Tensor", t(*out), self=a, other=b) == Cost(other=count)
    assert cost("aten.add.Tensor", t(*out), {"alpha": 2}, self=a, other=b) == Cost(other=2 * count)
    assert cost("aten.mul_.Tensor", t(*out), self=a, other=b) == Cost(other=count)
    assert cost("operator.mul", t(*out), **{"0": a, "1": b}) == Cost(other=count)
    assert cost("aten.max.other", t(*out), self=a, other=b) == Cost(other=count)
    assert cost("aten.sum", t(), self=t(*out)) == Cost(other=count)
    assert cost("aten.max", t(), self=t(*out)) == Cost(other=count)
    assert cost("aten.mean", t(), self=t(*out)) == Cost(other=count + 1)
    assert cost("aten._softmax", t(*out), {"dim": -1}, self=t(*out)) == Cost(other=5 * count)


def test_lists_are_counted_whole():
    lists = {"self__0_at_": t(2, 3), "self__1_at_": t(5)}
    assert cost("aten._foreach_add_.Scalar", [t(2, 3), t(5)], **lists) == Cost(other=11)
    assert cost("aten._foreach_sqrt", [t(2, 3), t(5)], **lists) == Cost(other=11)
    assert cost("aten._foreach_norm.Scalar", [t(), t()], **lists) == Cost(other=22)
    assert cost("aten._foreach_zero_", [t(2, 3), t(5)], **lists) == Cost(read=0, how="zero")
    assert cost("aten._fused_adamw_", [t(2, 3), t(5)], {"weight_decay": 0.1}, **lists) == Cost(other=15 * 11)


def test_norms():
    x, w = t(2, 3, 4), t(4)
    assert cost("aten.native_layer_norm", [x, t(2, 3, 1), t(2, 3, 1)], input=x, weight=w, bias=w).other == 24 * 8
    assert cost("aten.layer_norm", x, input=x).other == 24 * 6
    training = {"training": True}
    stats = {"running_mean": t(3), "running_var": t(3)}
    assert cost("aten.native_batch_norm", x, training, input=x, weight=t(3), bias=t(3), **stats).other == 24 * 8
    assert cost("aten.native_batch_norm", x, {"training": False}, input=x, **stats).other == 24 * 2
    assert cost("nn.BatchNorm1d", x, input=x, **stats).how == "estimated"
    mask = {"output_mask": [True, False, True]}
    assert cost("aten.native_layer_norm_backward", [x], mask, grad_out=x, input=x).other == 24 * 11


# -- names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("aten.relu", "relu"),
        ("aten.relu_", "relu"),
        ("torch.relu", "relu"),
        ("torch.nn.functional.relu", "relu"),
        ("nn.ReLU", "relu"),
        ("Tensor.relu_", "relu"),
        ("aten.add.Tensor", "add"),
        ("aten._foreach_add_.List", "add"),
        ("operator.iadd", "add"),
        ("aten.__and__.Tensor", "bitwise_and"),
        ("prims.convert_element_type", "cast"),
        ("aten.view_copy", "copy"),
        ("aten.copy_", "overwrite"),
        ("aten.conv2d", "conv"),
        ("aten.unfold", "unfold"),
        ("torch.nn.functional.unfold", "im2col"),
        ("mylib.add", "mylib.add"),
        ("mylib.relu_", "mylib.relu_"),
        ("higher_order.cond", "higher_order.cond"),
        ("prim.If", "prim.If"),
        ("AddmmBackward0", "AddmmBackward0"),
        ("", ""),
    ],
)
def test_one_name_for_each_kind(op: str, kind: str):
    assert canonical("torch", op) == kind


# One operation in the words of each framework. Jittor writes some as several operators, and has no name for them.
SAME = {
    "matmul": {
        "torch": "aten.mm aten.addmm aten.bmm torch.matmul operator.matmul aten.mv aten.dot",
        "jittor": "mkl_matmul cublas_matmul cublas_batched_matmul",
        "hidet": "Matmul MatmulOp BatchMatmul MatmulF16",
        "megengine": "MatrixMul BatchedMatmul Dot",
        "paddle": "matmul pd_op.matmul bmm mv dot",
    },
    "matmul_backward": {"paddle": "pd_op.matmul_grad MatmulGradNode bmm_grad"},
    "linear": {"torch": "aten.linear nn.Linear quantized.linear", "paddle": "linear"},
    "linear_backward": {"torch": "aten.linear_backward", "paddle": "linear_grad"},
    "conv": {
        "torch": "aten.convolution aten.conv2d nn.Conv2d aten.conv_tbc",
        "jittor": "mkl_conv cudnn_conv",
        "hidet": "Conv2d Conv2dOp Conv3d",
        "megengine": "Convolution ConvolutionForward ConvBias Convolution3D",
        "paddle": "conv2d pd_op.conv2d pd_op.depthwise_conv2d",
    },
    "conv_transpose": {
        "torch": "aten.conv_transpose2d.input nn.ConvTranspose2d",
        "hidet": "Conv2dTranspose",
        "megengine": "ConvTranspose",
        "paddle": "pd_op.conv2d_transpose",
    },
    "conv_backward": {
        "torch": "aten.convolution_backward",
        "jittor": "mkl_conv_backward_x mkl_conv_backward_w cudnn_conv_backward_w",
        "paddle": "pd_op.conv2d_grad Conv2dGradNodeFinal",
    },
    "softmax": {
        "torch": "aten._softmax aten.softmax.int nn.Softmax torch.softmax",
        "hidet": "Softmax SoftmaxOp",
        "megengine": "SoftmaxForward",
        "paddle": "softmax pd_op.softmax pd_op.softmax_",
    },
    "softmax_backward": {"torch": "aten._softmax_backward_data", "paddle": "pd_op.softmax_grad SoftmaxGradNode"},
    "layer_norm": {
        "torch": "aten.native_layer_norm aten.layer_norm nn.LayerNorm torch.nn.functional.layer_norm",
        "hidet": "Normalize NormalizeOp",
        "megengine": "LayerNormForward",
        "paddle": "layer_norm pd_op.layer_norm",
    },
    "layer_norm_backward": {"torch": "aten.native_layer_norm_backward", "paddle": "LayerNormGradNode"},
    "group_norm": {"torch": "nn.GroupNorm", "megengine": "GroupNormForward", "paddle": "group_norm"},
    "instance_norm": {
        "torch": "aten.instance_norm nn.InstanceNorm2d", "megengine": "InstanceNormForward", "paddle": "instance_norm",
    },
    "batch_norm": {
        "torch": "aten.native_batch_norm aten._native_batch_norm_legit_no_training nn.BatchNorm2d",
        "megengine": "BatchNorm",
        "paddle": "pd_op.batch_norm pd_op.batch_norm_",
    },
    "batch_norm_backward": {"torch": "aten.native_batch_norm_backward", "paddle": "BatchNormGradNode"},
    "max_pool": {"torch": "aten.max_pool2d nn.MaxPool2d", "hidet": "MaxPool2d", "megengine": "Pooling.MAX"},
    "avg_pool": {"torch": "aten.avg_pool2d", "hidet": "AvgPool2d", "megengine": "Pooling.AVERAGE"},
    "adaptive_pool": {
        "torch": "aten._adaptive_avg_pool2d", "hidet": "AdaptiveAvgPool2d", "megengine": "AdaptivePooling",
    },
    "dropout": {
        "torch": "aten.native_dropout aten.dropout nn.Dropout", "megengine": "DropoutForward", "paddle": "dropout",
    },
    "attention": {"torch": "aten.scaled_dot_product_attention aten._flash_attention_forward"},
    "adam": {"torch": "aten._fused_adamw_", "paddle": "pd_op.adamw_ pd_op.adam_"},
    "sgd": {"torch": "aten._fused_sgd_", "paddle": "pd_op.sgd_ pd_op.momentum_"},
    "permute": {"torch": "aten.permute", "jittor": "fuse_transpose", "hidet": "PermuteDims",
                "megengine": "Dimshuffle", "paddle": "transpose"},
    "add": {"torch": "aten.add.Tensor", "jittor": "binary.add", "hidet": "Add", "megengine": "Elemwise.ADD",
            "paddle": "pd_op.add"},
    "sum": {"torch": "aten.sum", "jittor": "reduce.add", "hidet": "ReduceSum", "megengine": "Reduce.SUM",
            "paddle": "sum"},
    "where": {"torch": "aten.where.self", "jittor": "ternary", "hidet": "Where", "megengine": "Where",
              "paddle": "where"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "framework", "op"),
    [(kind, framework, op) for kind, by in SAME.items() for framework, ops in by.items() for op in ops.split()],
)
def test_an_operation_has_one_name_in_all_frameworks(kind: str, framework: str, op: str):
    assert canonical(framework, op) == kind


@pytest.mark.parametrize("framework", frameworks())
def test_every_alias_has_a_formula(framework: str):
    assert {alias.formula for alias in aliases(framework).values()} - RULES.keys() == set()


def test_a_kind_says_nothing_of_a_framework():
    assert [name for name in RULES for framework in frameworks() if framework in name] == []


def test_a_reading_is_of_a_kind_that_has_a_plain_formula():
    assert [name for name in RULES if kind_of(name) not in RULES] == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("matmul a b < mm bmm\nconv < mm", "'mm' is on two lines: matmul and conv"),
        ("matmull a b < mm", r"matmull a b < mm: there is no kind 'matmull'"),
        (
            "matmul/by-luck a b < mm",
            r"matmul has no reading 'by-luck' \(there are: by-result, by-sizes, contracted, sparse, with-flags\)",
        ),
        ("relu/by-luck < ReLU", r"relu has no reading 'by-luck' \(there are: none\)"),
    ],
)
def test_a_mistake_in_a_table_is_an_error(table: str, message: str):
    with pytest.raises(ValueError, match=message):
        read(table)


def test_a_new_framework_is_one_module(tmp_path: Path):
    """It may use every kind and every reading, in a process that has not seen another framework."""
    lines = "\n".join(f"{name} < Op{number}" for number, name in enumerate(RULES))
    module = f"from opscope.ops.aliases import Framework\n\nFRAMEWORK = Framework('''\n{lines}\n''')\n"
    (tmp_path / "madeup.py").write_text(module, encoding="utf-8")
    program = f"""
import sys
from opscope.ops import aliases, canonical, cost_of
aliases.__path__.append({str(tmp_path)!r})
print(*[canonical("madeup", f"Op{{number}}") for number in range({len(RULES)})])
print(*sorted(name.rpartition(".")[2] for name in sys.modules if name.startswith(aliases.__name__ + ".")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    kinds, loaded = done.stdout.splitlines()
    assert kinds.split() == [kind_of(name) for name in RULES]
    assert loaded == "madeup"


_LOADED_IN = """
import importlib, json, sys
from opscope.ops import aliases
for name in sys.argv[1:]:
    importlib.import_module(f"opscope.ops.aliases.{name}")
tables = {name: aliases.aliases(name) for name in sys.argv[1:]}
print(json.dumps({name: {op: [a.kind, a.formula] for op, a in table.items()} for name, table in tables.items()}))
"""


def test_tables_do_not_depend_on_the_order_in_which_they_are_loaded():
    """Each alone, and all in several orders, in processes of their own."""
    shuffled = [random.Random(seed).sample(frameworks(), len(frameworks())) for seed in range(2)]
    for order in (*([name] for name in frameworks()), frameworks(), *shuffled):
        done = subprocess.run([sys.executable, "-c", _LOADED_IN, *order], capture_output=True, text=True, check=True)
        for framework, found in json.loads(done.stdout).items():
            assert found == {op: [alias.kind, alias.formula] for op, alias in aliases(framework).items()}, order


# -- readings ------------------------------------------------------------------------------------------------


def told(
    framework: str, op: str, out: Sequence[Type], attrs: dict[str, Any] | None = None, *inputs: Type | None
) -> Cost:
    """By position, as most frameworks have their arguments."""
    return cost_of(framework, op, [Argument(str(i), one) for i, one in enumerate(inputs)], out, attrs or {})


@given(few, few, few, few, st.booleans(), st.booleans())
def test_a_product_costs_the_same_however_it_is_written(n: int, m: int, k: int, b: int, turn_a: bool, turn_b: bool):
    plain = cost("aten.bmm", t(b, n, m), self=t(b, n, k), mat2=t(b, k, m))
    x = t(b, k, n) if turn_a else t(b, n, k)
    y = t(b, m, k) if turn_b else t(b, k, m)
    out = [t(b, n, m)]
    assert told("megengine", "BatchedMatmul", out, {"transposeA": turn_a, "transposeB": turn_b}, x, y) == plain
    assert told("paddle", "pd_op.matmul", out, {"transpose_x": turn_a, "transpose_y": turn_b}, x, y) == plain
    assert told("jittor", "cublas_batched_matmul", out, {}, x, y) == plain
    if not turn_a:
        assert told("hidet", "BatchMatmul", out, {"transpose_b": turn_b}, x, y) == plain
    rows = cost("aten.linear", t(n, m), input=t(n, k), weight=t(m, k), bias=t(m))
    assert told("paddle", "linear", [t(n, m)], {}, t(n, k), t(k, m), t(m)) == rows


@given(convolutions())
@settings(max_examples=20, deadline=None)
def test_a_convolution_costs_the_same_however_it_is_written(c: dict[str, Any]):
    meter = Meter()
    made, sizes, _ = naive_conv(c, meter)
    x, weight, out = t(*c["x"]), t(*sizes), t(*made)
    one = Cost(macs=meter.macs)
    grouped = t(c["groups"], sizes[0] // c["groups"], *sizes[1:])
    assert told("megengine", "Convolution", [out], {"sparse": "GROUP"}, x, grouped) == one
    assert told("megengine", "ConvBias", [out], {"nonlineMode": "RELU"}, x, weight, t(c["out"])).other == 2 * prod(made)
    assert told("hidet", "Conv2d", [out], {}, x, weight) == one
    assert told("jittor", "mkl_conv", [out], {}, x, weight) == one
    assert told("jittor", "mkl_conv_backward_x", [x], {}, weight, out) == one
    assert told("jittor", "mkl_conv_backward_w", [weight], {}, x, out) == one
    nobody = Type("", None)
    assert told("paddle", "pd_op.conv2d_grad", [x, weight], {}, x, weight, out).macs == 2 * meter.macs
    assert told("paddle", "pd_op.conv2d_grad", [nobody, weight], {}, x, weight, out) == one
    # A node of eager autograd lists only what it computes, and may not know its shape.
    assert told("paddle", "Conv2dGradNodeFinal", [nobody, weight], {}, x, weight, out).macs == 2 * meter.macs
    assert told("paddle", "Conv2dGradNodeFinal", [weight], {}, x, weight, out) == one


def test_norms_cost_the_same_however_they_are_written():
    x, w = t(2, 3, 4), t(3)
    training, evaluation = 24 * 8, 24 * 4
    assert told("megengine", "BatchNorm", [x], {"fwd_mode": "TRAINING"}, x, w, w).other == training
    assert told("megengine", "BatchNorm", [x], {"fwd_mode": "INFERENCE"}, x, w, w).other == evaluation
    assert told("paddle", "batch_norm", [x], {"is_test": False}, x, w, w, w, w).other == training
    assert told("paddle", "batch_norm", [x], {"is_test": True}, x, w, w, w, w).other == evaluation
    assert cost("aten._native_batch_norm_legit_no_training", x, input=x, weight=w, bias=w).other == evaluation
    assert told("hidet", "Normalize", [x], {"dims": [2]}, x).other == 24 * 6
    assert told("paddle", "instance_norm", [x], {}, x, w, w).other == training
    nobody = Type("", None)
    assert told("paddle", "pd_op.layer_norm_grad", [x, nobody, w], {}, x).other == 24 * 11


def test_pools_cost_the_same_however_they_are_written():
    x, out = t(1, 2, 8, 8), t(1, 2, 4, 4)
    looked = 2 * 16 * 6
    assert cost("aten.max_pool2d", out, {"kernel_size": [2, 3]}, self=x).other == looked
    assert told("hidet", "MaxPool2d", [out], {"kernel": [2, 3]}, x).other == looked
    assert told("megengine", "Pooling.MAX", [out], {"window_h": 2, "window_w": 3}, x).other == looked
    assert told("paddle", "pd_op.pool2d", [out], {"kernel_size": [2, 3]}, x).other == looked
    assert told("paddle", "pd_op.pool2d", [out], {"adaptive": True}, x).other == 2 * 64
    assert told("hidet", "AdaptiveAvgPool2d", [out], {}, x).other == 2 * 64


def test_optimizers_update_one_parameter_or_a_list():
    lists = {"self__0_at_": t(2, 3), "self__1_at_": t(5)}
    assert cost("aten._fused_sgd_", [t(2, 3), t(5)], {"momentum": 0.9}, **lists).other == 5 * 11
    assert told("paddle", "pd_op.momentum_", [t(11)], {}, t(11)).other == 5 * 11
    assert told("paddle", "pd_op.sgd_", [t(11)], {}, t(11)).other == 2 * 11
    assert told("paddle", "pd_op.adamw_", [t(11)], {}, t(11)).other == 13 * 11


# -- what is not known ---------------------------------------------------------------------------------------


def test_never_a_silent_zero():
    unknown = Cost(how="unknown")
    assert cost("mylib.fused", t(2), x=t(2)) == unknown
    assert cost("aten.relu", Type("float32", ("s0", 2)), self=Type("float32", ("s0", 2))) == unknown
    assert cost("aten.mm", Type("", None), self=Type("", None), mat2=t(2, 2)) == unknown
    assert cost("aten.mm", t(2, 2), self=t(2, 2)) == unknown
    assert cost("quantized.conv2d", t(1, 2, 3, 3), qx=t(1, 2, 3, 3)) == unknown
    assert cost("aten._sparse_mm", t(2, 2), sparse=t(2, 2), dense=t(2, 2)) == unknown
    assert cost("aten.view", Type("float32", ("s0", 2)), self=Type("", None)).how == "zero"


def test_estimates_are_marked():
    assert cost("aten.sort", [t(8), t(8)], self=t(8)) == Cost(other=24, how="estimated")
    assert cost("aten._fft_c2c", t(8, dtype="complex64"), {"dim": [0]}, self=t(8, dtype="complex64")).how == "estimated"
    product = cost(
        "aten.mm", t(2, 2, dtype="complex64"), self=t(2, 2, dtype="complex64"), mat2=t(2, 2, dtype="complex64")
    )
    assert product == Cost(macs=32, how="estimated")


any_type = st.one_of(
    st.none(),
    st.builds(
        Type,
        st.sampled_from(["float32", "int64", "bool", "", "weird", "complex64", "int"]),
        st.one_of(st.none(), st.lists(st.one_of(st.integers(0, 4), st.just("s0"), st.none()), max_size=4).map(tuple)),
    ),
)
any_value = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 4), st.text(max_size=3), st.floats()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_anything_a_file_may_say_gives_a_cost(data: Any):
    table = aliases("torch")
    op = data.draw(st.sampled_from(sorted({*table, *map(kind_of, RULES)})))
    places = table[op].places if op in table else {}
    names = [name for place in places.values() for name in (*place.names, str(place.position))]
    name = st.sampled_from([*names, "self", "input", "self[0]", "x", "0"])
    inputs = data.draw(st.lists(st.builds(Argument, name, any_type), max_size=4))
    outputs = data.draw(st.lists(any_type.filter(lambda found: found is not None), max_size=2))
    attrs = data.draw(st.dictionaries(st.sampled_from([*names, "kernel_size", "dim", "mode", "module"]), any_value))
    whole = op if "." in op else f"aten.{op}"
    found = cost_of("torch", whole, inputs, outputs, attrs)
    assert isinstance(found, Cost)
    assert found.macs >= 0
    assert found.other >= 0


# -- the user's own ------------------------------------------------------------------------------------------


def test_a_formula_of_the_users_comes_first():
    before = dict(registered)
    try:

        @formula("mylib.fused", framework="torch")
        def fused(inputs: Any, outputs: Any, attrs: Any) -> Cost:
            return Cost(macs=attrs["hidden"] * inputs[0].type.elements)

        @formula("aten.relu")
        def relu(inputs: Any, outputs: Any, attrs: Any) -> Cost | None:
            return Cost(other=7) if outputs[0].shape == (2,) else None

        assert cost("mylib.fused", t(2), {"hidden": 3}, x=t(2)) == Cost(macs=6)
        assert cost("mylib.fused.out", t(2), {"hidden": 3}, x=t(2)) == Cost(macs=6)
        assert cost_of("jittor", "mylib.fused", [], [], {}).how == "unknown"
        assert cost("aten.relu", t(2), self=t(2)) == Cost(other=7)
        assert cost("aten.relu", t(3), self=t(3)) == Cost(other=3)
    finally:
        registered.clear()
        registered.update(before)
