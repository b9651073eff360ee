"""What things are called: modules within modules, tensors within modules, optimizers, arguments and variables."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple, cast

from opscope.tracers.frames import name_in_stack
from opscope.tracers.torch.parts import named_parts, named_tensors


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
        for path, inner in named_parts(module):
            if path:
                above, _, name = path.rpartition(".")
                by_path[path] = (*by_path.get(above, top), Step(name, type(inner).__name__))
            self._references[id(inner)] = weakref.ref(inner)
            self._ways.setdefault(id(inner), []).append(by_path[path])

    def knows(self, module: Any) -> bool:
        """Whether it is a part of a model that the recording was given, or met."""
        reference = self._references.get(id(module))
        return reference is not None and reference() is module

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
                self.add_root(name_in_stack(frame.f_back, module) or type(module).__name__, module)
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
        held = [(name, module, list(_own_tensors(module))) for name, module in self.roots()]
        held = [root for root in held if root[2]]
        for name, module, tensors in held:
            prefix = "" if module is main or len(held) == 1 else f"{name}."
            for path, tensor, role in tensors:
                yield Named(prefix + path, tensor, role)


def _own_tensors(module: Any) -> Iterator[tuple[str, Any, str]]:
    for path, tensor in named_tensors(module, "_parameters"):
        yield path, tensor, "parameter"
    for path, tensor in named_tensors(module, "_buffers"):
        yield path, tensor, "buffer"


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
