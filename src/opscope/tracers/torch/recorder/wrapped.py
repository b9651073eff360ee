"""Tensors of other classes that hold plain ones (DTensor, TwoTensor, jagged and masked tensors).

Such a class answers operators itself (`__torch_dispatch__`) and runs others on what it holds. Those are what really
runs: they are recorded, and the operator outside is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

OPAQUE = ("FakeTensor", "FunctionalTensor")  # torch's own, which hold nothing that runs
_DEEPEST = 4


def plain(tensor: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Name and tensor of all that a tensor holds; a plain one is itself."""
    return _plain(tensor, name, _DEEPEST)


def _plain(tensor: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    cls = cast("type[Any]", type(tensor))
    flatten = getattr(cls, "__tensor_flatten__", None)
    if flatten is None or cls.__name__ in OPAQUE or not depth:
        yield name, tensor
        return
    try:
        inner: Sequence[str] = list(tensor.__tensor_flatten__()[0])
        named = [(attribute, getattr(tensor, attribute)) for attribute in inner]
    except Exception:  # the user's class, or one that holds nothing now
        yield name, tensor
        return
    held = [(attribute, item) for attribute, item in named if hasattr(item, "untyped_storage")]  # or a DeviceMesh
    for attribute, item in held:
        suffix = "" if len(held) == 1 else f".{attribute.lstrip('_')}"
        yield from _plain(item, name + suffix, depth - 1)


def described(func: Any, args: Sequence[Any], types: Sequence[type[Any]]) -> str:
    """`aten.mm on DTensor[Shard(dim=0)], DTensor[Replicate()]`: the operator around those that are recorded."""
    words: list[str] = []
    for value in args:
        items = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
        for item in items:
            if isinstance(item, tuple(types)):
                placements: Any = getattr(item, "placements", None)
                inside = f"[{', '.join(map(str, placements))}]" if placements is not None else ""
                words.append(f"{type(item).__name__}{inside}")
    name = str(func).removesuffix(".default")
    return f"{name} on {', '.join(words[:8])}" if words else f"{name} of {', '.join(t.__name__ for t in types)}"
