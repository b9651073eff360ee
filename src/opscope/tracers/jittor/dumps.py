"""Cuts a part out of a dump: what ran in a window, without what only happened to run at the same time."""

from __future__ import annotations

from typing import Any

Dump = dict[str, Any]


def without(data: Dump, nodes: set[int]) -> Dump:
    """The dump without these nodes, and without the executions that were only theirs."""
    if not nodes:
        return data
    kept = {
        key: {
            **node,
            "inputs": [other for other in node["inputs"] if other not in nodes],
            "outputs": [other for other in node["outputs"] if other not in nodes],
        }
        for key, node in data["node_data"].items()
        if key not in nodes
    }
    groups = {key: group for key, group in data["execute_op_info"].items() if not nodes.issuperset(group["fused_ops"])}
    return {"node_data": kept, "execute_op_info": groups}


def since(data: Dump, group: int) -> Dump:
    """What ran after this execution, where the dump began earlier: its operators and the tensors they touch."""
    return _only(data, {key: entry for key, entry in data["execute_op_info"].items() if key > group})


def without_earlier(data: Dump, began: int) -> tuple[Dump, int]:
    """The dump without the kernels whose operators were all made before node `began`, and how many operators
    those are. Jittor is lazy: such kernels were waiting (to initialise parameters, to finish the step before) and
    ran now because something else did. Kernels in which they are fused with newer operators stay whole.
    """
    nodes: dict[int, Any] = data["node_data"]

    def is_new(op: int) -> bool:
        return op in nodes and int(nodes[op]["attrs"]["__id"]) > began

    groups = {key: entry for key, entry in data["execute_op_info"].items() if any(map(is_new, entry["fused_ops"]))}
    if len(groups) == len(data["execute_op_info"]):
        return data, 0
    cut = _only(data, groups)
    return cut, _count_ops(data) - _count_ops(cut)


def _count_ops(data: Dump) -> int:
    return sum(node["attrs"]["is_var"] == "0" for node in data["node_data"].values())


def _only(data: Dump, groups: dict[int, Any]) -> Dump:
    """The operators of these executions and the tensors that they read and make."""
    nodes: dict[int, Any] = data["node_data"]
    ops = {op for entry in groups.values() for op in entry["fused_ops"] if op in nodes}
    kept = set(ops)
    for op in ops:
        kept.update(other for other in nodes[op]["inputs"] + nodes[op]["outputs"] if other in nodes)
    cut: dict[int, Any] = {}
    for key in kept:
        node = nodes[key]
        if key in ops:
            cut[key] = node
        else:
            # A tensor from before keeps its description, and loses the operators that are not part of this.
            inputs = [op for op in node["inputs"] if op in ops]
            outputs = [op for op in node["outputs"] if op in ops]
            cut[key] = {**node, "inputs": inputs, "outputs": outputs}
    return {"node_data": cut, "execute_op_info": groups}


def last_group(data: Dump) -> int:
    return max(data["execute_op_info"], default=-1)
