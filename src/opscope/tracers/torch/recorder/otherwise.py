"""What PyTorch itself runs in another way while any dispatch mode, and so the recorder, is active.

Many gradient formulas, the autograd engine and some functions of linear algebra ask whether a mode is active. If so,
they do not write in place, do not look at numbers, or compute more than was asked for. Nothing outside of PyTorch can
change that, so the operators that show it are marked. The tables were measured with PyTorch's profiler on every
operator of its own database, with an empty mode and without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

DIGITS = ", whose last digits may differ"
_SAME = ", with the same result"
_SUM = "aten.add_, where nothing else holds the gradient"

# Gradient functions that take another formula.
_FORMULAS = {
    "CtcLossBackward0": _SAME,
    "CumprodBackward0": _SAME,
    "LinalgMatrixExpBackward0": _SAME,
    "MaskedFillBackward1": DIGITS,
    "MaxBackward1": _SAME,
    "MedianBackward0": _SAME,
    "MinBackward1": _SAME,
    "NanmedianBackward0": _SAME,
    "OrmqrBackward0": DIGITS,
    "ProdBackward0": DIGITS,
    "ProdBackward1": DIGITS,
}

# Gradient functions that run an operator which returns a new tensor for one that writes in place.
_RETURNS_NEW = {
    "BinaryCrossEntropyBackward0": ("aten.mul", "aten.sub"),
    "BinaryCrossEntropyWithLogitsBackward0": ("aten.mul", "aten.sub"),
    "ClampBackward0": ("aten.logical_and", "aten.logical_or"),
    "CummaxBackward0": ("aten.scatter_add",),
    "CumminBackward0": ("aten.scatter_add",),
    "GatherBackward0": ("aten.scatter_add",),
    "IndexSelectBackward0": ("aten.index_add",),
    "KthvalueBackward0": ("aten.scatter",),
    "MaxBackward0": ("aten.scatter",),
    "MedianBackward1": ("aten.scatter",),
    "MinBackward0": ("aten.scatter",),
    "ModeBackward0": ("aten.scatter",),
    "NanmedianBackward1": ("aten.scatter",),
    "SortBackward0": ("aten.scatter",),
    "SortBackward1": ("aten.scatter",),
    "TopkBackward0": ("aten.scatter",),
}

# Operators that always compute vectors under a mode, and in which outputs.
_VECTORS = {"aten._linalg_svd": (0, 2), "aten._linalg_eigh": (1,)}


def of_gradients(function: str, op: str, is_sum: bool) -> str:
    """What runs without a recorder instead of an operator of a gradient function, if another one does. `is_sum`:
    gradients meet there."""
    if is_sum:
        return _SUM if op.startswith("aten.add.") else ""
    if function in _FORMULAS:
        return f"another formula for {function}{_FORMULAS[function]}"
    shown = ".".join(op.split(".")[:2])
    return f"{shown}_" if shown in _RETURNS_NEW.get(function, ()) else ""


def of_matrices(op: str, made: Sequence[int], is_needed: Callable[[int], bool], is_complex: Callable[[], bool]) -> str:
    """The same of an operator of linear algebra that made these values."""
    if op.startswith("aten.linalg_pinv") and is_complex():
        return f"{op}{DIGITS}"
    slots = _VECTORS.get(op, ())
    if slots and len(made) > max(slots) and not any(is_needed(made[slot]) for slot in slots):
        return f"{op} without vectors{DIGITS}"
    return ""
