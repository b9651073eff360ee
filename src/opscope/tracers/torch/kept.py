"""What a model is before a capture runs it, and how it becomes that again, object for object and bit for bit.

A forward pass may do anything to a model: assign a buffer anew, write to a weight, append to a list, take off its own
hooks. So what its modules store is noted before, as it is stored; what is different afterwards is put back. What is
the same is not touched.
"""

from __future__ import annotations

import contextlib
import random
import sys
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple, cast

from opscope.tracers.arguments import attributes_of, is_a
from opscope.tracers.torch.parts import has_memory, stored
from opscope.tracers.torch.private import set_version, the_torch

_DEPTH = 6  # of containers and objects inside each other, from a module's attributes on
_MOST_OBJECTS = 200_000
_MOST_ITEMS = 10_000  # of a container that is looked into
_SHARE = 0.25  # of the memory that is free, for copies of the numbers


class _Tensor(NamedTuple):
    """What a tensor is, apart from its numbers."""

    tensor: Any
    cls: type[Any]
    data: Any  # the tensor on its memory
    gradient: Any
    requires_grad: bool
    version: int | None
    hooks: Any


class Kept:
    """The modules as they are now, with everything that they hold.

    `numbers`: whether the numbers of parameters are copied now. Otherwise whoever runs the model calls `before_write`,
    and pays only for those that are written; buffers are always copied, because batch norms write theirs unannounced.
    """

    def __init__(self, modules: Iterable[Any], *, numbers: bool = True) -> None:
        self._torch = the_torch()
        self._module: type[Any] = self._torch.nn.Module
        self._classes: list[tuple[Any, type[Any]]] = []
        self._attributes: dict[type[Any], dict[str, Any]] = {}
        self._containers: list[tuple[Any, Any, Any]] = []  # the base class, the container, a copy
        self._states: list[tuple[Callable[[Any], None], Any]] = []
        self._tensors: list[_Tensor] = []
        self._gradients: list[Any] = []
        self._written_later: set[int] = set()  # addresses of memory that is copied before it is written
        self._copies: dict[int, tuple[Any, Any]] = {}  # by address: the memory, and a copy of its bytes
        self._seen: dict[int, Any] = {}  # held, so that no address is used twice
        for module in modules:
            self._look(module, _DEPTH)
        self._copy(numbers)

    # -- before -----------------------------------------------------------------------------------

    def _look(self, value: Any, depth: int) -> None:
        """Note a module, a container, a tensor or an object, and what is in it."""
        cls = cast("type[Any]", type(value))
        if cls in _ATOMS or id(value) in self._seen or len(self._seen) > _MOST_OBJECTS:
            return
        if is_a(value, self._module):
            depth = _DEPTH
        elif not depth:
            return
        self._seen[id(value)] = value
        if is_a(value, self._torch.Tensor):
            self._look_at_tensor(value)
            self._look_inside(attributes_of(value), depth - 1)
        elif is_a(value, self._module):
            self._look_at_module(value, cls)
        elif is_a(value, self._torch.Generator):
            self._states.append((value.set_state, value.get_state()))
        elif cls is random.Random:
            self._states.append((value.setstate, value.getstate()))
        elif is_a(value, (tuple, frozenset)):
            for item in list(value):
                self._look(item, depth - 1)
        elif is_a(value, _CONTAINERS):
            self._look_inside(value, depth - 1)
        elif _is_users(cls):
            self._look_inside(attributes_of(value), depth - 1)

    def _look_at_module(self, module: Any, cls: type[Any]) -> None:
        self._look_inside(attributes_of(module), _DEPTH)
        if is_a(module, self._torch.jit.ScriptModule):  # keeps its own in C++
            for where in ("_parameters", "_buffers", "_modules"):
                for _, held in stored(module, where):
                    self._look(held, _DEPTH)
            return
        self._classes.append((module, cls))
        for base in cls.__mro__:  # counters and registries of the class
            if _is_users(base) and base not in self._attributes:
                own = {name: value for name, value in base.__dict__.items() if _is_data(name, value)}
                self._attributes[base] = own
                for value in own.values():
                    self._look(value, 2)

    def _look_inside(self, held: Any, depth: int) -> None:
        base = next(base for base in _CONTAINERS if is_a(held, base))
        if base.__len__(held) > _MOST_ITEMS:
            return
        before = base.copy(held)
        if not is_a(held, dict):
            before = list(before)
        self._containers.append((base, held, before))
        for item in list(before.values()) if is_a(held, dict) else before:
            self._look(item, depth)

    def _look_at_tensor(self, tensor: Any) -> None:
        gradient = _or_none(lambda: tensor.grad if tensor.is_leaf else None)
        if gradient is not None:
            self._gradients.append(gradient)
        self._tensors.append(
            _Tensor(
                tensor,
                type(tensor),
                _or_none(lambda: tensor.data),
                gradient,
                tensor.requires_grad,
                _or_none(lambda: tensor._version),
                _or_none(lambda: tensor._backward_hooks.copy()),
            )
        )

    def _copy(self, numbers: bool) -> None:
        parameters: dict[int, Any] = {}
        for kept in self._tensors:
            for storage in self._memory_of(kept.tensor):
                if is_a(kept.tensor, self._torch.nn.Parameter):
                    parameters[storage._cdata] = storage
                else:
                    self._save(storage)
        parameters.update((storage._cdata, storage) for g in self._gradients for storage in self._memory_of(g))
        if numbers and _fits(sum(storage.nbytes() for storage in parameters.values())):
            for storage in parameters.values():
                self._save(storage)
        else:
            self._written_later = set(parameters) - set(self._copies)

    def _save(self, storage: Any) -> None:
        if storage._cdata not in self._copies:
            self._copies[storage._cdata] = storage, _bytes(self._torch, storage).clone()

    def before_write(self, tensors: list[Any]) -> None:
        """These are about to be written."""
        for tensor in tensors:
            for storage in self._memory_of(tensor):
                if storage._cdata in self._written_later:
                    self._save(storage)

    def _memory_of(self, tensor: Any) -> list[Any]:
        """The memory that holds its numbers: none where it has none, several where it is sparse."""
        if tensor.is_meta or type(tensor).__name__ == "FakeTensor" or not has_memory(tensor):
            return []
        if type(tensor).__torch_dispatch__ is not self._torch.Tensor.__torch_dispatch__:
            return []  # a wrapper: its memory is that of the tensors inside
        try:
            if tensor.layout is self._torch.sparse_coo:
                return [t.untyped_storage() for t in (tensor._indices(), tensor._values())]
            if tensor.layout is not self._torch.strided and not tensor.is_nested:
                return []
            storage = tensor.untyped_storage()
            has_numbers = storage.nbytes() and storage.device.type != "meta" and storage.data_ptr()
        except (RuntimeError, NotImplementedError, ValueError):
            return []
        return [storage] if has_numbers else []

    # -- after ------------------------------------------------------------------------------------

    def restore(self) -> None:
        for value, cls in self._classes:
            if type(value) is not cls:
                value.__class__ = cls
        for cls, before in self._attributes.items():
            for name, value in before.items():
                if cls.__dict__.get(name, self) is not value:
                    setattr(cls, name, value)
        for base, held, before in self._containers:
            if not _is_same(base, held, before):
                base.clear(held)
                base.extend(held, before) if base in (list, deque) else base.update(held, before)
        for put_back, state in self._states:
            put_back(state)
        for kept in self._tensors:
            with contextlib.suppress(RuntimeError, AttributeError, TypeError):
                self._restore_tensor(kept)
        for storage, numbers in self._copies.values():
            self._restore_numbers(storage, numbers)
        self._restore_versions()

    def _restore_tensor(self, kept: _Tensor) -> None:
        tensor = kept.tensor
        if type(tensor) is not kept.cls:
            tensor.__class__ = kept.cls
        if kept.data is not None and not _is_same_window(tensor, kept.data):
            tensor.data = kept.data
        if tensor.is_leaf:
            if tensor.requires_grad != kept.requires_grad:
                tensor.requires_grad_(kept.requires_grad)
            if tensor.grad is not kept.gradient:
                tensor.grad = kept.gradient
        hooks = tensor._backward_hooks
        if kept.hooks is None and hooks:
            hooks.clear()
        elif kept.hooks is not None and not _is_same(OrderedDict, hooks, kept.hooks):
            hooks.clear()
            hooks.update(kept.hooks)

    def _restore_numbers(self, storage: Any, numbers: Any) -> None:
        """By its bytes: so no tensor is written to, and a backward pass that is still to come can use them."""
        torch = self._torch
        with torch.no_grad():
            if storage.nbytes() != numbers.numel():
                storage.resize_(numbers.numel())
            now = _bytes(torch, storage)
            if not torch.equal(now, numbers):
                now.copy_(numbers)

    def _restore_versions(self) -> None:
        lost: list[Any] = []
        for kept in self._tensors:
            if kept.version is None or _or_none(lambda kept=kept: kept.tensor._version) == kept.version:
                continue
            missing = [s for s in self._memory_of(kept.tensor) if s._cdata in self._written_later - set(self._copies)]
            if missing:
                lost.append(kept.tensor)
            else:
                set_version(kept.tensor, kept.version)
        if lost:
            warnings.warn(
                f"{len(lost)} parameters were written while the model was captured, and are too large to put back",
                stacklevel=2,
            )


