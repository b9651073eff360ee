"""Hidet from the model to the optimized graph: the traced graph, and what each pass does to it.

python examples/hidet_passes.py              prints, and writes gated.json and gated.opscope
opscope diff gated.opscope                   what each pass did
opscope trace examples/hidet_passes.py       the same, captured from outside
"""

from __future__ import annotations

import hidet
from hidet.graph import nn, ops

import opscope
from opscope.compat.hidet import dump


class Gate(nn.Module):
    """x · sigmoid(W x): a gate on every element."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, width)

    def forward(self, x):
        return x * ops.sigmoid(self.score(x))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.widen = nn.Linear(width, 2 * width)
        self.gate = Gate(2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.narrow(self.gate(ops.relu(self.widen(x))))


def main() -> None:
    model = Block(16)
    x = hidet.randn([4, 16])

    capture = opscope.trace(model, x)  # with modules and source lines
    print(capture.stages[0].listings["native"])

    graph = model.flow_graph_for([x])
    with open("gated.json", "w", encoding="utf-8") as file:
        dump(graph, file)  # for Hidet's own viewer

    with opscope.passes() as passes:  # no files, no printing
        hidet.graph.optimize(graph)
    for stage in passes.stages:
        print(f"{stage.name:28} {stage.graph.n_nodes:3} operators")
    passes.save("gated.opscope")


if __name__ == "__main__":
    main()
