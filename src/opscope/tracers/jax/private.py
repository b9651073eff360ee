"""JAX itself, and the only place that touches what it does not promise: where that is gone, less is known."""

from __future__ import annotations

import importlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir import Frame

# The parts of JAX that trace, differentiate and compile. They are between a primitive and who called it.
_MACHINERY = (
    "/core.py",
    "/pjit.py",
    "/api.py",
    "/api_util.py",
    "/linear_util.py",
    "/source_info_util.py",
    "/traceback_util.py",
)


def import_jax() -> Any:
    try:
        return importlib.import_module("jax")
    except ImportError as error:
        raise OpscopeError(f"JAX is not installed here ({error})") from None


def user_frames(traceback: Any) -> tuple[tuple[Frame, ...], int]:
    """The frames of the user's code, the outermost first, and the column of the innermost."""
    try:
        found = list(_internal("source_info_util").user_frames(traceback))
    except (ImportError, TypeError, AttributeError):
        return (), 0
    frames = tuple(Frame(f.file_name, f.start_line, f.function_name) for f in reversed(found))
    return frames, found[0].start_column if found else 0


def calling_frames(traceback: Any) -> tuple[Any, ...]:
    """Where a primitive was called: code and place in it, from the library function or the user's line outwards."""
    try:
        codes, places = traceback.raw_frames()
    except (AttributeError, TypeError):
        return (id(traceback),)
    start = 0
    while start < len(codes) and _is_machinery(codes[start].co_filename):
        start += 1
    return tuple((id(code), place) for code, place in zip(codes[start:], places[start:], strict=True))


@cache
def _is_machinery(file: str) -> bool:
    return "/jax/_src/" in file.replace("\\", "/") and ("/interpreters/" in file or file.endswith(_MACHINERY))


@cache
def hide_own_frames() -> None:
    """Keep opscope's frames out of what JAX shows of the user's code."""
    with suppress(ImportError, AttributeError):
        _internal("source_info_util").register_exclusion(str(Path(__file__).parent))


def _internal(name: str) -> Any:
    return importlib.import_module(f"jax._src.{name}")


@contextmanager
def without_compilation_cache() -> Generator[None]:
    """What is compiled inside is not put into the user's cache, nor taken from it: the passes would not run."""
    try:
        context = _internal("config").enable_compilation_cache(False)
    except (ImportError, AttributeError, TypeError):
        jax = import_jax()
        was = jax.config.jax_enable_compilation_cache
        jax.config.update("jax_enable_compilation_cache", False)
        try:
            yield
        finally:
            jax.config.update("jax_enable_compilation_cache", was)
        return
    with context:
        yield