_ATOMS = (bool, int, float, complex, str, bytes, type(None))
# By the methods of these the contents of their subclasses are read and put back; an OrderedDict has its own order.
_CONTAINERS: tuple[Any, ...] = (OrderedDict, dict, list, set, deque)


def _is_users(cls: type[Any]) -> bool:
    """Not Python's (locks, loggers, weak references), and not torch's."""
    module: Any = cls.__module__
    root = module.partition(".")[0] if type(module) is str else ""
    return root != "torch" and root not in sys.stdlib_module_names


def _is_data(name: str, value: Any) -> bool:
    return not name.startswith("__") and (type(value) in _ATOMS or is_a(value, (tuple, *_CONTAINERS)))


def _or_none(read: Callable[[], Any]) -> Any:
    """What a tensor of an odd kind may refuse to say."""
    try:
        return read()
    except Exception:
        return None


def _bytes(torch: Any, storage: Any) -> Any:
    """The memory as a tensor."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _is_same(base: Any, held: Any, before: Any) -> bool:
    """The same objects in the same order."""
    if base.__len__(held) != len(before):
        return False
    if base in (dict, OrderedDict):
        pairs = zip(base.items(held), before.items(), strict=True)
        return all(a is b and now is then for (a, now), (b, then) in pairs)
    if base is set:
        return set.__eq__(held, set(before)) is True
    return all(now is then for now, then in zip(base.__iter__(held), before, strict=True))


def _is_same_window(tensor: Any, data: Any) -> bool:
    try:
        return (
            tensor.untyped_storage()._cdata == data.untyped_storage()._cdata
            and tensor.dtype == data.dtype
            and tensor.shape == data.shape
            and tensor.stride() == data.stride()
            and tensor.storage_offset() == data.storage_offset()
        )
    except (RuntimeError, NotImplementedError, ValueError):  # sparse: what does not say is let be
        return not has_memory(data) or tensor.layout is not the_torch().strided


def _fits(needed: int) -> bool:
    free = free_memory()
    return free is None or needed < free * _SHARE


def free_memory() -> int | None:
    """Bytes that may be taken, where the system says so."""
    try:
        with open("/proc/meminfo") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def modules_in(targets: Iterable[Any]) -> list[Any]:
    """The modules that a call may run: the target itself, the owner of a method, those a function closes over."""
    module: type[Any] = the_torch().nn.Module
    found: list[Any] = []

    def look(value: Any, depth: int) -> None:
        if is_a(value, module):
            if not any(value is other for other in found):
                found.append(value)
        elif depth:
            for inner in _held_by(value):
                look(inner, depth - 1)

    for target in targets:
        look(target, 3)
    return found


def _held_by(value: Any) -> list[Any]:
    if is_a(value, (list, tuple)):
        return list(cast("list[Any]", value))[:_MOST_ITEMS]
    if is_a(value, dict):
        return list(dict.values(value))[:_MOST_ITEMS]
    if is_a(value, MethodType):
        owner = value.__self__
        return [owner, *attributes_of(owner).values(), value.__func__]
    if is_a(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if not is_a(value, FunctionType):
        return list(attributes_of(value).values()) if _is_users(cast("type[Any]", type(value))) else []
    held: list[Any] = []
    for cell in value.__closure__ or ():
        with contextlib.suppress(ValueError):  # not filled yet
            held.append(cell.cell_contents)
    return [*held, *(value.__globals__[name] for name in value.__code__.co_names if name in value.__globals__)]
