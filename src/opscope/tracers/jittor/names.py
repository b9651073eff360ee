"""What things are called: modules within modules, tensors within modules and optimizers, locals in a frame."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast


class Variable(NamedTuple):
    """A tensor that has a name of its own, whatever operator reads or writes it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str  # parameter, buffer, state, gradient or input


class Named(NamedTuple):
    """A tensor object of the user's and what we call it. Held only while names are being read."""

    name: str
    var: Any
    role: str


def submodules(root: Any) -> dict[int, tuple[tuple[str, Any], ...]]:
    """id of a module -> the way to it from `root`, as (name, module) steps. The first way found counts."""
    ways: dict[int, tuple[tuple[str, Any], ...]] = {}
    path: list[tuple[str, Any]] = []

    # Jittor's own walk, which Sequential and others override: we see what parameters() sees.
    def enter(parents: list[Any], key: Any, module: Any, children: int) -> None:
        path.append((str(key), module))
        ways.setdefault(id(module), tuple(path[1:]))

    def leave(parents: list[Any], key: Any, module: Any, children: int) -> None:
        path.pop()

    # A dfs() of the user's own may fail here: then what is inside has no names, and nothing else is lost.
    with contextlib.suppress(Exception):
        root.dfs([], "", enter, leave)
    return ways


def module_variables(jt: Any, root: Any) -> Iterator[Named]:
    """The tensors of a module, named as Jittor's state_dict names them."""
    trained = _trained_ids(root)
    for way in [(), *[way for way in submodules(root).values() if way]]:
        module = way[-1][1] if way else root
        trained |= _trained_ids(module)
        held = module.params if isinstance(module, jt.nn.ParameterList) else module.__dict__
        for key, var in cast("dict[Any, Any]", held).items():
            if isinstance(var, jt.Var) and not str(key).startswith("_"):
                name = ".".join([step for step, _ in way] + [str(key)])
                # Jittor has no class for buffers: what takes no gradient is one.
                is_parameter = not var.is_stop_grad() or id(var) in trained
                yield Named(name, var, "parameter" if is_parameter else "buffer")


def _trained_ids(module: Any) -> set[int]:
    # eval() stops the gradients of all parameters and remembers here which ones had one.
    kept: dict[int, bool] = getattr(module, "backup_grad_state", {})
    return {var for var, had_gradient in kept.items() if had_gradient}


def optimizer_variables(jt: Any, optimizer: Any, name: str, parameters: Mapping[int, str]) -> Iterator[Named]:
    """An optimizer's own tensors, such as `opt.m.fc1.weight`. `parameters`: id of a tensor object -> its name."""
    for index, group in enumerate(optimizer.param_groups):
        owners: list[Any] = list(group["params"])
        prefix = name if len(optimizer.param_groups) == 1 else f"{name}.{index}"
        for number, var in enumerate(owners):
            if id(var) not in parameters:
                yield Named(f"{prefix}.params[{number}]", var, "parameter" if not var.is_stop_grad() else "buffer")
        for key, held in group.items():
            if key == "params" or not isinstance(held, list):
                continue
            for number, var in enumerate(cast("list[Any]", held)):
                if isinstance(var, jt.Var):
                    owner = parameters.get(id(owners[number])) if number < len(owners) else None
                    yield Named(
                        f"{prefix}.{key}.{owner}" if owner else f"{prefix}.{key}[{number}]",
                        var,
                        "gradient" if key == "grads" else "state",
                    )
    attributes: dict[str, Any] = optimizer.__dict__
    for key, held in attributes.items():
        if isinstance(held, jt.Var):
            yield Named(f"{name}.{key}", held, "state")


def describe(var: Any, name: str, role: str) -> Variable:
    return Variable(name, str(var.dtype), tuple(int(size) for size in var.shape), role)
