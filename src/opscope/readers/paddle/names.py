"""What PaddlePaddle calls things, and what we make of it."""

from __future__ import annotations

import re

ACCUMULATION = "GradNodeAccumulation"

_UNIQUE = re.compile(r"([a-z]\w*?)(?<!\d)(\d+)GradNode")
# Operators whose own name ends in a number: `log21GradNode` is the first log2.
_ENDS_IN_NUMBER = ("log10", "log2", "atan2", "expm1")
_GRAD_NAME = re.compile(r"(\w+?)(?:Double|Triple)?Grad(?:Grad)?Node(?:Final)?")


def grad_op(name: str) -> str:
    """`add5GradNode` as `AddGradNode`: with FLAGS_enable_unique_name (or GLOG_v=6) Paddle numbers its nodes."""
    found = _UNIQUE.fullmatch(name)
    if found is None:
        return name or "unnamed"
    base, number = found.groups()
    for known in _ENDS_IN_NUMBER:
        whole = base + number
        if whole.startswith(known) and whole[len(known) :].isdigit():
            base = known
    return "".join(part[:1].upper() + part[1:] for part in base.split("_")) + "GradNode"


def forward_op(grad_name: str) -> str:
    """What a node is the gradient of: `Conv2dGradNodeFinal` of `conv2d`, `GradNodePyLayer_Twice` of `Twice`."""
    name = grad_op(grad_name)
    if name.startswith("GradNodePyLayer_"):
        return name.removeprefix("GradNodePyLayer_") or "PyLayer"
    if name.startswith("Dy2St"):
        return "run_program"
    found = _GRAD_NAME.fullmatch(name)
    return snake(found[1]) if found else name


def snake(name: str) -> str:
    """`FlashAttn` as `flash_attn`; digits stay where they are (`Conv2d` is `conv2d`)."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


# PIR's own words for the element types.
PIR_DTYPES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "ui8": "uint8", "bool": "bool", "c64": "complex64", "c128": "complex128",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "index": "index",
}  # fmt: skip


def dtype(text: str) -> str:
    """`paddle.float32` and `float32` as `float32`; "" for what is not a type."""
    name = text.strip().removeprefix("paddle.")
    return name if re.fullmatch(r"[a-z]+\d*(?:_e\dm\d\w*)?", name) and name not in ("undefined", "all") else ""
