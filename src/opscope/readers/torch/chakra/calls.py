"""The calls in an execution trace, one inside the other, with the tensors that they read and made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, cast

from opscope.readers.torch.composite import AUTOGRAD
from opscope.readers.torch.names import cpp_dtype


class Tensor(NamedTuple):
    id: int
    storage: int
    offset: int
    dtype: str
    shape: tuple[int, ...] | None

    def like(self, other: Tensor) -> bool:
        return (self.offset, self.shape, self.dtype) == (other.offset, other.shape, other.dtype)


@dataclass(eq=False)
class Call:
    id: int
    name: str
    parent: int
    attrs: Mapping[str, Any]
    inputs: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]  # values, shapes, types
    outputs: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
    children: list[Call] = field(default_factory=list["Call"])

    @property
    def seq(self) -> int:
        value = self.attrs.get("seq_id")
        return value if isinstance(value, int) else -1

    @property
    def is_operator(self) -> bool:
        return "::" in self.name and not self.is_autograd and ": " not in self.name

    @property
    def is_autograd(self) -> bool:
        """A node of the autograd graph that runs: `ConvolutionBackward0`, or what the engine does around it."""
        return self.attrs.get("scope") == 1 or self.name.startswith(AUTOGRAD) or "::autograd::" in self.name

    @property
    def schema(self) -> str:
        value = self.attrs.get("op_schema")
        return value if isinstance(value, str) else ""

    def text(self, attr: str) -> str:
        value = self.attrs.get(attr)
        return str(value)[:100] if isinstance(value, int | str) else ""


def calls_in(raw: list[object]) -> list[Call]:
    """All calls, in the order in which they began: ids are given out as calls begin."""
    found: dict[int, Call] = {}
    for item in raw:
        if not isinstance(item, dict):
            continue
        entry = cast("dict[str, Any]", item)
        ident, name = entry.get("id"), entry.get("name")
        if not isinstance(ident, int) or not isinstance(name, str) or ident in found:
            continue
        parent = entry.get("ctrl_deps", entry.get("parent"))
        attrs = entry.get("attrs")
        listed: Mapping[str, Any] = entry  # before schema 1.0.2 they were in the node itself
        if isinstance(attrs, list):
            listed = {
                str(attr.get("name")): attr.get("value")
                for attr in cast("list[dict[str, Any]]", attrs)
                if isinstance(attr, dict)  # pyright: ignore[reportUnnecessaryIsInstance]
            }
        found[ident] = Call(
            ident, name, parent if isinstance(parent, int) else 0, listed, _io(entry, "input"), _io(entry, "output")
        )
    calls = sorted(found.values(), key=lambda call: call.id)
    for call in calls:
        parent = found.get(call.parent)
        if parent is not None and parent.id < call.id:
            parent.children.append(call)
    return calls


def _io(entry: Mapping[str, Any], kind: str) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    block = entry.get(f"{kind}s")
    if isinstance(block, dict):
        new = cast("Mapping[str, Any]", block)
        parts = (new.get("values"), new.get("shapes"), new.get("types"))
    else:
        parts = (block, entry.get(f"{kind}_shapes"), entry.get(f"{kind}_types"))
    values, shapes, types = (cast("Sequence[Any]", part) if isinstance(part, list) else () for part in parts)
    return values, shapes, types


def tensor_of(value: Any, shape: Any, type_: str) -> Tensor | None:
    """`[13, 14, 0, 4096, 4, "cpu"]`: tensor, storage, offset, elements, bytes each, device."""
    if not isinstance(value, list) or len(cast("list[Any]", value)) < 3:
        return None
    ident, storage, offset = cast("list[Any]", value)[:3]
    if not (isinstance(ident, int) and isinstance(storage, int) and isinstance(offset, int)) or storage == 0:
        return None
    sizes: tuple[int, ...] | None = None
    if isinstance(shape, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in cast("list[Any]", shape)):
        sizes = tuple(cast("list[int]", shape))
    dtype = type_.removeprefix("Tensor(").removesuffix(")")
    return Tensor(ident, storage, offset, cpp_dtype(dtype)[:60], sizes)


@lru_cache(maxsize=10_000)
def schema(text: str) -> tuple[str, tuple[str, ...], tuple[bool, ...]]:
    """(op, argument names, which of them are written to) of `aten::add_.Tensor(Tensor(a!) self, …) -> Tensor(a!)`."""
    name, _, rest = text.partition("(")
    arguments: list[str] = [""]
    depth = 0
    for char in rest:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            break
        if char == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += char
    names: list[str] = []
    written: list[bool] = []
    for argument in arguments:
        words = argument.partition("=")[0].split()
        if words and words[-1] != "*":
            names.append(words[-1])
            written.append("!" in argument)
    return name.strip().replace("::", "."), tuple(names), tuple(written)


def rows(io: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]) -> Iterator[tuple[Any, Any, str]]:
    values, shapes, types = io
    for i, value in enumerate(values):
        kind = types[i] if i < len(types) and isinstance(types[i], str) else ""
        yield value, shapes[i] if i < len(shapes) else None, kind


def flat(name: str, value: Any, shape: Any, type_: str) -> Iterator[tuple[str, Any, Any, str]]:
    """(path, value, shape, type) of the single values in an argument; `GenericList[Tensor(float),…]` is a list."""
    if not type_.startswith("GenericList[") or "Tensor(" not in type_ or not isinstance(value, list):
        yield name, value, shape, type_
        return
    items = cast("list[Any]", value)
    kinds = re.findall(r"Tensor\([^,\]]*\)|[^,]+", type_[len("GenericList[") : -1])
    shapes: list[Any] = cast("list[Any]", shape) if isinstance(shape, list) else []
    for i, item in enumerate(items):
        kind = kinds[i] if i < len(kinds) else kinds[-1] if kinds else ""
        yield f"{name}[{i}]", item, shapes[i] if i < len(shapes) else None, kind
