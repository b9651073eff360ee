"""Which tracer captures which framework, found without importing any framework. `contract` says what a tracer is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, cast

from opscope.errors import OpscopeError

from .arguments import attributes_of, is_a, items_of
from .contract import Tracer


class Framework(NamedTuple):
    tracer: str  # the package with its TRACER
    packages: tuple[str, ...]  # the roots under which its types live


# The key is the name one imports and the name of `framework=`.
FRAMEWORKS: dict[str, Framework] = {
    "hidet": Framework("opscope.tracers.hidet", ("hidet",)),
    "jittor": Framework("opscope.tracers.jittor", ("jittor", "jittor_core")),
    "paddle": Framework("opscope.tracers.paddle", ("paddle",)),
    "torch": Framework("opscope.tracers.torch", ("torch",)),
    "jax": Framework("opscope.tracers.jax", ("jax", "jaxlib", "flax", "equinox")),
    "megengine": Framework("opscope.tracers.megengine", ("megengine",)),
}


def load(framework: str) -> Tracer:
    if framework not in FRAMEWORKS:
        raise OpscopeError(f"framework {framework!r} cannot be traced (supported: {supported()})")
    return importlib.import_module(FRAMEWORKS[framework].tracer).TRACER


def supported() -> str:
    return ", ".join(sorted(FRAMEWORKS))


def detect(subject: Any, *others: Any) -> str:
    """The framework that `subject` belongs to; `others` (arguments, an optimizer) help where it does not say."""
    ways = [frameworks_of(subject), frameworks_of(others), frameworks_of(attributes_of(subject))]
    if subject is None or is_a(subject, (FunctionType, MethodType)):
        # The type of plain code says no framework: what does it name, and what is there to be used?
        ways += [frameworks_named_in(subject), imported()]
    for found in ways:
        if len(found) == 1:
            return found.pop()
        if found:
            names = ", ".join(sorted(found))
            raise OpscopeError(f"{describe(subject)} could belong to {names}: say which with framework=…")
    raise OpscopeError(
        f"unknown framework: {describe(subject)}: neither its type nor its arguments belong to a "
        f"supported one ({supported()})"
    )


def frameworks_of(value: Any) -> set[str]:
    """The frameworks whose types are in the method resolution order of the value, or inside a container."""
    found: set[str] = set()
    for item in _spread(value, depth=3):
        found |= frameworks_of_type(cast("type[Any]", type(item)))
    return found


def frameworks_of_type(kind: type[Any]) -> set[str]:
    roots = {_root(cls) for cls in kind.__mro__}
    return {name for name, entry in FRAMEWORKS.items() if not roots.isdisjoint(entry.packages)}


def _root(named: Any) -> str:
    """The top package that a class or a function is from; its `__module__` may be anything."""
    module: Any = named.__module__
    return module.partition(".")[0] if type(module) is str else ""


def frameworks_named_in(value: Any) -> set[str]:
    """A plain function says which framework it uses by the global names in its code."""
    function = value.__func__ if is_a(value, MethodType) else value
    if not is_a(function, FunctionType):
        return set()
    found: set[str] = set()
    for name in function.__code__.co_names:
        used = function.__globals__.get(name)
        if is_a(used, ModuleType):
            root = str(attributes_of(used).get("__name__", "")).partition(".")[0]
        elif is_a(used, (type, FunctionType)):
            root = _root(used)
        else:
            found |= frameworks_of(used)
            continue
        found.update(name for name, entry in FRAMEWORKS.items() if root in entry.packages)
    return found


def imported() -> set[str]:
    """The frameworks that are there. A folder of that name, which Python takes for a package, has no file."""
    return {name for name in FRAMEWORKS if getattr(sys.modules.get(name), "__file__", None)}


def describe(value: Any) -> str:
    if value is None:
        return "the code that runs"
    if is_a(value, (FunctionType, MethodType)):
        return f"the function {value.__qualname__}"
    cls = cast("type[Any]", type(value))
    return f"an object of type {cls.__module__}.{cls.__qualname__}"


def _spread(value: Any, depth: int) -> Iterator[Any]:
    if is_a(value, MethodType):
        yield value.__self__
        return
    yield value
    for _, item in items_of(value) if depth else ():
        yield from _spread(item, depth - 1)
