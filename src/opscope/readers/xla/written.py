"""Attributes of HLO instructions as opscope keeps them: the same whether they were read from text or from a proto."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .fields import integer, integers, message, messages

# Of each dimension of a window: size, stride, padding below and above, dilation of the window and of what it slides
# over, and whether it is reversed; all but the size with what they are when they are not written.
_PLAIN = (1, 0, 0, 1, 1, 0)
_SHARDING_KINDS = {0: "replicated", 1: "maximal", 4: "manual", 5: "unknown"}


def window(rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Of several dimensions, each: size, stride, pad low, pad high, window dilation, base dilation, reversed."""
    if not rows:
        return {}
    size, stride, low, high, rhs, lhs, turned = ([row[i] for row in rows] for i in range(7))
    found: dict[str, Any] = {"size": size}
    for name, values, plain in (
        ("stride", stride, 1),
        ("pad", [list(pair) for pair in zip(low, high, strict=True)], [0, 0]),
        ("lhs_dilate", lhs, 1),
        ("rhs_dilate", rhs, 1),
        ("rhs_reversal", turned, 0),
    ):
        if any(value != plain for value in values):
            found[name] = values
    return {"window": found}


def window_in_text(text: str) -> dict[str, Any]:
    """`{size=3x3 pad=1_1x1_1}`."""
    parts = dict(part.split("=", 1) for part in text.strip("{} ").split() if "=" in part)
    sizes = _by_x(parts.get("size", ""))
    count = len(sizes)
    pads = [_by_x(pair, "_") for pair in parts["pad"].split("x")] if "pad" in parts else [[0, 0]] * count
    stride, lhs, rhs, turned = (
        _by_x(parts[name]) if name in parts else [plain] * count
        for name, plain in (("stride", 1), ("lhs_dilate", 1), ("rhs_dilate", 1), ("rhs_reversal", 0))
    )
    return window([[sizes[i], stride[i], pads[i][0], pads[i][1], rhs[i], lhs[i], turned[i]] for i in range(count)])


def _by_x(text: str, between: str = "x") -> list[int]:
    return [int(part) for part in text.split(between) if part]


def slices(rows: Sequence[tuple[int, int, int]]) -> list[list[int]]:
    """Start, limit and stride of each dimension."""
    return [list(row) for row in rows]


def slices_in_text(text: str) -> list[list[int]]:
    """`{[0:8], [0:128:2]}`."""
    found: list[list[int]] = []
    for part in re.findall(r"\[([-\d:]+)\]", text):
        numbers = [int(number) for number in part.split(":")]
        found.append([*numbers, 1][:3] if len(numbers) >= 2 else [*numbers, 0, 1][:3])
    return found


def padding(rows: Sequence[tuple[int, int, int]]) -> list[list[int]]:
    """Below, above and between, of each dimension."""
    return [list(row) for row in rows]


def padding_in_text(text: str) -> list[list[int]]:
    """`0_0x1_1_2`."""
    return [[*map(int, part.split("_")), 0][:3] for part in text.split("x") if part]


def dim_labels(*parts: tuple[int, int, Sequence[int]]) -> str:
    """`b01f_01io->b01f`, from the places of batch, feature and spatial dimensions of input, kernel and result."""
    written = [
        _labels(one, other, spatial, names)
        for (one, other, spatial), names in zip(parts, ("bf", "io", "bf"), strict=True)
    ]
    return f"{written[0]}_{written[1]}->{written[2]}"


def _labels(one: int, other: int, spatial: Sequence[int], names: str) -> str:
    at = {one: names[0], other: names[1], **{place: str(i) for i, place in enumerate(spatial)}}
    return "".join(at.get(i, "?") for i in range(2 + len(spatial)))


def shardings(data: bytes, depth: int = 0) -> str:
    """OpSharding as HLO writes it: `{devices=[2,4]<=[8]}`, `{replicated}`."""
    found = message(data)
    kind = integer(found.get(1))
    if kind == 2 and depth < 8:
        return "{" + ", ".join(shardings(part, depth + 1) for part in messages(found.get(5))) + "}"
    if kind == 1:
        return f"{{maximal device={next(iter(integers(found.get(4, []))), 0)}}}"
    if kind in _SHARDING_KINDS:
        return f"{{{_SHARDING_KINDS[kind]}}}"
    tile = ",".join(map(str, integers(found.get(3, []))))
    if 9 in found:
        devices = f"<=[{','.join(map(str, integers(found[9])))}]"
        turned = integers(found.get(10, []))
        if turned != sorted(turned):
            devices += f"T({','.join(map(str, turned))})"
    else:
        devices = ",".join(map(str, integers(found.get(4, []))))
    last = " last_tile_dim_replicate" if integer(found.get(6)) else ""
    return f"{{devices=[{tile}]{devices}{last}}}"
