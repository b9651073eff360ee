"""Matrix products. Each result is a sum of K products: K multiply-accumulates."""

from __future__ import annotations

from math import isqrt, prod

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
    """Rows in groups, each with its own matrix (the experts of a mixture). All rows are taken to be in a group."""
    a, b = call.shape("a"), call.shape("b")
    if len(a) == 3 and len(b) == 2:
        return Cost(macs=prod(a[1:]) * b[-1])
    return Cost(macs=prod(a) * b[-1])


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
    """Two operands: every combination of the indices once. More: pair by pair from the left."""
    equation = call.attr("equation")
    shapes = [shape_of(t) for t in call.listed("tensors")]
    if not shapes:  # a call in Python, with the operands one by one
        shapes = [shape_of(a.type) for a in call.inputs if a.type is not None]
    if not isinstance(equation, str) or "..." in equation or not shapes:
        raise NotKnown("equation")
    terms, _, result = equation.replace(" ", "").partition("->")
    names = terms.split(",")
    if len(names) != len(shapes):
        raise NotKnown("operands")
    sizes = {i: n for term, shape in zip(names, shapes, strict=True) for i, n in zip(term, shape, strict=True)}
    if "->" not in equation:
        result = "".join(i for i in sizes if terms.count(i) == 1)
    if len(names) == 1:
        return Cost(other=prod(shapes[0]))
    macs, left = 0, set(names[0])
    for place, term in enumerate(names[1:], 2):
        macs += prod(sizes[i] for i in left | set(term))
        left = (left | set(term)) & (set(result) | set("".join(names[place:])))
    return Cost(macs=macs, how=EXACT if len(names) == 2 else ESTIMATED)


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
    return Cost(other=3 * size_of(call.out()) * call.shape("x1")[-1])


@kind("cdist_backward")
def cdist_backward(call: Call) -> Cost:
    return Cost(other=4 * call.size("grad") * call.shape("x1")[-1])


@kind("pdist")
def pdist(call: Call) -> Cost:
    return Cost(other=3 * size_of(call.out()) * call.shape("self")[-1])
