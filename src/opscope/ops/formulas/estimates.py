"""What depends on the data or the library: the textbook figure, marked as an estimate."""

from __future__ import annotations

from math import ceil, log2, prod

from opscope.ops.call import Call, NotKnown, shape_of
from opscope.ops.cost import ESTIMATED, Cost
from opscope.ops.kinds import kind


def _compared(size: int, depth: int) -> Cost:
    return Cost(other=size * max(1, ceil(log2(depth))) if depth > 0 else 0, how=ESTIMATED)


def _along(call: Call) -> int:
    """The length of the dimension it works along."""
    shape = shape_of(call.first())
    dim = call.attr("dim", -1)
    if not shape or not isinstance(dim, int):
        return prod(shape)
    return shape[dim]


@kind("sort", "msort", "unique", "median", "kthvalue", "mode", "quantile")
def sort(call: Call) -> Cost:
    """n·log₂ n comparisons."""
    return _compared(call.taken(), _along(call))


@kind("topk")
def topk(call: Call) -> Cost:
    """n·log₂ k comparisons: a heap of k."""
    k = shape_of(call.out())
    dim = call.attr("dim", -1)
    return _compared(call.taken(), (k[dim] if k and isinstance(dim, int) else 1) + 1)


@kind("searchsorted")
def searchsorted(call: Call) -> Cost:
    """log₂ of the number of borders, for each result."""
    borders = call.shape("borders")
    return _compared(call.made(), (borders[-1] if borders else 1) + 1)


@kind("histogram", "bincount", "isin")
def histogram(call: Call) -> Cost:
    """Find the bin, add one."""
    return Cost(other=3 * call.taken(), how=ESTIMATED)


@kind("multinomial")
def multinomial(call: Call) -> Cost:
    return Cost(other=2 * call.taken(), how=ESTIMATED)


@kind("fft")
def fft(call: Call) -> Cost:
    """5·n·log₂ n for a complex transform of n points, half of it for a real one."""
    given, made = shape_of(call.first()), shape_of(call.out())
    whole = given if prod(given) >= prod(made) else made
    dims = call.attr("dim", [-1])
    if isinstance(dims, int):
        dims = [dims]
    points = prod(whole[d] for d in dims) if dims else prod(whole)
    if points <= 0:
        return Cost(how=ESTIMATED)
    real = not (call.first().dtype.startswith("complex") and call.out().dtype.startswith("complex"))
    return Cost(other=ceil(prod(whole) * log2(max(points, 2)) * (2.5 if real else 5)), how=ESTIMATED)


# n³ times this, for each matrix: the leading term of the usual algorithm.
_CUBED = {"cholesky": 1 / 3, "lu": 2 / 3, "qr": 4 / 3, "inverse": 2, "det": 2 / 3, "eigh": 9, "eig": 25, "svd": 22}


def _cubed(factor: float, call: Call) -> Cost:
    *batch, rows, columns = shape_of(call.first())
    few = min(rows, columns)
    return Cost(other=ceil(prod(batch) * factor * rows * columns * few), how=ESTIMATED)


for _name, _factor in _CUBED.items():
    kind(_name)(lambda call, factor=_factor: _cubed(factor, call))


@kind("solve")
def solve(call: Call) -> Cost:
    """Decompose the matrix, then two triangular systems for each right-hand side."""
    *batch, n, _ = call.shape("a")
    return Cost(other=ceil(prod(batch) * 2 / 3 * n**3) + 2 * n * call.size("b"), how=ESTIMATED)


@kind("least_squares")
def least_squares(call: Call) -> Cost:
    """Decompose the matrix into Q and R, multiply each right-hand side with Q, solve with R."""
    *batch, rows, columns = call.shape("a")
    few = min(rows, columns)
    sides = call.size("b") // max(prod(batch) * rows, 1)
    decomposed = 4 / 3 * rows * columns * few
    return Cost(other=ceil(prod(batch) * (decomposed + sides * few * (4 * rows + few))), how=ESTIMATED)


@kind("ldl_solve")
def ldl_solve(call: Call) -> Cost:
    """Two triangular systems for each right-hand side."""
    return Cost(other=2 * call.shape("a")[-1] * call.size("b"), how=ESTIMATED)


@kind("orthogonal_product")
def orthogonal_product(call: Call) -> Cost:
    """Each reflector is multiplied with every column of the other matrix, and taken off it."""
    return Cost(other=4 * call.shape("tau")[-1] * call.size("other"), how=ESTIMATED)


@kind("triangular_solve")
def triangular_solve(call: Call) -> Cost:
    return Cost(other=call.shape("a")[-1] * call.size("b"), how=ESTIMATED)


@kind("matrix_power")
def matrix_power(call: Call) -> Cost:
    n = call.attr("n")
    if not isinstance(n, int):
        raise NotKnown("n")
    size = shape_of(call.first())
    products = max(abs(n).bit_length() - 1, 0) + max(abs(n).bit_count() - 1, 0)
    return Cost(macs=products * prod(size) * size[-1], how=ESTIMATED)


@kind("ctc_loss", "ctc_loss_backward")
def ctc_loss(call: Call) -> Cost:
    """Three additions of logarithms (3 each) for each time and each place of the padded target."""
    time, batch = call.shape("log_probs")[:2]
    targets = call.size("targets")
    return Cost(other=9 * time * (2 * targets + batch), how=ESTIMATED)


@kind("multi_margin_loss", "multilabel_margin_loss", "multi_margin_loss_backward", "triplet_loss")
def margin_loss(call: Call) -> Cost:
    return Cost(other=5 * call.taken(), how=ESTIMATED)
