"""A graph of any size, the same every time: what `bench_ir.py` builds.

Every node has two inputs and one output. Nodes are in modules of 100 (a million nodes: 10,000 scopes,
three levels deep) and come from 5,000 source lines; one input is the node before, the other a recent one,
as in a network with short skips. Every node has a name of its own, which is the worst case for the pools.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opscope.ir import Capture, Frame, GraphBuilder, Origin, Pools, Stage

OPS = [f"aten.op{i}" for i in range(40)]
SHAPES = [(1, 64, s, s) for s in (7, 14, 28, 56, 112)]
PER_SCOPE = 100
LINES = 5_000
FILES = 50


class Rows(NamedTuple):
    """What the nodes are, as plain lists: builders of every kind start from the same ones."""

    op: list[str]
    name: list[str]
    inputs: list[tuple[int, int]]  # values: 0 and 1 are the graph's inputs, then one per node
    shape: list[tuple[int, ...]]
    scope: list[int]
    line: list[int]
    phase: list[str]

    def first(self, count: int) -> Rows:
        return Rows(*(column[:count] for column in self))


def rows(count: int, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    back = rng.integers(1, 20, count).tolist()
    scopes = [i // PER_SCOPE for i in range(count)]
    lines = rng.integers(0, 3, count).tolist()
    return Rows(
        op=[OPS[i] for i in rng.integers(0, len(OPS), count).tolist()],
        name=[f"n{i}" for i in range(count)],
        inputs=[(i + 1, max(i + 1 - back[i], 0)) for i in range(count)],
        shape=[SHAPES[i] for i in rng.integers(0, len(SHAPES), count).tolist()],
        scope=scopes,
        line=[(scope * 3 + line) % LINES for scope, line in zip(scopes, lines, strict=True)],
        phase=["forward" if i < count // 2 else "backward" for i in range(count)],
    )


class _Frame(NamedTuple):
    """What both ways of building need: a builder with its inputs, and the pools filled."""

    b: GraphBuilder
    types: dict[tuple[int, ...], int]
    scopes: list[int]
    stacks: list[int]

    def done(self) -> Capture:
        self.b.outputs.append(self.b.n_values - 1)
        graph = self.b.freeze()
        return Capture(pools=self.b.pools, stages=[Stage("synthetic", graph)], origin=Origin("synthetic", "none"))


def _frame(table: Rows) -> _Frame:
    pools = Pools()
    b = GraphBuilder(pools)
    types = {shape: pools.type("float32", shape) for shape in SHAPES}
    b.input(types[SHAPES[0]], name="x")
    b.input(types[SHAPES[0]], name="y")
    return _Frame(b, types, _scopes(pools, len(table.op)), _stacks(pools))


def build(table: Rows) -> Capture:
    """All at once, as readers of large files do."""
    f = _frame(table)
    f.b.nodes(
        table.op,
        table.inputs,
        list(map(f.types.__getitem__, table.shape)),
        names=table.name,
        scopes=list(map(f.scopes.__getitem__, table.scope)),
        stacks=list(map(f.stacks.__getitem__, table.line)),
        phases=table.phase,
    )
    return f.done()


def build_singly(table: Rows) -> Capture:
    """One call per node and per value, as live tracers do."""
    f = _frame(table)
    node, output = f.b.node, f.b.output
    for op, name, inputs, shape, scope, line, phase in zip(*table, strict=True):
        made = node(op, inputs, name=name, scope=f.scopes[scope], stack=f.stacks[line], phase=phase)
        output(made, f.types[shape])
    return f.done()


def _scopes(pools: Pools, nodes: int) -> list[int]:
    """Model / stage of 100 blocks / block."""
    root = pools.scope(0, "model", "Model")
    stages: dict[int, int] = {}
    blocks: list[int] = []
    for i in range(-(-nodes // PER_SCOPE)):
        stage = stages.setdefault(i // 100, 0) or pools.scope(root, f"stage{i // 100}", "Stage")
        stages[i // 100] = stage
        blocks.append(pools.scope(stage, f"block{i % 100}", "Block"))
    return blocks


def _stacks(pools: Pools) -> list[int]:
    main = Frame("train.py", 10, "main")
    per_file = LINES // FILES
    return [
        pools.stack([main, Frame(f"model/part{i // per_file}.py", i % per_file + 1, f"forward{i // per_file}")])
        for i in range(LINES)
    ]
