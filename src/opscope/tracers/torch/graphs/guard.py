"""What a capture must leave as it was: random numbers, gradient mode, modes and buffers of the model, hooks."""

from __future__ import annotations

import io
import logging
import random
import sys
import warnings
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, redirect_stderr
from typing import Any, cast

from opscope.tracers.torch.private import the_torch

from .frames import is_users

_SILENT = (DeprecationWarning, FutureWarning)  # and torch's TracerWarning, which becomes a part of the capture


@contextmanager
def unchanged(*targets: Any) -> Generator[list[warnings.WarningMessage], None, None]:
    """Run a capture; afterwards everything is as before. Gives the warnings that were raised meanwhile.

    Buffers of the modules among `targets` (running means, counters) get their numbers back too: some ways
    run the model for real, and nobody expects that to train it.
    """
    torch = the_torch()

    with ExitStack() as stack:
        heard = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        stack.enter_context(_quiet())
        stack.enter_context(_printed_only_on_success())
        stack.callback(torch.set_grad_enabled, torch.is_grad_enabled())
        stack.callback(torch.random.set_rng_state, torch.random.get_rng_state())
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            stack.callback(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
        stack.callback(random.setstate, random.getstate())
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None:
            stack.callback(numpy.random.set_state, numpy.random.get_state())
        for module in modules_in(targets):
            stack.enter_context(_module_unchanged(module))
        try:
            yield heard
        finally:
            silent = (*_SILENT, torch.jit.TracerWarning)
            users = [e for e in heard if is_users(e.filename) and not issubclass(e.category, silent)]
    for entry in users:
        warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)


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


@contextmanager
def _module_unchanged(module: Any) -> Generator[None, None, None]:
    torch = the_torch()

    if isinstance(module, torch.jit.ScriptModule):  # being looked at, never run
        yield
        return
    training = [(part, part.training) for part in module.modules()]
    with torch.no_grad():
        kept = [(buffer, buffer.clone()) for buffer in module.buffers() if _has_numbers(buffer)]
    try:
        yield
    finally:
        for part, was in training:
            if part.training != was:
                part.training = was
        with torch.no_grad():
            for buffer, numbers in kept:  # batch norms write theirs without counting the version up
                if not torch.equal(buffer, numbers):
                    buffer.copy_(numbers)


def _has_numbers(tensor: Any) -> bool:
    """Fake and meta tensors have none; those made in inference mode must not be written. Sparse ones are let be: torch
    can neither compare them nor write to them in place."""
    is_plain = type(tensor).__name__ in ("Tensor", "Parameter") and tensor.layout is the_torch().strided
    return is_plain and not tensor.is_meta and not tensor.is_inference()


def modules_in(targets: tuple[Any, ...]) -> list[Any]:
    """The modules that a call may run: the target itself, the owner of a method, those a function closes over."""
    torch = the_torch()

    found: list[Any] = []
    for target in targets:
        cells: list[Any] = [target, getattr(target, "__self__", None)]
        for cell in cast("tuple[Any, ...]", getattr(target, "__closure__", None) or ()):
            try:
                cells.append(cell.cell_contents)
            except ValueError:  # not filled yet
                continue
        code, names = getattr(target, "__code__", None), getattr(target, "__globals__", {})
        cells += [names.get(name) for name in getattr(code, "co_names", ())]
        found += [cell for cell in cells if isinstance(cell, torch.nn.Module) and not any(cell is f for f in found)]
    return found


def said(heard: list[warnings.WarningMessage], *kinds: type[Warning]) -> list[warnings.WarningMessage]:
    """The warnings of these kinds, each place once."""
    found: dict[tuple[str, int, str], warnings.WarningMessage] = {}
    for entry in heard:
        if issubclass(entry.category, kinds):
            found.setdefault((entry.filename, entry.lineno, str(entry.message)), entry)
    return list(found.values())
