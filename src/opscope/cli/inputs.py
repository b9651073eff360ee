"""Inputs for a model, written on the command line: `1x3x224x224`, `2x16:int64:50`, `mask=2x16:bool`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.tracers.contract import Tracer

GRAMMAR = "[NAME=]SHAPE[:DTYPE[:BELOW]]"
_EXAMPLES = "such as 1x3x224x224, 2x16:int64:50 or mask=2x16:bool"
# In quotes, `<` may replace the second colon.
_INPUT = re.compile(r"(?:(\w+)=)?(scalar|\d+(?:x\d+)*)(?::([a-z]+\d*)(?:[:<](\d+))?)?")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
_DTYPES = (*_FLOATS, *_INTEGERS, "bool", "complex64", "complex128")
_MOST = 2**31  # numbers in one input


class Input(NamedTuple):
    """A tensor to be made: normal random numbers, whole ones from 0 up to and without `below`."""

    name: str  # empty: an argument by position
    shape: tuple[int, ...]
    dtype: str = "float32"
    below: int = 2


def parse(text: str) -> Input:
    """
    >>> parse("ids=2x16:int64:50")
    Input(name='ids', shape=(2, 16), dtype='int64', below=50)
    """
    found = _INPUT.fullmatch(text.strip())
    if found is None:
        raise OpscopeError(f"--input {text}: not {GRAMMAR}, {_EXAMPLES}")
    name, sizes, dtype, below = found.groups()
    if dtype is not None and dtype not in _DTYPES:
        raise OpscopeError(f"--input {text}: {dtype!r} is not a dtype (there are: {', '.join(_DTYPES)})")
    if below is not None and dtype not in _INTEGERS:
        raise OpscopeError(f"--input {text}: only whole numbers have an upper bound, {_EXAMPLES}")
    shape = () if sizes == "scalar" else tuple(map(int, sizes.split("x")))
    if np.prod([1, *map(float, shape)]) > _MOST:
        raise OpscopeError(f"--input {text}: more than {_MOST:,} numbers")
    given = Input(name or "", shape, dtype or "float32", 2 if below is None else int(below))
    limit = np.iinfo(given.dtype).max if given.dtype in _INTEGERS else 2
    if not 0 < given.below <= limit:
        raise OpscopeError(f"--input {text}: the upper bound of {given.dtype} is between 1 and {limit}")
    return given


def numbers(given: Input, seed: int = 0) -> npt.NDArray[Any]:
    """The same ones every time. bfloat16 and float16 are made as float32."""
    random = np.random.default_rng(seed)
    if given.dtype in _INTEGERS:
        return np.asarray(random.integers(0, given.below, given.shape), dtype=given.dtype)
    if given.dtype == "bool":
        return np.asarray(random.random(given.shape) < 0.5)
    if given.dtype.startswith("complex"):
        return np.asarray(random.normal(size=given.shape) + 1j * random.normal(size=given.shape), dtype=given.dtype)
    exact = np.float64 if given.dtype == "float64" else np.float32
    return np.asarray(random.normal(size=given.shape), dtype=exact)


def arguments(inputs: Sequence[Input], tracer: Tracer) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The tensors of a framework: those by position, and those by name."""
    tensor = tracer.tensor
    if tensor is None:
        raise OpscopeError(f"--input is not supported for {tracer.name}")
    made = [(given.name, tensor(numbers(given, seed), given.dtype)) for seed, given in enumerate(inputs)]
    return tuple(tensor for name, tensor in made if not name), {name: tensor for name, tensor in made if name}
