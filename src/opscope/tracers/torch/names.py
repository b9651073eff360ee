"""What things are called: modules within modules, tensors within modules, optimizers, arguments and variables."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple, cast

from opscope.tracers.frames import locals_of, variables_of

_MOST_ITEMS = 256  # of a container among the user's variables that is looked into


class Step(NamedTuple):
    """One step down the tree of modules."""

    name: str
    cls: str


class Named(NamedTuple):
    """A tensor and what it is called. Held only while names are being read."""

    name: str
    tensor: Any
    role: str
    owner: str = ""  # of an optimizer's state: the parameter it is for


Way = tuple[Step, ...]


class Modules:
    """The modules that were met, and the way to each from the outermost one (the root) that holds it."""

    def __init__(self, given: list[tuple[str, Any]], main: Any = None, hide_root: bool = False) -> None:
        self._main = main if main is None else weakref.ref(main)  # whose tensors go by their bare names
        # With only one model in the capture, a box around everything says nothing.
        self._hide_root = hide_root
        self._roots: list[tuple[str, weakref.ref[Any]]] = []
        self._ways: dict[int, list[Way]] = {}
        self._references: dict[int, weakref.ref[Any]] = {}
        self._steps: dict[tuple[int, int | None], Way] = {}
        for name, module in given:
            self.add_root(name, module)

    def add_root(self, name: str, module: Any) -> None:
        self._roots.append((name, weakref.ref(module)))
        top = () if self._hide_root and len(self._roots) == 1 else (Step(name, type(module).__name__),)
        by_path: dict[str, Way] = {"": top}  # whoever holds a module comes before it
        for path, inner in module.named_modules(remove_duplicate=False):
            if path:
                above, _, name = path.rpartition(".")
                by_path[path] = (*by_path.get(above, top), Step(name, type(inner).__name__))
            self._references[id(inner)] = weakref.ref(inner)
            self._ways.setdefault(id(inner), []).append(by_path[path])

    def roots(self) -> Iterator[tuple[str, Any]]:
        for name, reference in self._roots:
            module = reference()
            if module is not None:
                yield name, module

    def steps(self, module: Any, parent: int | None, frame: FrameType) -> Way:
        """The steps from the module `parent` (an id) to this one; from the top where there is no parent."""
        key = (id(module), parent)
        reference = self._references.get(id(module))
        if reference is None or reference() is not module:
            self._forget(id(module))
            if parent is None:
                self.add_root(_variable(frame, module) or type(module).__name__, module)
            else:
                self._references[id(module)] = weakref.ref(module)
        if key not in self._steps:
            self._steps[key] = self._find(module, parent)
        return self._steps[key]

    def _find(self, module: Any, parent: int | None) -> Way:
        ways = self._ways.get(id(module), [])
        if parent is None:
            return ways[0] if ways else (Step(type(module).__name__, type(module).__name__),)
        for above in self._ways.get(parent, []):
            for way in ways:
                if len(way) > len(above) and way[: len(above)] == above:
                    return way[len(above) :]
        if ways:  # it belongs elsewhere: its whole name says where
            return (Step(".".join(step.name for step in ways[0]), type(module).__name__),)
        return (Step("", type(module).__name__),)  # made on the way, and held by no module

    def _forget(self, key: int) -> None:
        """Another module has the address of one that is gone."""
        self._ways.pop(key, None)
        for known in [known for known in self._steps if key in known]:
            del self._steps[known]

    def tensors(self) -> Iterator[Named]:
        """Parameters and buffers by their full names; the root's own name first where there are several."""
        main = self._main() if self._main is not None else None
        held = [(name, module) for name, module in self.roots() if any(True for _ in _own_tensors(module))]
        for name, module in held:
            prefix = "" if module is main or len(held) == 1 else f"{name}."
            for path, tensor in module.named_parameters(remove_duplicate=False):
                yield Named(prefix + path, tensor, "parameter")
            for path, tensor in module.named_buffers(remove_duplicate=False):
                yield Named(prefix + path, tensor, "buffer")


