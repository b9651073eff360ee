"""What is traced: the target as a function of its arrays alone. Everything else among its arguments stays as it is."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from opscope.errors import OpscopeError

from .private import hide_own_frames, import_jax


class Traced(NamedTuple):
    """A traced program, with the names of its inputs and which of them are parameters of a model."""

    traced: Any  # jax.stages.Traced
    name: str
    inputs: list[str]
    parameters: frozenset[int]


def traced(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    jax = import_jax()
    hide_own_frames()
    if all(
        hasattr(target, name) for name in ("trace", "lower", "eval_shape")
    ):  # a jitted function: it knows what is static
        found = target.trace(*args, **kwargs)
        return Traced(found, _name(target), _names(found), frozenset())
    split = _split_module(target)
    state: Any = None if split is None else split[0]
    if not callable(target):
        raise OpscopeError(f"{target!r:.80} cannot be called: give opscope.trace() a function or a module")
    arguments = _named(target, args, kwargs)
    leaves, tree = jax.tree_util.tree_flatten((state, arguments), is_leaf=_is_none)
    is_array = [_is_array(leaf) for leaf in leaves]
    paths = [_path(path) for path, _ in jax.tree_util.tree_leaves_with_path((state, arguments), is_leaf=_is_none)]
    count = len(jax.tree_util.tree_leaves(state, is_leaf=_is_none))

    def run(*arrays: Any) -> Any:
        given = iter(arrays)
        merged = [next(given) if dynamic else leaf for leaf, dynamic in zip(leaves, is_array, strict=True)]
        own, inside = jax.tree_util.tree_unflatten(tree, merged)
        call = target if split is None else split[1](own)
        positional, named = inside["args"], inside["kwargs"]
        return _outputs(call(*positional.values(), **named))

    run.__name__ = run.__qualname__ = _name(target)
    arrays = [leaf for leaf, dynamic in zip(leaves, is_array, strict=True) if dynamic]
    found = jax.jit(run).trace(*arrays)
    chosen = [(path, i < count) for i, (path, dynamic) in enumerate(zip(paths, is_array, strict=True)) if dynamic]
    return Traced(
        found, _name(target), [path for path, _ in chosen], frozenset(i for i, (_, own) in enumerate(chosen) if own)
    )


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _split_module(target: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    """The arrays of a module, and what makes the module of such arrays again."""
    root = {cls.__module__.partition(".")[0] for cls in type(target).__mro__}
    if "flax" in root:
        nnx: Any = importlib.import_module("flax.nnx")
        if isinstance(target, nnx.Module):
            graph, state = nnx.split(target)
            return state, lambda own: nnx.merge(graph, own)
        raise OpscopeError(
            "a Flax Linen module holds no parameters: give opscope.trace() model.apply, the variables and the inputs"
        )
    if "equinox" in root:
        jax = import_jax()
        leaves, tree = jax.tree_util.tree_flatten(target)
        dynamic = {str(i): leaf for i, leaf in enumerate(leaves) if _is_array(leaf)}
        names = [_path(path) for path, _ in jax.tree_util.tree_leaves_with_path(target)]

        def rebuild(own: dict[str, Any]) -> Any:
            merged = [own.get(names[i] or str(i), leaf) for i, leaf in enumerate(leaves)]
            return jax.tree_util.tree_unflatten(tree, merged)

        return {names[int(i)] or i: leaf for i, leaf in dynamic.items()}, rebuild
    return None


def _is_array(leaf: Any) -> bool:
    """Arrays, and what stands for one. Python's numbers may steer the program: they stay what they are."""
    jax = import_jax()
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


def _named(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, dict[Any, Any]]:
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    # Numbered, because a tree of a dictionary is sorted by its keys.
    positional = {(i, names[i] if i < len(names) else f"args[{i}]"): arg for i, arg in enumerate(args)}
    return {"args": positional, "kwargs": kwargs}


def _path(path: tuple[Any, ...]) -> str:
    """`params['w'][0]` of a path through the state or the arguments."""
    jax = import_jax()
    keys = list(path)
    if keys and isinstance(keys[0], jax.tree_util.SequenceKey):
        keys = keys[1:]
    head = ""
    if keys and getattr(keys[0], "key", None) in ("args", "kwargs"):
        inner: Any = keys[1].key if len(keys) > 1 else ""
        head, keys = str(cast("Any", inner)[1]) if isinstance(inner, tuple) else str(inner), keys[2:]
    rest = "".join(_step(key) for key in keys)
    return (head + rest).lstrip(".")


def _step(key: Any) -> str:
    jax = import_jax()
    tree = jax.tree_util
    if isinstance(key, tree.GetAttrKey):
        return f".{key.name}"
    if isinstance(key, tree.DictKey | tree.FlattenedIndexKey):
        return f".{key.key}" if isinstance(key.key, str) and key.key.isidentifier() else f"[{key.key!r}]"
    if isinstance(key, tree.SequenceKey):
        return f"[{key.idx}]"
    return str(key)


def _outputs(value: Any) -> Any:
    """What a function gives back, without what is no array: a program gives back arrays alone."""
    jax = import_jax()
    return [
        leaf
        for leaf in jax.tree_util.tree_leaves(value)
        if _is_array(leaf) or isinstance(leaf, bool | int | float | complex)
    ]


def _names(found: Any) -> list[str]:
    names = getattr(getattr(found.jaxpr.jaxpr, "debug_info", None), "arg_names", None)
    count = len(found.jaxpr.jaxpr.invars)
    return [str(name) for name in names] if names and len(names) == count else [f"args[{i}]" for i in range(count)]


def _name(target: Any) -> str:
    while isinstance(target, functools.partial):
        target = target.func
    return getattr(target, "__name__", None) or type(target).__name__
