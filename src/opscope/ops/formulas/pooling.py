"""Pooling and resampling: one operation for each element that a result is made from."""

from __future__ import annotations

import re
from math import prod

from opscope.ops.call import Call, NotKnown, Shape, shape_of, size_of
from opscope.ops.cost import Cost
from opscope.ops.kinds import MOVE, kind


def _dimensions(call: Call, sizes: Shape) -> int:
    kernel = call.attr("kernel_size")
    if isinstance(kernel, list | tuple) and kernel:
        return len(kernel)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    found = call.attr("dimensions")
    return found if isinstance(found, int) else len(sizes) - 2


@kind("max_pool", "avg_pool")
def pool(call: Call) -> Cost:
    """Every place of the window, also those on padding."""
    results = shape_of(call.out())
    return Cost(other=prod(results) * prod(call.numbers("kernel_size", _dimensions(call, results))))


@kind("max_pool/by-sides", "avg_pool/by-sides", "pool/by-sides")
def pool_by_sides(call: Call) -> Cost:
    """Height and width of the window are two attributes."""
    return Cost(other=size_of(call.out()) * int(call.attr("height")) * int(call.attr("width")))


@kind("max_pool/whole-window", "avg_pool/whole-window")
def pool_whole_window(call: Call) -> Cost:
    """The window has a size for every dimension, also for batch and channels, where it is 1."""
    results = shape_of(call.out())
    return Cost(other=prod(results) * prod(call.numbers("kernel_size", len(results))))


@kind("pool")
def pool_of_any_kind(call: Call) -> Cost:
    """One operator for all pools: attributes say which one it is."""
    return (adaptive_pool if _is_adaptive(call) else pool)(call)


def _is_adaptive(call: Call) -> bool:
    return bool(call.attr("global_pooling", False) or call.attr("adaptive", False))


@kind("pool_backward")
def pool_backward(call: Call) -> Cost:
    """Where nothing says which pool it is, a maximum: the gradients of an average go to more places."""
    if call.attr("pooling_type", "max") == "max":
        return max_pool_backward(call)
    return (adaptive_pool_backward if _is_adaptive(call) else avg_pool_backward)(call)


@kind("avg_pool_backward")
def avg_pool_backward(call: Call) -> Cost:
    """Every gradient goes to all places of its window."""
    grad = call.shape("grad")
    return Cost(other=prod(grad) * prod(call.numbers("kernel_size", _dimensions(call, grad))))


@kind("max_pool_backward", "adaptive_pool_backward/max")
def max_pool_backward(call: Call) -> Cost:
    """Every gradient is added to one place."""
    return Cost(other=call.size("grad"))


# Where the window along one axis ends, in the code of Jittor's pools: `int k3_ = min(k3 + 3, in0_shape3);`.
_WINDOW = re.compile(r"int k(\d)_ = (?:std::)?min\(k\1 \+ (\d+), in0_?shape\1\);")


@kind("code")
def code(call: Call) -> Cost:
    """An operator written out in C++. Jittor's own pools are, and say their windows; all other code is not known."""
    text = call.attr("code")
    windows = dict(_WINDOW.findall(text)) if isinstance(text, str) else {}
    reads_window = isinstance(text, str) and "p < k2_" in text and "q < k3_" in text
    if len(windows) not in (2, 3) or not reads_window or len(call.outputs) != 1:
        raise NotKnown("what the code does")
    places = prod(map(int, windows.values()))
    if "@dout(" not in text:
        return Cost(other=size_of(call.out()) * places)
    gradients = size_of(call.inputs[1].type) if call.inputs[1].type is not None else 0
    picks_one = "@pout(" in text and "==" in text  # of a maximum
    return Cost(other=gradients * (1 if picks_one else places))