def _own_tensors(module: Any) -> Iterator[Any]:
    yield from module.parameters()
    yield from module.buffers()


def optimizer_tensors(optimizer: Any, name: str, names: Mapping[int, str]) -> Iterator[Named]:
    """An optimizer's own tensors, such as `exp_avg of fc.weight`. `names`: id of a parameter -> its name."""
    for group_number, group in enumerate(optimizer.param_groups):
        for number, parameter in enumerate(group["params"]):
            known = names.get(id(parameter))
            owner = known or f"{name}.param_groups[{group_number}].params[{number}]"
            if known is None:
                yield Named(owner, parameter, "parameter")
            state: dict[Any, Any] = optimizer.state.get(parameter, {})
            for key, held in _tensors_in(f"{name}.{{}}.{owner}", state):
                yield Named(key, held, "state", owner)
        for key, held in group.items():
            if key != "params" and hasattr(held, "untyped_storage"):
                yield Named(f"{name}.param_groups[{group_number}].{key}", held, "state")


def _tensors_in(pattern: str, state: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, held in state.items():
        if hasattr(held, "untyped_storage"):
            yield pattern.format(key), held
        elif isinstance(held, list | tuple):
            for number, item in enumerate(cast("list[Any]", held)):
                if hasattr(item, "untyped_storage"):
                    yield pattern.format(f"{key}[{number}]"), item


def nested(tensor_type: type[Any], name: str, value: Any, depth: int = 6, most: int | None = None) -> Iterator[Named]:
    """The tensors in a value that may be a tensor, or a container of such values."""
    if isinstance(value, tensor_type):
        yield Named(name, value, "input")
    elif depth and isinstance(value, list | tuple | dict):
        held = cast("list[Any] | dict[Any, Any]", value)
        if most is not None and len(held) > most:
            return
        if isinstance(held, dict):
            for key, item in held.items():
                yield from nested(tensor_type, f"{name}.{key}", item, depth - 1, most)
        else:
            for number, item in enumerate(held):
                yield from nested(tensor_type, f"{name}[{number}]", item, depth - 1, most)
    elif depth and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for field in cast("dict[str, Any]", value.__dataclass_fields__):
            yield from nested(tensor_type, f"{name}.{field}", getattr(value, field, None), depth - 1, most)


def variables(tensor_type: type[Any], frame: FrameType) -> Iterator[Named]:
    """The tensors that the user's own variables hold: a batch that was made before the recording."""
    for name, value in variables_of(frame).items():
        if not name.startswith("__"):
            yield from nested(tensor_type, name, value, depth=3, most=_MOST_ITEMS)


def held_in(frame: FrameType, kinds: tuple[type[Any], ...]) -> Iterator[tuple[str, Any]]:
    """Modules and optimizers among the user's variables, with the names that he gave them."""
    for name, value in variables_of(frame).items():
        if isinstance(value, kinds) and not name.startswith("_"):
            yield name, value


def _variable(frame: FrameType, value: Any) -> str | None:
    """The variable that holds a value, in the nearest frame that has one."""
    walk = frame.f_back
    for _ in range(12):
        if walk is None:
            return None
        for name, held in locals_of(walk).items():
            if held is value and name.isidentifier() and name != "self" and not name.startswith("_"):
                return name
        walk = walk.f_back
    return None


def name_in_frame(frame: FrameType, value: Any) -> str | None:
    """The variable of this frame that holds the value: a local, a global, or an attribute of `self`."""
    own = locals_of(frame)
    holders: list[Mapping[str, Any]] = [own, frame.f_globals]
    owner = own.get("self")
    if owner is not None and owner is not value:
        holders.append(getattr(owner, "__dict__", {}))
        holders.append(getattr(owner, "_modules", {}))
    for holder in holders:
        for name, held in holder.items():
            if held is value and name.isidentifier() and not name.startswith("__"):
                return name
    return None
