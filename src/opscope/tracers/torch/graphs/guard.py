"""What a capture must leave as it was: the model, random numbers, torch's settings, what is printed."""

from __future__ import annotations

import io
import logging
import random
import sys
import warnings
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, redirect_stderr
from typing import Any, NamedTuple

from opscope.tracers.torch.kept import Kept, modules_in
from opscope.tracers.torch.private import the_torch

from .frames import is_users

_SILENT = (DeprecationWarning, FutureWarning)  # and torch's TracerWarning, which becomes a part of the capture


@contextmanager
def unchanged(*targets: Any, numbers: bool = True) -> Generator[Heard, None, None]:
    """Run a capture; afterwards everything is as before: the modules among `targets` with all that they hold, random
    numbers, torch's settings. Gives the warnings that were raised meanwhile.

    `numbers=False`: who runs the model calls `Heard.kept.before_write` before a parameter is written; see `Kept`.
    """
    torch = the_torch()

    with ExitStack() as stack:
        heard = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        stack.enter_context(_quiet())
        stack.enter_context(_printed_only_on_success())
        _keep_settings(stack)
        kept = Kept(modules_in(targets), numbers=numbers)
        stack.callback(kept.restore)
        try:
            yield Heard(heard, kept)
        finally:
            silent = (*_SILENT, torch.jit.TracerWarning)
            users = [e for e in heard if is_users(e.filename) and not issubclass(e.category, silent)]
    for entry in users:
        warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)


class Heard(NamedTuple):
    """What `unchanged` gives."""

    warnings: list[warnings.WarningMessage]
    kept: Kept


def _keep_settings(stack: ExitStack) -> None:
    """Random numbers and torch's switches."""
    torch = the_torch()

    stack.callback(torch.set_grad_enabled, torch.is_grad_enabled())
    stack.callback(torch.random.set_rng_state, torch.random.get_rng_state())
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        stack.callback(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
    stack.callback(random.setstate, random.getstate())
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        stack.callback(numpy.random.set_state, numpy.random.get_state())
    for owner, read, write in _SETTINGS:
        before = getattr(getattr(torch, owner, torch), read, None)
        if before is not None:
            stack.callback(_set_if_changed, before, getattr(getattr(torch, owner, torch), write), before())


def _set_if_changed(read: Any, write: Any, before: Any) -> None:
    if read() != before:
        write(before)


# Where it is, what reads it, what sets it.
_SETTINGS = (
    ("", "get_default_dtype", "set_default_dtype"),
    ("", "are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
    ("", "get_float32_matmul_precision", "set_float32_matmul_precision"),
    ("", "get_num_threads", "set_num_threads"),
)


@contextmanager
def _printed_only_on_success() -> Generator[None, None, None]:
    """torch prints half a graph on stderr before it raises; what the model itself prints comes after a capture."""
    held = io.StringIO()
    with redirect_stderr(held):
        yield
    sys.stderr.write(held.getvalue())


_LOUD = ("torch._subclasses.fake_tensor", "torch._dynamo", "torch._export", "torch.export", "torch.fx")


@contextmanager
def _quiet() -> Generator[None, None, None]:
    """Without the logs of some packages and of their parts: what they log as an error, we tell in one line."""
    inside = tuple(f"{name}." for name in _LOUD)
    known = [name for name in logging.root.manager.loggerDict if name.startswith(inside)]
    loggers = [logging.getLogger(name) for name in (*_LOUD, *known)]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


def said(heard: list[warnings.WarningMessage], *kinds: type[Warning]) -> list[warnings.WarningMessage]:
    """The warnings of these kinds, each place once."""
    found: dict[tuple[str, int, str], warnings.WarningMessage] = {}
    for entry in heard:
        if issubclass(entry.category, kinds):
            found.setdefault((entry.filename, entry.lineno, str(entry.message)), entry)
    return list(found.values())
