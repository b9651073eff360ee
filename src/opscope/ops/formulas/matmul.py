"""Matrix products. Each result is a sum of K products: K multiply-accumulates."""

from __future__ import annotations

from math import isqrt, prod

from opscope.ir.attributes import ROWS
from opscope.ops.call import Call, NotKnown, Shape, shape_of, size_of
from opscope.ops.cost import ESTIMATED, EXACT, Cost
from opscope.ops.kinds import kind


def product(a: Shape, b: Shape) -> Shape:
    """The shape of `a @ b`: matrices, vectors, and batches that are broadcast."""
    if not a or not b:
        raise NotKnown("the shape of a matrix")
    batch: list[int] = []
    x, y = a[:-2][::-1], b[:-2][::-1]
    for i in range(max(len(x), len(y))):
        # A size of 1 is broadcast, also over none at all.
        sizes = [s[i] for s in (x, y) if i < len(s) and s[i] != 1]
        batch.append(sizes[0] if sizes else 1)
    return (*batch[::-1], *(a[-2:-1]), *(b[-1:] if len(b) > 1 else ()))


def _added(call: Call, results: int) -> int:
    """What adding a bias (or `beta·self + alpha·(a @ b)`) costs."""
    if call.given("bias") is None or call.attr("beta", 1) == 0:
        return 0
    scales = [call.attr(name, 1) not in (1, 1.0) for name in ("alpha", "beta")]
    return results * (1 + sum(scales))


@kind("matmul")
def matmul(call: Call) -> Cost:
    a, b = call.shape("a"), call.shape("b")
    results = prod(product(a, b))
    return Cost(macs=results * a[-1], other=_added(call, results))


@kind("matmul/by-result")
def matmul_by_result(call: Call) -> Cost:
    """How the second matrix lies is not known, or flags say it; the result has all sizes but that of each sum."""
    a = call.shape("a")
    if not a:
        raise NotKnown("the shape of a matrix")
    is_turned = call.attr("transpose_a", False) and len(a) > 1
    return Cost(macs=size_of(call.out()) * a[-2 if is_turned else -1])


@kind("matmul/with-flags")
def matmul_with_flags(call: Call) -> Cost:
    """alpha·(a @ b) + beta·bias, where flags turn the matrices round."""
    cost = matmul_by_result(call)
    results = size_of(call.out())
    return cost._replace(other=_added(call, results) or results * (call.attr("alpha", 1) not in (1, 1.0)))


