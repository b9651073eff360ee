"""How PyTorch's things are spelled in a capture: operators, types, and arguments that are not tensors.

Every way of capturing uses these, so that one operator has one name whichever way it was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from opscope.ir import Pools, dtypes
from opscope.ir.pools import Dim

_MOST_ITEMS = 64  # of a list among the attributes: more says nothing to a reader
_LONGEST_TEXT = 400


def op_name(op: Any) -> str:
    """`aten.add.Tensor`, `aten.mm`: an OpOverload as torch writes it, without the overload that all have."""
    return overload_name(str(op))


def overload_name(text: str) -> str:
    """The same from text: `aten.mm.default`, `aten::mm`, `aten::add.Tensor`."""
    return text.replace("::", ".").removesuffix(".default")


def dtype_name(dtype: Any) -> str:
    """`float32`."""
    return str(dtype).removeprefix("torch.")


def tensor_type(pools: Pools, tensor: Any) -> int:
    """The type of a tensor (real or fake, or the window that the recorder keeps of one), with symbols where its shape
    has them."""
    dtype = dtype_name(tensor.dtype)
    layout = getattr(tensor, "layout", "")
    if isinstance(layout, str) and layout:
        dtype = dtypes.sparse(layout, dtype)
    return pools.type(dtype, None if tensor.shape is None else [dim(size) for size in tensor.shape])


def dim(size: Any) -> Dim:
    """A size, or the symbol (`s77`, `2*s0`) that stands for it."""
    return size if type(size) is int else symbol(size)


def symbol(value: Any) -> Dim:
    """A SymInt: its number where it has become one, or else its expression."""
    node = getattr(value, "node", None)
    expression = getattr(node, "expr", value)
    text = str(expression)
    return int(text) if text.lstrip("-").isdigit() else text


def attribute(value: Any) -> Any:
    """An argument as JSON can hold it; what it cannot becomes its text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, list | tuple):
        return attributes(cast("list[Any]", value))
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        return {str(key): attribute(item) for key, item in list(entries.items())[:_MOST_ITEMS]}
    if isinstance(value, slice):
        piece = cast("slice[Any, Any, Any]", value)
        return f"{'' if piece.start is None else piece.start}:{'' if piece.stop is None else piece.stop}" + (
            "" if piece.step is None else f":{piece.step}"
        )
    if hasattr(value, "node") and hasattr(value.node, "expr"):
        return symbol(value)
    # dtypes, devices, layouts, memory formats: all say `torch.…` of themselves
    return _short(str(value).removeprefix("torch."))


def attributes(values: Iterable[Any]) -> list[Any]:
    listed = [attribute(value) for value in values]
    more = len(listed) - _MOST_ITEMS
    return listed if more <= 0 else [*listed[:_MOST_ITEMS], f"… {more} more"]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def numbers_of(torch: Any, tensor: Any) -> Any:
    """The numbers of a tensor as a numpy array, or None where it has none or they cannot be read."""
    if tensor.is_meta or type(tensor).__name__ == "FakeTensor":
        return None
    try:
        tensor = tensor.detach()
        if tensor.layout is not torch.strided:
            tensor = tensor.to_dense()
        if tensor.is_quantized:
            tensor = tensor.dequantize()
        if tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64):
            tensor = tensor.float()  # numpy has no bfloat16 and no float8
        return tensor.cpu().resolve_conj().resolve_neg().numpy()
    except (RuntimeError, NotImplementedError, TypeError):  # opaque layouts, wrappers without memory
        return None
