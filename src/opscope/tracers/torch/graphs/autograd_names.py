"""What leaves and saved tensors are called: by the model, by the arguments, by the user's variables."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple

from opscope.tracers.frames import variables_of
from opscope.tracers.torch.private import the_torch

_NONE: Mapping[str, Any] = MappingProxyType({})


class Known(NamedTuple):
    name: str
    role: str


class Names:
    """By identity for leaves; by memory for saved tensors, which autograd hands out as new objects."""

    def __init__(
        self, caller: FrameType | None, model: Any = None, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] = _NONE
    ) -> None:
        from .autograd import tensors_in

        self._by_object: dict[int, Known] = {}
        self._by_memory: dict[tuple[Any, ...], Known] = {}
        self._roles: dict[int, str] = {}  # by storage
        self._held: list[Any] = []  # an id only means something while its object lives
        if model is not None:
            self._module(model, "")
        for i, given in enumerate(args):
            for name, tensor in tensors_in(f"args[{i}]" if len(args) > 1 else "input", given):
                self._add(tensor, Known(name, "input"))
        for key, given in kwargs.items():
            for name, tensor in tensors_in(key, given):
                self._add(tensor, Known(name, "input"))
        if caller is not None:
            self._variables(variables_of(caller), model)

    def _variables(self, variables: dict[str, Any], model: Any) -> None:
        torch = the_torch()

        plain = [(name, value) for name, value in variables.items() if not name.startswith("_")]
        modules = [(n, v) for n, v in plain if isinstance(v, torch.nn.Module) and v is not model]
        for name, module in modules:
            self._module(module, f"{name}." if len(modules) > 1 or model is not None else "")
        for name, value in plain:
            if isinstance(value, torch.Tensor):
                self._add(value, Known(name, "parameter" if value.is_leaf and value.requires_grad else "input"))

    def _module(self, module: Any, prefix: str) -> None:
        for name, tensor in module.named_parameters():
            self._add(tensor, Known(prefix + name, "parameter"))
        for name, tensor in module.named_buffers():
            self._add(tensor, Known(prefix + name, "buffer"))

    def _add(self, tensor: Any, known: Known) -> None:
        self._held.append(tensor)
        self._by_object.setdefault(id(tensor), known)
        key = memory(tensor)
        # A result of the computation that the user holds in a variable is still an activation.
        if key is not None and (known.role != "input" or tensor.is_leaf):
            self._by_memory.setdefault(key, known)
            self._roles.setdefault(key[0], known.role)

    def of(self, tensor: Any) -> Known | None:
        known = self._by_object.get(id(tensor))
        if known is None:
            key = memory(tensor)
            known = self._by_memory.get(key) if key is not None else None
        return known

    def role_of_memory(self, tensor: Any) -> str:
        """A view of a parameter is the parameter's too."""
        key = memory(tensor)
        return self._roles.get(key[0], "activation") if key is not None else "activation"


def memory(tensor: Any) -> tuple[Any, ...] | None:
    """Where its numbers are and how they are read; None for tensors that have none (fake, sparse)."""
    try:
        place = tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return None
    if not place:
        return None
    return place, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
