"""The places where Paddle is touched: all that another version may have moved is named here."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from opscope.errors import OpscopeError
from opscope.tracers import arguments

# Methods of a tensor that run an operator without going through `_C_ops`, and the operator's name.
METHODS = {
    "__add__": "add", "__radd__": "add", "__sub__": "subtract", "__rsub__": "subtract", "__mul__": "multiply",
    "__rmul__": "multiply", "__truediv__": "divide", "__rtruediv__": "divide", "__div__": "divide",
    "__rdiv__": "divide", "__floordiv__": "floor_divide", "__rfloordiv__": "floor_divide", "__mod__": "remainder",
    "__rmod__": "remainder", "__pow__": "elementwise_pow", "__rpow__": "elementwise_pow", "__matmul__": "matmul",
    "__rmatmul__": "matmul", "__eq__": "equal", "__ne__": "not_equal", "__lt__": "less_than", "__le__": "less_equal",
    "__gt__": "greater_than", "__ge__": "greater_equal", "_getitem_dygraph": "getitem", "_setitem_dygraph": "setitem",
    "clone": "assign", "contiguous": "contiguous",
}  # fmt: skip


def the_paddle() -> Any:
    return importlib.import_module("paddle")


def root() -> str:
    """The folder of Paddle's own Python files."""
    return str(Path(the_paddle().__file__).parent) + os.sep


def core() -> Any:
    return importlib.import_module("paddle.base.core")


def engine() -> Any:
    """The module that holds `run_backward` and `run_partial_grad`, which every way to go backwards calls."""
    eager = core().eager
    if not (hasattr(eager, "run_backward") and hasattr(eager, "run_partial_grad")):
        raise OpscopeError(f"Paddle {the_paddle().__version__} runs its backward pass in a way opscope does not know")
    return eager


def node_type() -> Any:
    """The class of gradient nodes."""
    return importlib.import_module("paddle.base.libpaddle").GradNodeBase


def operators() -> Any:
    return importlib.import_module("paddle._C_ops")


def parameter_type() -> type[Any]:
    return importlib.import_module("paddle.base.framework").EagerParamBase


def is_leaf_node(node: Any) -> bool:
    return str(node.name()) == "GradNodeAccumulation"


def can_hook(name: str) -> bool:
    """A post hook on these is refused, or silently never called."""
    return not (name == "GradNodeAccumulation" or name.startswith(("GradNodePyLayer", "Dy2St")))


def gradient_node(tensor: Any) -> Any:
    """None for a tensor that takes no gradient. What it refers to lives no longer for having been looked at:
    Paddle 3.3.1 counts one reference too many each time it hands out `grad_fn`, and so would keep the whole graph and
    all that it saved for ever."""
    if tensor.stop_gradient:
        return None
    node = tensor.grad_fn
    if node is not None and counts_one_too_many():
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(node))
    return node


@cache
def counts_one_too_many() -> bool:
    """Beside a node that was reached another way, which is counted as it should be. Asked before any recording begins,
    since it runs operators."""
    paddle = the_paddle()
    with paddle.enable_grad():
        leaf = paddle.zeros([1])
        leaf.stop_gradient = False
        node = (leaf * 2.0 * 2.0).grad_fn
    (other,) = node.next_functions
    return sys.getrefcount(node) == sys.getrefcount(other) + 1


def tensors_in(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Name and tensor of all tensors in a value."""
    return arguments.tensors_in(the_paddle().Tensor, value, name)
