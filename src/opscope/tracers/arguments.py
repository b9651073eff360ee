"""The arguments of a call, by the names that the callee has for them."""

from __future__ import annotations

import inspect
from typing import Any


def named_arguments(call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Name and value of each. Where they do not fit, by position: the framework says better what is wrong with them."""
    try:
        return list(inspect.signature(call).bind(*args, **kwargs).arguments.items())
    except (TypeError, ValueError):
        return [*((f"args[{number}]", value) for number, value in enumerate(args)), *kwargs.items()]
