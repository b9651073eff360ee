"""Copies of models whose tensors were replaced: what copy.deepcopy gives, at a third of the time.

A module holds a dozen dictionaries for hooks, nearly always empty, and deepcopy takes each apart and rebuilds it:
that alone takes longer than a forward pass on fake tensors.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any, cast

from opscope.tracers.torch.private import the_torch

_ATOMS = (bool, int, float, str, bytes, type(None), complex)


def copied(module: Any, memo: dict[int, Any]) -> Any:
    """Like `copy.deepcopy(module, memo)`."""
    if id(module) in memo:
        return memo[id(module)]
    cls = cast("type[Any]", type(module))
    if not _is_plain(cls):
        return copy.deepcopy(module, memo)
    new: Any = object.__new__(cls)
    memo[id(module)] = new
    state: dict[str, Any] = {}
    for name, value in _state(module).items():
        kind = cast("type[Any]", type(value))
        if kind in _ATOMS:
            state[name] = value
        elif kind in (dict, OrderedDict) and not value and id(value) not in memo:
            state[name] = memo[id(value)] = kind()
        elif name == "_modules" and kind in (dict, OrderedDict):
            state[name] = kind((key, None if inner is None else copied(inner, memo)) for key, inner in value.items())
        else:
            state[name] = copy.deepcopy(value, memo)
    new.__setstate__(state)
    return new


def _state(module: Any) -> dict[str, Any]:
    taken: Any = getattr(module, "__getstate__", None)  # every object has it since Python 3.11
    return taken() if taken is not None else module.__dict__


def _is_plain(cls: type[Any]) -> bool:
    """Whether its class leaves copying to torch.nn.Module."""
    base = the_torch().nn.Module
    return (
        issubclass(cls, base)
        and not hasattr(cls, "__deepcopy__")
        and cls.__setstate__ is base.__setstate__
        and getattr(cls, "__getstate__", None) is getattr(base, "__getstate__", None)
        and cls.__reduce_ex__ is object.__reduce_ex__
        and cls.__reduce__ is object.__reduce__
        and cls.__new__ is object.__new__
    )
