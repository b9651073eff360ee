"""Graphs for the viewer benchmarks, each in every format that a viewer needs.

`syn` is a transformer whose rotary tables and mask are shared by all layers (global skips); `loc` rebuilds them in each
layer (local skips only); `moe` has wide expert branches; `train` is forward and backward with saved activations, the
hard case; `wide` is `syn` in modules of 5,000 operators each. `gpt2`, `llama32` and `resnet152` are real: exported from
PyTorch once and kept in graphs/. A graph is lists of (op, module path, shape) and of edges; ids are topological.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path

import opscope
from opscope.ir import Capture, GraphBuilder, Origin, Pools, Stage

REAL = Path(__file__).parent / "graphs"
WIDE = 5000
SAVES_INPUT = {"mm", "bmm", "mul", "softmax", "silu", "rsqrt", "pow", "div", "cos", "sin", "embedding"}


@dataclass
class Model:
    name: str
    nodes: list[tuple[str, str, str]] = field(default_factory=list)
    inputs: list[list[int]] = field(default_factory=list)

    def op(self, op: str, scope: str, inputs: list[int], shape: str = "1x512x4096") -> int:
        self.nodes.append((op, scope, shape))
        self.inputs.append(list(dict.fromkeys(inputs)))
        return len(self.nodes) - 1

    def weight(self, scope: str, shape: str = "4096x4096") -> int:
        return self.op("parameter", scope, [], shape)

    def linear(self, scope: str, x: int) -> int:
        return self.op("mm", scope, [x, self.op("t", scope, [self.weight(scope)], "4096x4096")])

    def norm(self, scope: str, x: int) -> int:
        mean = self.op("mean", scope, [self.op("pow", scope, [x])], "1x512x1")
        scale = self.op("rsqrt", scope, [self.op("add", scope, [mean], "1x512x1")], "1x512x1")
        return self.op("mul", scope, [self.weight(scope, "4096"), self.op("mul", scope, [x, scale])])

    def rotate(self, scope: str, x: int, cos: int, sin: int) -> int:
        low, high = self.op("slice", scope, [x]), self.op("slice", scope, [x])
        turned = self.op("cat", scope, [self.op("neg", scope, [high]), low])
        return self.op("add", scope, [self.op("mul", scope, [x, cos]), self.op("mul", scope, [turned, sin])])

    def attention(self, scope: str, x: int, cos: int, sin: int, mask: int) -> int:
        def head(name: str) -> int:
            y = self.op("view", scope, [self.linear(f"{scope}/{name}_proj", x)])
            return self.op("transpose", scope, [y], "1x32x512x128")

        query, key, value = head("q"), head("k"), head("v")
        query = self.rotate(f"{scope}/rope_q", query, cos, sin)
        key = self.rotate(f"{scope}/rope_k", key, cos, sin)
        score = self.op("bmm", scope, [query, self.op("transpose", scope, [key])], "32x512x512")
        score = self.op("softmax", scope, [self.op("add", scope, [self.op("div", scope, [score]), mask])], "32x512x512")
        out = self.op("view", scope, [self.op("transpose", scope, [self.op("bmm", scope, [score, value])])])
        return self.linear(f"{scope}/o_proj", out)

    def mlp(self, scope: str, x: int) -> int:
        gate = self.op("silu", f"{scope}/act", [self.linear(f"{scope}/gate_proj", x)])
        return self.linear(f"{scope}/down_proj", self.op("mul", scope, [gate, self.linear(f"{scope}/up_proj", x)]))

    def experts(self, scope: str, x: int, count: int) -> int:
        gate = self.op("softmax", f"{scope}/gate", [self.linear(f"{scope}/gate", x)])
        top = self.op("topk", f"{scope}/gate", [gate])
        total: int | None = None
        for e in range(count):
            inner = f"{scope}/experts/{e}"
            where = self.op("where", inner, [top])
            y = self.mlp(inner, self.op("index_select", inner, [x, where]))
            y = self.op("mul", inner, [y, top])
            total = self.op("index_add", scope, [y, where] if total is None else [total, y, where])
        assert total is not None
        return total


def transformer(name: str, size: int, experts: int = 0, local: bool = False) -> Model:
    m = Model(name)
    x = m.op("embedding", "model/embed_tokens", [m.op("input_ids", "", [], "1x512"), m.weight("model/embed_tokens")])
    table = m.op("mm", "model/rotary_emb", [m.op("arange", "model/rotary_emb", []), m.weight("model/rotary_emb")])
    cos, sin = m.op("cos", "model/rotary_emb", [table]), m.op("sin", "model/rotary_emb", [table])
    mask = m.op("triu", "model", [m.op("full", "model", [])])
    layer = 0
    while layer == 0 or len(m.nodes) < size - (0 if experts else 30):
        scope = f"model/layers/{layer}"
        if local:
            inner = f"{scope}/rotary_emb"
            table = m.op("mm", inner, [m.op("arange", inner, []), m.weight(inner)])
            cos, sin, mask = m.op("cos", inner, [table]), m.op("sin", inner, [table]), m.op("full", scope, [])
        y = m.attention(f"{scope}/self_attn", m.norm(f"{scope}/input_layernorm", x), cos, sin, mask)
        x = m.op("add", scope, [x, y])
        z = m.norm(f"{scope}/post_attention_layernorm", x)
        y = m.experts(f"{scope}/block_sparse_moe", z, experts) if experts else m.mlp(f"{scope}/mlp", z)
        x = m.op("add", scope, [x, y])
        layer += 1
    m.op("output", "", [m.linear("lm_head", m.norm("model/norm", x))])
    return m


def training(name: str, size: int) -> Model:
    """Forward, backward with what it saved, and a step for every parameter."""
    forward = transformer("", int(size / 2.55))
    m = Model(name, list(forward.nodes), [list(i) for i in forward.inputs])
    needs = [False] * len(forward.nodes)
    for v, (op, _, _) in enumerate(forward.nodes):
        needs[v] = op == "parameter" or any(needs[u] for u in forward.inputs[v])
    gradients: dict[int, list[int]] = {
        len(forward.nodes) - 1: [m.op("ones_like", "loss", [len(forward.nodes) - 1], "1")]
    }
    for v in reversed(range(len(forward.nodes))):
        if not needs[v] or v not in gradients:
            continue
        op, scope, _ = forward.nodes[v]
        inner = f"backward/{scope}" if scope else "backward"
        total, *others = gradients[v]
        for other in others:
            total = m.op("add", inner, [total, other])
        if op == "parameter":
            m.op("adam_step", f"optimizer/{scope}", [total, v])
            continue
        for u in forward.inputs[v]:
            if needs[u]:
                saved = [v] if op == "softmax" else [w for w in forward.inputs[v] if w != u][:1] or [u]
                gradients.setdefault(u, []).append(
                    m.op(f"{op}_bwd", inner, [total, *(saved if op in SAVES_INPUT else [])])
                )
    return m


def make(name: str) -> Model:
    """`syn-5k`, `loc-100k`, `moe-20k`, `train-1k`, `wide-100k`, `gpt2`, `empty`."""
    if name == "empty":  # the least that every viewer draws
        smallest = transformer(name, 250)
        return Model(name, smallest.nodes[:2], smallest.inputs[:2])
    kind, _, size = name.partition("-")
    if not size:
        return real(name)
    count = int(float(size.replace("k", "e3").replace("M", "e6")))
    if kind == "train":
        return training(name, count)
    if kind == "wide":
        m = transformer(name, count)
        m.nodes = [(op, f"model/part{i // WIDE}", shape) for i, (op, _, shape) in enumerate(m.nodes)]
        return m
    return transformer(name, count, experts={"moe": 8 if count <= 2000 else 32}.get(kind, 0), local=kind == "loc")


def real(name: str) -> Model:
    stored = json.loads(gzip.decompress((REAL / f"{name}.json.gz").read_bytes()))
    m = Model(name, [(op, scope, shape) for op, scope, shape in stored["nodes"]], [[] for _ in stored["nodes"]])
    for source, target in stored["edges"]:
        m.inputs[target].append(source)
    return m


def write(model: Model, folder: Path, flat: bool = False, endings: tuple[str, ...] = (".opscope",)) -> Path:
    """NAME.opscope, NAME.json (Model Explorer), NAME.onnx and NAME.plain.json (for layout engines); without ending."""
    base = folder / (f"{model.name}-flat" if flat else model.name)
    wanted = [ending for ending in endings if not base.with_suffix(ending).exists()]
    if ".opscope" in wanted or ".json" in wanted:
        capture = to_capture(model, flat)
        for ending in wanted:
            if ending in (".opscope", ".json"):
                capture.save(base.with_suffix(ending))
    if ".plain.json" in wanted:
        edges = [[u, v] for v, inputs in enumerate(model.inputs) for u in inputs]
        plain = {"name": model.name, "nodes": model.nodes, "edges": edges}
        base.with_suffix(".plain.json").write_text(json.dumps(plain))
    if ".onnx" in wanted:
        _write_onnx(model, base.with_suffix(".onnx"))
    return base


def to_capture(model: Model, flat: bool) -> opscope.Capture:
    pools = Pools()
    b = GraphBuilder(pools)
    scopes = {"": 0}

    def scope(path: str) -> int:
        if path not in scopes:
            around, _, name = path.rpartition("/")
            scopes[path] = pools.scope(scope(around), name)
        return scopes[path]

    types: dict[str, int] = {}
    for _, _, shape in model.nodes:
        if shape not in types:
            types[shape] = pools.type("float32", [int(d) for d in shape.split("x") if d.isdigit()])
    b.nodes(
        [op for op, _, _ in model.nodes],
        model.inputs,
        [types[shape] for _, _, shape in model.nodes],
        names=[f"{op}_{i}" for i, (op, _, _) in enumerate(model.nodes)],
        scopes=[0 if flat else scope(path) for _, path, _ in model.nodes],
        phases=["forward"] * len(model.nodes),
    )
    stage = Stage(model.name, b.freeze())
    return opscope.Capture.of(Capture(pools=pools, stages=[stage], origin=Origin("benchmark", "synthetic")))


def _write_onnx(model: Model, path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    used = {u for inputs in model.inputs for u in inputs}
    nodes = []
    for i, (op, scope, _) in enumerate(model.nodes):
        name = f"{scope}/{op}_{i}" if scope else f"{op}_{i}"
        nodes.append(helper.make_node(op, [f"v{u}" for u in model.inputs[i]], [f"v{i}"], name=name, domain="bench"))
    outputs = [
        helper.make_tensor_value_info(f"v{i}", TensorProto.FLOAT, []) for i in range(len(model.nodes)) if i not in used
    ]
    graph = helper.make_graph(nodes, model.name, [], outputs)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("bench", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), str(path))
