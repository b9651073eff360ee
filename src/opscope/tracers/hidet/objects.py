"""Hidet's own objects (FlowGraph, Operator, Tensor) as a Flow. They change while passes run: this is a snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from opscope.readers.hidet.attributes import dimension, parsed
from opscope.readers.hidet.flow import NEW, Flow, Operator, Tensor

Place = Callable[[Any], tuple[int, int]]  # operator -> its scope and its stack
Names = dict[int, str]  # id of a tensor -> the parameter it is

_LARGEST_HASHED = 1 << 26


def snapshot(graph: Any, place: Place = lambda operator: (0, 0), names: Names | None = None, depth: int = 0) -> Flow:
    """A FlowGraph as it is now."""
    flow = Flow(dialect=NEW)
    keys: dict[int, str] = {}
    for i, tensor in enumerate(graph.inputs or ()):
        keys[id(tensor)] = f"input:{i}"
        flow.inputs.append(_tensor(tensor, f"input:{i}"))
    for index, operator in enumerate(graph.nodes):
        name = f"{index}_{operator.name}"
        for tensor in operator.inputs:
            if id(tensor) not in keys:
                keys[id(tensor)] = key = f"const:{len(flow.constants)}"
                flow.constants.append(_constant(tensor, key, names or {}))
        for k, tensor in enumerate(operator.outputs):
            keys[id(tensor)] = f"{name}:{k}"
        flow.operators.append(_operator(operator, name, keys, place, depth))
    for tensor in graph.outputs:
        if id(tensor) not in keys:  # a constant that is given back as it is
            keys[id(tensor)] = key = f"const:{len(flow.constants)}"
            flow.constants.append(_constant(tensor, key, names or {}))
        flow.outputs.append(keys[id(tensor)])
    if not depth:
        flow.text = str(graph)
    return flow


def _operator(operator: Any, name: str, keys: dict[int, str], place: Place, depth: int) -> Operator:
    scope, stack = place(operator)
    outputs = [_tensor(tensor, f"{name}:{k}") for k, tensor in enumerate(operator.outputs)]
    made = Operator(name, str(operator.name), [keys[id(t)] for t in operator.inputs], outputs, scope=scope, stack=stack)
    for key, value in operator.attrs.items():
        if hasattr(value, "nodes") and hasattr(value, "outputs") and depth < 5:
            made.fused = snapshot(value, place, depth=depth + 1)
            made.printed.append(f"{key}=FlowGraph({', '.join(inner.op for inner in made.fused.operators)})")
        else:
            made.attrs[key] = value if isinstance(value, str) else parsed(str(value))
            made.printed.append(f'{key}="{value}"' if isinstance(value, str) else f"{key}={value}")
    task = operator.task
    if task is not None:
        made.task = str(task)
        made.shares = {int(k): int(v) for k, v in dict(operator.share_map or {}).items()}
    return made


def _tensor(tensor: Any, key: str) -> Tensor:
    shape = tuple(dimension(int(d) if isinstance(d, int) else str(d)) for d in tensor.shape)
    return Tensor(key, str(tensor.dtype.name), shape, str(tensor.device.kind), name=key)


def _constant(tensor: Any, key: str, names: Names) -> Tensor:
    made = _tensor(tensor, key)
    called = names.get(id(tensor))
    if called is not None:
        made.name, made.role = called, "parameter"
    if tensor.storage is not None and tensor.nbytes <= _LARGEST_HASHED:
        numbers = tensor.cpu().numpy()
        made.digest = hashlib.sha256(numbers.data.tobytes()).hexdigest()[:32]
        if not tensor.shape:
            made.value = str(numbers)
    return made