@kind("matmul/by-sizes")
def matmul_by_sizes(call: Call) -> Cost:
    """How either matrix lies is not known: (m·k)·(k·n)·(m·n) is (m·k·n) squared."""
    sizes = [size_of(a.type) for a in call.inputs if a.type is not None][:2]
    out = shape_of(call.out())
    batch = prod(out[:-2])
    if len(sizes) != 2 or not batch:
        raise NotKnown("operands")
    return Cost(macs=isqrt(sizes[0] * sizes[1] * prod(out) // batch))


@kind("matmul_backward")
def matmul_backward(call: Call) -> Cost:
    """Each gradient has as many products as the forward pass: for every result, one along the side summed over."""
    grad = call.shape("grad")
    if not grad:
        raise NotKnown("the shape of a matrix")
    rows, width = prod(grad[:-1]), grad[-1]
    if call.size("a") % max(rows, 1) == 0:
        inner = call.size("a") // max(rows, 1)
    else:  # the first matrix serves a whole batch
        inner = call.size("b") // max(prod(grad[:-2]) * width, 1)
    if not inner:
        raise NotKnown("the side that is summed over")
    return Cost(macs=prod(grad) * inner * sum(call.computed(2)))


@kind("linear")
def linear(call: Call) -> Cost:
    """x @ weight.T + bias."""
    x, weight = call.shape("x"), call.shape("weight")
    rows, width = prod(x[:-1]), prod(weight[:-1])
    return Cost(macs=rows * width * weight[-1], other=_added(call, rows * width))


@kind("linear/activated")
def linear_activated(call: Call) -> Cost:
    """x in rows as wide as the weight @ weight.T + bias, and an activation at the end."""
    results, width = size_of(call.out()), call.shape("weight")[-1]
    more = (call.given("bias") is not None) + (call.attr("activation", "NONE") != "NONE")
    return Cost(macs=results * width, other=results * more)


@kind("linear/by-result")
def linear_by_result(call: Call) -> Cost:
    """x @ weight + bias: the weight lies as [in, out]."""
    results = size_of(call.out())
    return Cost(macs=results * call.shape("x")[-1], other=_added(call, results))


@kind("linear/packed")
def linear_packed(call: Call) -> Cost:
    """Weight and bias are not among the tensors, but results and inputs say how large they are."""
    results = size_of(call.out())
    return Cost(macs=results * call.shape("x")[-1], other=results)


@kind("linear_backward")
def linear_backward(call: Call) -> Cost:
    one = call.size("grad") * call.shape("weight")[-1]
    asked = call.mask(3)
    return Cost(macs=one * (asked[0] + asked[1]), other=call.size("grad") if asked[2] else 0)


@kind("linear_backward/by-outputs")
def linear_backward_by_outputs(call: Call) -> Cost:
    return Cost(macs=call.size("grad") * call.shape("x")[-1] * sum(call.computed(2)))


@kind("vecdot")
def vecdot(call: Call) -> Cost:
    """Products of vectors, a batch of them."""
    return Cost(macs=max(size_of(a.type) for a in call.inputs if a.type is not None))


@kind("outer")
def outer(call: Call) -> Cost:
    return Cost(macs=call.size("a") * call.size("b"), other=_added(call, call.size("a") * call.size("b")))


@kind("summed_matmul")
def summed_matmul(call: Call) -> Cost:
    """A batch of products, added up into one matrix."""
    a, b = call.shape("a"), call.shape("b")
    return Cost(macs=prod(a) * b[-1], other=_added(call, a[-2] * b[-1]))


@kind("grouped_matmul")
def grouped_matmul(call: Call) -> Cost:
    """Rows in groups, each with its own matrix (the experts of a mixture). The numbers in `offs` say which rows are in
    a group: where they were not seen, all are taken to be."""
    a, b = call.shape("a"), call.shape("b")
    grouped = len(a) == 2 or len(b) == 2
    macs = prod(a[1:]) * b[-1] if len(a) == 3 and len(b) == 2 else prod(a) * b[-1]
    if not grouped or call.given("offs") is None:
        return Cost(macs=macs)
    rows = call.attr(ROWS)
    if not isinstance(rows, int) or isinstance(rows, bool):
        return Cost(macs=macs, how=ESTIMATED)
    # What the groups divide: rows of a, columns of b, or (two matrices) what is summed over.
    whole = b[-1] if len(a) == 3 else a[-1] if len(b) == 2 else a[0]
    return Cost(macs=macs // whole * min(rows, whole) if whole else 0)


@kind("tensordot")
def tensordot(call: Call) -> Cost:
    a, b = call.size("a"), call.size("b")
    results = size_of(call.out())
    return Cost(macs=results * isqrt(a * b // results) if results else 0)


@kind("multi_dot")
def multi_dot(call: Call) -> Cost:
    """From the left; a library may choose a cheaper order."""
    shapes = [shape_of(t) for t in call.listed("tensors")]
    if not shapes:
        raise NotKnown("tensors")
    macs, left = 0, shapes[0]
    for right in shapes[1:]:
        macs += prod(product(left, right)) * left[-1]
        left = product(left, right)
    return Cost(macs=macs, how=EXACT if len(shapes) == 2 else ESTIMATED)


@kind("einsum")
def einsum(call: Call) -> Cost:
    """Two operands as libraries compute them: what only one of them has is added up first; then every combination of
    the indices is one multiply-accumulate, or one multiplication where nothing is left to sum over (an axis of 1 is
    nothing). More: pair by pair from the left."""
    equation = call.attr("equation")
    shapes = [shape_of(t) for t in call.listed("tensors")]
    if not shapes:  # a call in Python, with the operands one by one
        shapes = [shape_of(a.type) for a in call.inputs if a.type is not None]
    if not isinstance(equation, str) or not shapes:
        raise NotKnown("equation")
    terms, result = _terms(equation.replace(" ", ""), shapes)
    sizes = [dict(zip(term, shape, strict=True)) for term, shape in zip(terms, shapes, strict=True)]
    if len(terms) == 1:
        return Cost(other=prod(shapes[0]))
    macs = other = 0
    left = sizes[0]
    for place, right in enumerate(sizes[1:], 2):
        more, adds, left = _pair(left, right, set(result).union(*terms[place:]))
        macs, other = macs + more, other + adds
    return Cost(macs=macs, other=other, how=EXACT if len(terms) == 2 else ESTIMATED)


def _terms(equation: str, shapes: list[Shape]) -> tuple[list[list[str]], list[str]]:
    """The indices of each operand and of the result. Those behind `...` get names, counted from the last."""
    given, arrow, made = equation.partition("->")
    names = given.split(",")
    if len(names) != len(shapes):
        raise NotKnown("operands")
    most = 0
    terms: list[list[str]] = []
    for name, shape in zip(names, shapes, strict=True):
        before, dots, after = name.partition("...")
        hidden = len(shape) - len(before) - len(after) if dots else 0
        most = max(most, hidden)
        terms.append([*before, *(f".{i}" for i in range(hidden, 0, -1)), *after])
    dotted = [f".{i}" for i in range(most, 0, -1)]
    if arrow:
        before, dots, after = made.partition("...")
        return terms, [*before, *(dotted if dots else []), *after]
    every = [index for term in terms for index in term]
    return terms, [*dotted, *(index for index in every if every.count(index) == 1 and not index.startswith("."))]


def _pair(a: dict[str, int], b: dict[str, int], kept: set[str]) -> tuple[int, int, dict[str, int]]:
    """MACs and other FLOPs of two operands, and the sizes of what comes out."""
    other = 0
    operands = (dict(a), dict(b))
    for mine, others in (operands, operands[::-1]):
        alone = [i for i, size in mine.items() if i not in kept and size > 1 and others.get(i, 1) == 1]
        if alone:
            other += prod(mine.values())
            mine.update(dict.fromkeys(alone, 1))
    sizes = {i: max(operand.get(i, 1) for operand in operands) for i in (*a, *b)}
    sums = any(size > 1 for i, size in sizes.items() if i not in kept)
    combinations = prod(sizes.values())
    made = {i: size for i, size in sizes.items() if i in kept}
    return (combinations, other, made) if sums else (0, other + combinations, made)


@kind("bilinear")
def bilinear(call: Call) -> Cost:
    """x1 @ weight for every output, and the result times x2."""
    outputs, _, inner = call.shape("weight")
    rows = prod(call.shape("x1")[:-1])
    macs = rows * (call.size("weight") + outputs * inner)
    return Cost(macs=macs, other=_added(call, rows * outputs))


@kind("trilinear")
def trilinear(call: Call) -> Cost:
    """What PyTorch makes of a bilinear layer and its gradients: (i1 · i2, summed) · i3, summed."""
    operands: list[Shape] = []
    for number in (1, 2, 3):
        shape = list(call.shape(f"i{number}"))
        for place in call.attr(f"expand{number}"):
            shape.insert(place, 1)
        operands.append(tuple(shape))
    first, second, third = operands
    summed: list[int] = call.attr("sumdim")
    pair = [max(sizes) for sizes in zip(first, second, strict=True)]
    third_expanded: list[int] = call.attr("expand3")
    middle = [1 if i in summed and i in third_expanded else size for i, size in enumerate(pair)]
    return Cost(macs=prod(pair) + prod(max(sizes) for sizes in zip(middle, third, strict=True)))


@kind("cdist")
def cdist(call: Call) -> Cost:
    """For every pair of rows: subtract, square (or another power), add up."""
    rows = call.shape("x1")[-2:-1] + call.shape("x2")[-2:-1]
    mode = call.attr("compute_mode")
    as_product = mode in (1, "use_mm_for_euclid_dist") or (
        mode in (None, 0, "use_mm_for_euclid_dist_if_necessary") and max(rows) > _FEW_ROWS
    )
    if as_product and call.attr("p", 2) == 2:
        return euclidean(call)
    return Cost(other=3 * size_of(call.out()) * call.shape("x1")[-1])


_FEW_ROWS = 25  # PyTorch writes the Euclidean distances of more as a product


@kind("cdist/as-product")
def euclidean(call: Call) -> Cost:
    """|x|² − 2·x·y + |y|² as one product, with the squares in two more columns; then the root."""
    pairs, width = size_of(call.out()), call.shape("x1")[-1]
    squares = call.size("x1") + call.size("x2")
    return Cost(macs=pairs * (width + 2), other=2 * pairs + 2 * squares + call.size("x1"))


@kind("sampled_matmul", "reduced_matmul", "matmul/sparse")
def sparse_matmul(call: Call) -> Cost:
    """A product with a sparse matrix: counted by its entries (ops/odd.py), where the capture has them."""
    raise NotKnown("entries")


@kind("cdist_backward")
def cdist_backward(call: Call) -> Cost:
    return Cost(other=4 * call.size("grad") * call.shape("x1")[-1])


@kind("pdist")
def pdist(call: Call) -> Cost:
    return Cost(other=3 * size_of(call.out()) * call.shape("self")[-1])
