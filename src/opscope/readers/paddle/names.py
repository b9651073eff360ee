"""What PaddlePaddle calls things, and what we make of it."""

from __future__ import annotations

import re
from collections.abc import Mapping

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


# Arguments in which an operator keeps numbers of its own from one call to the next, each with its place, by Paddle's
# own definition (ops.yaml hands them on as mean_out, out_scale, …). Paddle registers most of them as parameters that
# take no gradient, exactly as it does a frozen weight.
_STATE = """
batch_norm: mean@1 variance@2
sync_batch_norm: mean@1 variance@2
sparse_batch_norm: mean@1 variance@2
sparse_sync_batch_norm: mean@1 variance@2
spectral_norm: u@1 v@2
fake_quantize_dequantize_moving_average_abs_max: in_scale@1 in_accum@2 in_state@3
fake_quantize_moving_average_abs_max: in_scale@1 in_accum@2 in_state@3
fake_quantize_range_abs_max: in_scale@1 iter@2
moving_average_abs_max_scale: in_accum@1 in_state@2
quantize_linear: scale@1 zero_point@2 in_accum@3 in_state@4
rnn: dropout_state_in@4
"""


def _states(text: str) -> dict[str, int]:
    return {word: int(place) for word, _, place in (entry.partition("@") for entry in text.split())}


_STATES = {name: _states(words) for name, _, words in (line.partition(":") for line in _STATE.strip().splitlines())}


def state_of(op: str) -> Mapping[str, int]:
    """The arguments that are an operator's own state -> their places."""
    return _STATES.get(op.rstrip("_"), {})


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
