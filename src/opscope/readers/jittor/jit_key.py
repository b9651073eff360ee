"""The jit_key of a fused kernel, taken apart.

A key is a list of fields after `«`: `opkey0:broadcast_to`, then the fields of that operator
(`Tx:float32`, `DIM=2`, `BCAST=1`), and so on; after the last operator come the fields of the kernel
(`JIT:1`, `graph:…`, `var_info::…`). The N of opkeyN is hexadecimal and says which of the fused
operators it is; so are the numbers after `=`. An operator that is not fused has a key without opkey:
`random«T:float32«R:uniform«JIT:1`.
"""

from __future__ import annotations

import re
import struct
from typing import Any, NamedTuple

_OPKEY = re.compile(r"opkey([0-9a-f]+):(.*)", re.DOTALL)
_FIELD = re.compile(r"(\w+)(=|:)(.*)", re.DOTALL)
_INDEX = re.compile(r"INDEX(\d+)$")

# Fields of the kernel as a whole, not of an operator in it.
_KERNEL_FIELDS = {"JIT", "JIT_cpu", "JIT_cuda", "graph", "var_info", "index_t", "choices"}
# What the operand types say already, or what only counts the fields after it.
_NOT_SHOWN = {"Tx", "Ty", "Tz", "Tc", "T", "Ti", "Td"}

_NAMES = {
    "OP": "kind",
    "DIM": "dims",
    "XDIM": "input_dims",
    "YDIM": "output_dims",
    "R": "distribution",
    "CMP": "compare",
    "KEEPDIMS": "keepdims",
    "OVERFLOW": "overflow",
    "CODE": "code",
    "HEADER": "header",
}


class JitKey(NamedTuple):
    """What a key says of each operator (by its place in the kernel), and of the kernel."""

    operators: dict[int, tuple[str, dict[str, Any]]]
    kernel: dict[str, str]


def parse(key: str) -> JitKey:
    operators: dict[int, tuple[str, dict[str, Any]]] = {}
    kernel: dict[str, str] = {}
    head, *fields = key.split("«")
    name = head
    raw: list[tuple[str, str, str]] = []
    index = 0

    def close() -> None:
        if name:
            operators[index] = (name, _attributes(raw))

    for field in fields:
        opkey = _OPKEY.fullmatch(field)
        if opkey is not None:
            close()
            index, name, raw = int(opkey[1][:8], 16), opkey[2], []
            continue
        match = _FIELD.fullmatch(field)
        if match is None:
            continue
        if match[1] in _KERNEL_FIELDS:
            kernel[match[1]] = match[3].lstrip(":")
        else:
            raw.append((match[1], match[2], match[3]))
    close()
    return JitKey(operators, kernel)


def _attributes(fields: list[tuple[str, str, str]]) -> dict[str, Any]:
    """Readable attributes: dims from bit masks, reindex expressions as a list, constants as numbers."""
    attrs: dict[str, Any] = {}
    dtype = next((value for name, _, value in fields if name == "T"), "")
    index: dict[int, str] = {}
    for name, mark, text in fields:
        place = _INDEX.match(name)
        if place is not None:
            index[int(place[1][:4])] = text
        elif name == "BCAST":
            attrs["broadcast_dims"] = _bits(text)
        elif name == "REDUCE":
            attrs["reduce_dims"] = _bits(text)
        elif name == "o":
            attrs["value"] = _constant(text, dtype)
        elif name not in _NOT_SHOWN:
            value = _hex(text) if mark == "=" else text
            if name in ("OSIZE", "ESIZE") and value == 0:
                continue
            attrs[_NAMES.get(name, name)] = value
    if index:
        attrs["index"] = [index[i] for i in sorted(index)]
    return attrs


def _hex(text: str) -> int | str:
    try:
        return int(text, 16)
    except ValueError:
        return text


def _bits(text: str) -> list[int] | str:
    mask = _hex(text)
    if isinstance(mask, str) or mask < 0 or mask.bit_length() > 64:
        return text
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def _constant(text: str, dtype: str) -> float | int | str:
    """The bits of a scalar, as a number of its type; left as text where the type is another one."""
    try:
        if dtype in ("float32", "int32", "uint32"):
            raw = bytes.fromhex(text.zfill(8))[::-1]
            return struct.unpack({"float32": "<f", "int32": "<i", "uint32": "<I"}[dtype], raw)[0]
        if dtype in ("float64", "int64"):
            raw = bytes.fromhex(text.zfill(16))[::-1]
            return struct.unpack({"float64": "<d", "int64": "<q"}[dtype], raw)[0]
    except (ValueError, struct.error):
        pass
    return text
