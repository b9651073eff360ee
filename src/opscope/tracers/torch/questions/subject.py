"""A model that is tried in many ways: every try gets a copy of it, and nothing of a try reaches the next."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, cast

from opscope.ir import Capture
from opscope.tracers.arguments import is_a, items_of
from opscope.tracers.torch.graphs.guard import unchanged
from opscope.tracers.torch.kept import modules_in
from opscope.tracers.torch.private import find, the_torch
from opscope.tracers.torch.recorder import record_call

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Subject:
    """The target of a call and its arguments."""

    def __init__(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], caller: FrameType) -> None:
        self.target = target
        self.given: Arguments = (args, kwargs)
        self.caller = caller
        self.can_copy = self._can_copy()

    def _can_copy(self) -> bool:
        """A module can be copied, unless it holds results of a computation, or something that is not Python's."""
        if not isinstance(self.target, the_torch().nn.Module):
            return False
        try:
            with alone(self.target):
                copy.deepcopy(self.target)
        except Exception:
            return False
        return True

    @contextmanager
    def trial(
        self, given: Arguments | None = None
    ) -> Generator[tuple[Any, tuple[Any, ...], dict[str, Any]], None, None]:
        """The target and its arguments for one try. What the try does to them and to torch is undone."""
        with alone(self.target):
            # The copy is made inside: its random numbers are put back as well.
            target = copy.deepcopy(self.target) if self.can_copy else self.target
            args, kwargs = copied(given or self.given)
            yield target, args, kwargs

    def run(self, given: Arguments) -> Any:
        """What the target returns for these arguments."""
        with self.trial(given) as (target, args, kwargs), the_torch().no_grad():
            return target(*args, **kwargs)

    def record(self, given: Arguments | None = None) -> Capture:
        """What the recorder sees of one call."""
        with self.trial(given) as (target, args, kwargs):
            return record_call(target, args, kwargs, caller=self.caller)

    def has_numbers(self) -> bool:
        """Fake and meta tensors have none: there is nothing to compare."""
        modules = modules_in((self.target,))
        held = [*tensors_in(self.given), *(t for m in modules for t in (*m.parameters(), *m.buffers()))]
        return all(type(t).__name__ != "FakeTensor" and not t.is_meta for t in held)


@contextmanager
def alone(target: Any) -> Generator[None, None, None]:
    """Whatever runs in here: torch is left as it was, and nobody hears of it."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        # torch logs and prints pages about a model that it cannot take; a model that prints would do so many times.
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(_dynamo_kept())
        stack.enter_context(unchanged(target))
        yield


@contextmanager
def _dynamo_kept() -> Generator[None, None, None]:
    """Dynamo's settings are put back, and it forgets what it compiled: torch.cond compiles, and what it compiled while
    the recorder was there fails without it."""
    reset: Any = find("torch._dynamo", "reset")
    settings: Any = find("torch._dynamo", "config")
    taken: Callable[[], dict[str, Any]] | None = getattr(settings, "get_config_copy", None)
    before = taken() if taken is not None else {}
    try:
        yield
    finally:
        for name, value in (taken() if taken is not None else {}).items():
            if name in before and value is not before[name] and value != before[name]:
                setattr(settings, name, before[name])
        if reset is not None:
            reset()


# -- nests of arguments and results -------------------------------------------------------------------


def copied(value: Any) -> Any:
    """The same nest with tensors of its own: some models write to their arguments."""
    return mapped(lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad), value)


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A nest of tuples, lists and dicts with every tensor changed; other objects are copied if they can be."""
    if isinstance(value, the_torch().Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        held: list[Any] = list(cast("list[Any]", value))
        items = [mapped(change, item) for item in held]
        kind = cast("type[Any]", value.__class__)
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if type(value) is dict:
        return {key: mapped(change, item) for key, item in cast("dict[Any, Any]", value).items()}
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def tensors_in(value: Any, depth: int = 8) -> Iterator[Any]:
    """The tensors in a nest, those of a dict by its keys."""
    if is_a(value, the_torch().Tensor):
        yield value
    elif depth:
        items = list(items_of(value))
        if not is_a(value, (list, tuple)):
            items.sort(key=lambda item: item[0])
        for _, item in items:
            yield from tensors_in(item, depth - 1)
