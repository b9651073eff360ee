"""The only place that touches what JAX does not promise. Where it is gone, less is known, and nothing fails."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from opscope.ir import Frame

# The parts of JAX that trace, differentiate and compile. They are between a primitive and who called it.
_MACHINERY = ("/core.py", "/pjit.py", "/api.py", "/api_util.py", "/linear_util.py", "/source_info_util.py", "/traceback_util.py")


def user_frames(traceback: Any) -> tuple[tuple[Frame, ...], int]:
    """The frames of the user's code, the outermost first, and the column of the innermost."""
    try:
        from jax._src import source_info_util
    except ImportError:
        return (), 0
    try:
        found = list(source_info_util.user_frames(traceback))
    except (TypeError, AttributeError):
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
    try:
        from jax._src import source_info_util

        source_info_util.register_exclusion(str(Path(__file__).parent))
    except (ImportError, AttributeError):
        pass


@contextmanager
def without_compilation_cache() -> Generator[None]:
    """What is compiled inside is not put into the user's cache, nor taken from it: the passes would not run."""
    import jax

    try:
        from jax._src import config

        context = config.enable_compilation_cache(False)
    except (ImportError, AttributeError, TypeError):
        was = jax.config.jax_enable_compilation_cache
        jax.config.update("jax_enable_compilation_cache", False)
        try:
            yield
        finally:
            jax.config.update("jax_enable_compilation_cache", was)
        return
    with context:
        yield
