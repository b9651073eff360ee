"""The modules inside a module and the tensors that they hold, as they are stored.

torch's own `named_modules` and its kin run what a class overrides, and fail on a module whose `__init__` has not run.
A module may be anybody's, also one that is only there when something else is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from opscope.tracers.arguments import attributes_of, is_a
from opscope.tracers.torch.private import the_torch


class Part(NamedTuple):
    """A module inside another one."""

    path: str  # from the outermost, which is empty
    module: Any


def named_parts(module: Any) -> Iterator[Part]:
    """The module and all inside it, outermost first; one that is in two places comes twice."""
    yield from _parts("", module, frozenset())


def parts(*modules: Any) -> list[Any]:
    """The modules and all inside them, each once."""
    return list({id(part.module): part.module for module in modules for part in named_parts(module)}.values())


def _parts(path: str, module: Any, around: frozenset[int]) -> Iterator[Part]:
    yield Part(path, module)
    around = around | {id(module)}
    for name, inner in stored(module, "_modules"):
        if is_a(inner, the_torch().nn.Module) and id(inner) not in around:
            yield from _parts(f"{path}.{name}" if path else name, inner, around)


def named_tensors(module: Any, where: str) -> Iterator[tuple[str, Any]]:
    """`where` is `_parameters` or `_buffers`. A tensor with several names comes under each of them."""
    for path, part in named_parts(module):
        for name, tensor in stored(part, where):
            if is_a(tensor, the_torch().Tensor) and has_memory(tensor):
                yield (f"{path}.{name}" if path else name), tensor


def stored(module: Any, where: str) -> list[tuple[str, Any]]:
    """The entries of one of a module's dictionaries, such as `_buffers`."""
    held: Any = attributes_of(module).get(where)
    if is_a(held, dict):
        return list(dict.items(held))
    # TorchScript's modules keep theirs in C++, behind dictionaries of torch's own.
    scripted = the_torch().jit.ScriptModule
    return list(getattr(module, where).items()) if is_a(module, scripted) else []


def has_memory(tensor: Any) -> bool:
    """Not a parameter of a lazy module, which has neither shape nor memory before the first call."""
    return not is_a(tensor, the_torch().nn.parameter.UninitializedTensorMixin)
