"""The types in printed graphs: `bf16[8, 512][512, 1]cuda:0`, `Sym(s0)`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from opscope.ir import dtypes
from opscope.ir.pools import Dim

_TENSOR = re.compile(r"^(?P<dtype>[a-z]\w*)\[(?P<shape>[^\[\]]*)\](?:\[(?P<stride>[^\[\]]*)\])?(?P<device>[\w:]*)$")
_SYMBOLIC = re.compile(r"^(?:Sym(?P<kind>Int|Float|Bool)?\((?P<text>.*)\))$", re.DOTALL)
# torch.utils._dtype_abbrs where it differs from what everybody writes
_SHORT = {"b8": "bool", "c32": "complex32", "f4e2m1fnx2": "float4_e2m1fn_x2", "b16": "bits16", "b1x8": "bits1x8"}
_MOST_DIMS = 64


class Annotation(NamedTuple):
    dtype: str
    shape: tuple[Dim, ...]
    stride: tuple[Dim, ...] | None
    device: str


@lru_cache(maxsize=20_000)
def annotation(text: str) -> Annotation | None:
    """None for anything that is no tensor and no symbolic number."""
    text = text.strip()
    tensor = _TENSOR.match(text)
    if tensor:
        shape = _dims(tensor["shape"])
        name = _SHORT.get(tensor["dtype"], tensor["dtype"])
        found = dtypes.find(name)
        stride = _dims(tensor["stride"]) if tensor["stride"] is not None else None
        return Annotation(found.name if found else name, shape, stride, tensor["device"])
    symbolic = _SYMBOLIC.match(text)
    if symbolic:
        kind = {"Float": "float64", "Bool": "bool"}.get(symbolic["kind"] or "", "int64")
        return Annotation(kind, (), None, "")
    return None


def _dims(text: str) -> tuple[Dim, ...]:
    """Sizes at the commas that are in no bracket: `2, s0, Max(1, s1)`."""
    if not text.strip():
        return ()
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    sizes = [part.strip() for part in parts if part.strip()][:_MOST_DIMS]
    return tuple(int(size) if size.isdigit() and len(size) < 19 else size for size in sizes)
