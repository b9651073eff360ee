"""What JAX writes into the name of an operation: `jit(step)/transpose(jvp(layer0))/attn/dot_general`.

The parts are the functions and named scopes around it, each wrapped in the transformations that were applied. Forward
and backward of a module carry the same parts once the transformations are taken off: that is how both get one scope.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_WRAPPED = re.compile(r"([\w.]+)\((.*)\)\Z", re.DOTALL)
_COMPILED = ("jit", "pjit", "xla_call", "named_call", "core_call")
_DIFFERENTIATED = ("jvp", "linearize")
_AGAIN = ("checkpoint", "remat", "remat2", "rematted_computation")
_NO_SCOPES = ("main", "while", "body", "cond", "scan", "closed_call", "custom_jvp_call", "custom_vjp_call", *_AGAIN)


class Part(NamedTuple):
    name: str
    cls: str = ""  # `jit` of a function that is compiled on its own


class Named(NamedTuple):
    """An operation's name taken apart."""

    scopes: tuple[Part, ...]
    primitive: str
    phase: str  # forward, backward or recompute; "": the name does not say


@lru_cache(maxsize=1 << 16)
def taken_apart(op_name: str) -> Named:
    *around, primitive = split(op_name)
    scopes: list[Part] = []
    backward = forward = again = False
    for text in around:
        name, wrapped_in = unwrapped(text)
        backward |= "transpose" in wrapped_in
        forward |= any(word in wrapped_in for word in _DIFFERENTIATED)
        again |= name in _AGAIN or any(word in wrapped_in for word in _AGAIN)
        is_compiled = any(word in wrapped_in for word in _COMPILED)
        if name and name not in _NO_SCOPES:
            scopes.append(Part(name, "jit" if is_compiled else ""))
    # What a checkpoint runs once more runs in the backward pass, but is no gradient.
    recomputed = (
        again
        and backward
        and "rematted_computation" in op_name
        and "transpose(jvp(" not in op_name.rpartition("rematted_computation")[2]
    )
    phase = "recompute" if recomputed else "backward" if backward else "forward" if forward else ""
    return Named(tuple(scopes), primitive, phase)


def split(op_name: str) -> list[str]:
    """The parts between slashes that are in no brackets."""
    if "(" not in op_name:
        return op_name.split("/")
    parts: list[str] = []
    depth = start = 0
    for at, mark in enumerate(op_name):
        if mark in "([":
            depth += 1
        elif mark in ")]":
            depth -= 1
        elif mark == "/" and depth <= 0:
            parts.append(op_name[start:at])
            start = at + 1
    return [*parts, op_name[start:]]


def unwrapped(text: str) -> tuple[str, tuple[str, ...]]:
    """`transpose(jvp(layer0))` is `layer0`, transposed and differentiated."""
    wrapped_in: list[str] = []
    while (found := _WRAPPED.match(text)) and len(wrapped_in) < 32:
        wrapped_in.append(found[1])
        text = found[2]
    return text, tuple(wrapped_in)