def covered(size: int, results: int) -> int:
    """Elements in all windows of an adaptive pool together, in one dimension: they may overlap."""
    return sum(-(-(i + 1) * size // results) - i * size // results for i in range(results))


def _windows(large: Shape, small: Shape, pooled: int) -> int:
    """Elements in all windows, over the last `pooled` dimensions."""
    inside, outside = large[len(large) - pooled :], small[len(small) - pooled :]
    return prod(small[: len(small) - pooled]) * prod(map(covered, inside, outside))


def _pooled(large: Shape, small: Shape) -> int:
    if len(large) != len(small):
        raise NotKnown("dimensions")
    return next((len(large) - i for i, pair in enumerate(zip(large, small, strict=True)) if pair[0] != pair[1]), 0)


@kind("adaptive_pool")
def adaptive_pool(call: Call) -> Cost:
    large, small = call.shape("x"), shape_of(call.out())
    return Cost(other=_windows(large, small, _pooled(large, small)))


@kind("adaptive_pool_backward")
def adaptive_pool_backward(call: Call) -> Cost:
    large, small = shape_of(call.out()), call.shape("grad")
    return Cost(other=_windows(large, small, _pooled(large, small)))


# A result that is mixed from n neighbours: n products and n - 1 sums.
_MIXED = {"linear": 3, "bilinear": 7, "trilinear": 15, "bicubic": 31}

for _name, _each in _MIXED.items():
    kind(f"upsample_{_name}")(lambda call, each=_each: Cost(other=each * size_of(call.out())))
    kind(f"upsample_{_name}_backward")(lambda call, each=_each: Cost(other=each * call.size("grad")))


@kind("upsample_nearest_backward")
def upsample_nearest_backward(call: Call) -> Cost:
    return Cost(other=call.size("grad"))


@kind("interpolate")
def interpolate(call: Call) -> Cost:
    mode = call.attr("mode", "nearest")
    if mode in ("nearest", "nearest-exact"):
        return MOVE
    if mode in _MIXED:
        return Cost(other=_MIXED[mode] * size_of(call.out()))
    return adaptive_pool(call)  # mode "area"


@kind("interpolate/by-sizes")
def interpolate_by_sizes(call: Call) -> Cost:
    """`linear` and `cubic` along every axis whose size changes."""
    mode = call.attr("mode", "nearest")
    if mode == "nearest":
        return MOVE
    before, after = call.shape("x"), shape_of(call.out())
    axes = sum(a != b for a, b in zip(before, after, strict=True))
    neighbours = {"linear": 2, "cubic": 4}[mode] ** axes
    return Cost(other=(2 * neighbours - 1) * prod(after)) if axes else MOVE


@kind("grid_sample")
def grid_sample(call: Call) -> Cost:
    """Where each point lies and how its neighbours weigh: 6 for each dimension and point; then the mixing."""
    grid = call.shape("grid")
    points, dimensions = prod(grid[:-1]), grid[-1]
    mode = call.attr("mode", call.attr("interpolation_mode", 0))
    linear, cubic = 2**dimensions, 16
    neighbours = {
        0: linear, "bilinear": linear, "linear": linear, 2: cubic, "bicubic": cubic, "cubic": cubic
    }.get(mode, 1)  # fmt: skip
    return Cost(other=6 * points * dimensions + size_of(call.out()) * (2 * neighbours - 1))


@kind("grid_sample_backward")
def grid_sample_backward(call: Call) -> Cost:
    """The gradients of the image (as many as forward) and of the grid (as many again, for each dimension)."""
    grid = call.shape("grid")
    points, dimensions = prod(grid[:-1]), grid[-1]
    mode = call.attr("interpolation_mode", 0)
    neighbours = {0: 2**dimensions, 2: 16}.get(mode, 1)
    asked = call.mask(2)
    mixing = call.size("grad") * (2 * neighbours - 1)
    return Cost(other=6 * points * dimensions + mixing * (asked[0] + dimensions * asked[1]))


@kind("affine_grid")
def affine_grid(call: Call) -> Cost:
    """A point times a small matrix: products and sums for each coordinate."""
    out = shape_of(call.out())
    return Cost(other=prod(out) * (2 * out[-1] + 1))
