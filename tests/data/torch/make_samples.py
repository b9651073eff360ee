"""Makes the samples of this folder, with torch 2.13 on a CPU:  python make_samples.py [FOLDER]

Beside them it writes `facts.json`: what torch itself says of each, which the tests compare with what opscope reads.
Nothing random is in them but weights that are never looked at.
"""

import io
import json
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple  # noqa: UP035 (TorchScript reads these)

import torch
import torch.nn.functional as F
from torch import Tensor, nn

warnings.simplefilter("ignore")
HERE = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
FACTS: dict[str, Any] = {}


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.act = nn.ReLU()

    def forward(self, x):
        return x + self.act(self.fc(x))


class Net(nn.Module):
    """Nested modules, one of them called twice, a buffer, a constant, lists of tensors, two tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(16, 4)
        self.layers = nn.Sequential(Block(4), Block(4))
        self.shared = Block(4)
        self.head = nn.Linear(4, 16, bias=False)
        self.head.weight = self.tok.weight
        self.register_buffer("scale", torch.ones(4))

    def forward(self, idx, extra):
        x = self.tok(idx) * self.scale + torch.tensor([1.0, 2.0, 3.0, 4.0])
        x = self.layers(x)
        x = self.shared(self.shared(x))
        a, b = x.chunk(2, -1)
        x = torch.cat([b, a], -1)
        values, indices = x.topk(2, dim=-1)
        return {"logits": self.head(x), "top": values}, (indices, x), F.dropout(extra, 0.0).to(torch.bfloat16)


class Branches(nn.Module):
    """cond inside cond, beside a while_loop and a map."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x, n):
        from torch._higher_order_ops.map import map as map_
        from torch._higher_order_ops.while_loop import while_loop

        def inner_true(x):
            return x.sin()

        def inner_false(x):
            return x.cos()

        def true(x):
            return torch.cond(x.max() > 1, inner_true, inner_false, (x,)) + 1

        def false(x):
            return x * 2

        x = map_(lambda row, k: row + k, x, n)
        y = torch.cond(x.sum() > 0, true, false, (self.fc(x),))

        def again(i, v):
            return i < 5

        def step(i, v):
            return i + 1, v * 2 + 1

        count, y = while_loop(again, step, (n, y))
        return count, y


class Counter(nn.Module):
    """Writes a buffer, and its own input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x, cache):
        self.count.add_(1)
        cache.copy_(x)
        return self.bn(x) * self.count


class Sized(nn.Module):
    def forward(self, x, mask):
        y = x.reshape(x.shape[0] * x.shape[1], 4)
        z = torch.zeros(x.shape[0], 2 * x.shape[1])
        picked = x[mask.nonzero()[0]]
        return y, z, x.new_full((x.shape[0] + 1,), 0.5), picked


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


class Scripted(nn.Module):
    """What scripting can do: if, loops, early return, lists, dicts, tuples, a NamedTuple, other methods, a function."""

    limits: List[int]  # noqa: UP006

    def __init__(self) -> None:
        super().__init__()
        self.block = Block(4)
        self.more = nn.ModuleList([Block(4), Block(4)])
        self.limits = [1, 2, 3]
        self.threshold = 0.5
        self.register_buffer("bias", torch.zeros(4))

    def scaled(self, x: Tensor, by: float = 2.0) -> Tensor:
        return x * by + self.bias

    def forward(self, x: Tensor, n: int, names: Dict[str, Tensor], other: Optional[Tensor] = None):  # noqa: UP006, UP045
        if other is not None:
            x = x + other
        total = torch.zeros(4)
        for i in range(n):
            if bool(x.sum() > self.threshold):
                x = self.block(x)
            else:
                x = self.scaled(x, by=float(i))
                total = total + x.sum(0)
        while bool(x.max() > 10):
            x = x / 2
        for layer in self.more:
            x = layer(x)
        parts: List[Tensor] = []  # noqa: UP006
        for limit in self.limits:
            parts.append(helper(x, limit))
        names["out"] = x
        pair = Pair(x, total)
        if n > 3:
            return pair.left, [p for p in parts], names
        low, high = x.chunk(2, -1)
        return torch.cat([low, high], -1), parts, {"total": pair.right}


def helper(x: Tensor, k: int) -> Tensor:
    assert k > 0
    return F.relu(x)[:, :k]


class Recurrent(nn.Module):
    """A `self` of another name, functions that are called through a name, and what torch itself scripts for an LSTM."""

    def __init__(s) -> None:
        super().__init__()
        s.norm = nn.BatchNorm2d(3)
        s.lstm = nn.LSTM(3, 4, 2, batch_first=True)

    def forward(s, x):
        x = F.adaptive_avg_pool2d(s.norm(x), [1, 2])
        y, (h, c) = s.lstm(x.flatten(2).transpose(1, 2))
        return y, h + c


class Quantized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant = torch.ao.quantization.QuantStub()
        self.fc = nn.Linear(4, 4)
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, x):
        return self.dequant(self.fc(self.quant(x)))


class TrainStep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x, y):
        return F.cross_entropy(self.net(x), y)


# -- .pt2 -----------------------------------------------------------------------------------------------------------


def small(path: Path) -> None:
    """Written again with deflate: torch stores members as they are, which git would keep for ever."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(zipfile.ZipInfo(info.filename), old.read(info.filename), zipfile.ZIP_DEFLATED)


def counted(graph: torch.fx.Graph, module: Any) -> dict[str, Any]:
    """Call nodes without getitem, which a .pt2 does not have; and the same of every subgraph."""
    calls = [n for n in graph.nodes if n.op == "call_function" and "getitem" not in str(n.target)]
    inner = [getattr(module, n.target, None) for n in graph.nodes if n.op == "get_attr"]
    bodies = [part for part in inner if hasattr(part, "graph")]
    return {
        "nodes": len(calls),
        "targets": [str(n.target) for n in calls],
        "inputs": [n.name for n in graph.nodes if n.op == "placeholder"],
        "outputs": len(torch.utils._pytree.tree_leaves(next(n for n in graph.nodes if n.op == "output").args)),
        "bodies": [counted(b.graph, b) for b in bodies],
    }


def exported(name: str, program: torch.export.ExportedProgram) -> None:
    torch.export.save(program, HERE / name)
    small(HERE / name)
    torch.export.load(HERE / name)
    FACTS[name] = counted(program.graph, program.graph_module) | {
        "signature": {**program.graph_signature.inputs_to_parameters, **program.graph_signature.inputs_to_buffers},
        "torch": torch.__version__,
    }


def pt2() -> None:
    torch.manual_seed(0)
    net = (torch.zeros(2, 3, dtype=torch.long), torch.ones(2))
    exported("net.pt2", torch.export.export(Net().eval(), net))
    exported("net_strict.pt2", torch.export.export(Net().eval(), net, strict=True))
    exported("branches.pt2", torch.export.export(Branches(), (torch.ones(2, 3), torch.zeros((), dtype=torch.long))))
    exported("counter.pt2", torch.export.export(Counter(), (torch.ones(2, 3), torch.zeros(2, 3))).run_decompositions())
    batch, rows = torch.export.Dim("batch", max=64), torch.export.Dim("rows", min=2)
    sized = torch.export.export(
        Sized(), (torch.ones(3, 5, 4), torch.ones(3)), dynamic_shapes=({0: batch, 1: rows}, {0: batch})
    )
    exported("sized.pt2", sized)
    from torch.export.experimental import _export_forward_backward

    step = torch.export.export(TrainStep(), (torch.ones(2, 4), torch.zeros(2, dtype=torch.long)))
    exported("joint.pt2", _export_forward_backward(step))
    legacy("legacy.pt2", torch.export.export(Net().eval(), net))


def legacy(name: str, program: torch.export.ExportedProgram) -> None:
    """As torch.export.save wrote it up to 2.6 (torch/export/__init__.py of that version)."""
    from torch._export.serde.serialize import serialize

    artifact = serialize(program, {})
    with zipfile.ZipFile(HERE / name, "w", zipfile.ZIP_DEFLATED) as out:
        text = json.loads(artifact.exported_program)
        text["schema_version"] = {"major": 8, "minor": 1}
        del text["torch_version"]
        for key in ("version", "serialized_exported_program.json", "serialized_state_dict.pt",
                    "serialized_constants.pt", "serialized_example_inputs.pt"):
            data: Any = {
                "version": "8.1",
                "serialized_exported_program.json": json.dumps(text),
                "serialized_state_dict.pt": artifact.state_dict,
                "serialized_constants.pt": artifact.constants,
                "serialized_example_inputs.pt": artifact.example_inputs,
            }[key]
            out.writestr(zipfile.ZipInfo(key), data, zipfile.ZIP_DEFLATED)
    FACTS[name] = counted(program.graph, program.graph_module)


# -- TorchScript ----------------------------------------------------------------------------------------------------


def kinds(block: Any) -> dict[str, int]:
    """Operators of a graph and of the blocks in it, by kind, without what only builds values."""
    found: dict[str, int] = {}
    for node in block.nodes():
        found[node.kind()] = found.get(node.kind(), 0) + 1
        for inner in node.blocks():
            for kind, n in kinds(inner).items():
                found[kind] = found.get(kind, 0) + n
    return found


def saved(name: str, script: Any) -> None:
    torch.jit.save(script, str(HERE / name))
    small(HERE / name)
    loaded = torch.jit.load(str(HERE / name))
    facts: dict[str, Any] = {"parameters": {}, "buffers": {}}
    if hasattr(loaded, "named_parameters"):
        facts["parameters"] = {n: list(p.shape) for n, p in loaded.named_parameters()}
        facts["buffers"] = {n: list(p.shape) for n, p in loaded.named_buffers()}
    graph = loaded.inlined_graph
    shown = ("aten::", "quantized::", "prim::If", "prim::Loop")
    facts["kinds"] = {kind: n for kind, n in kinds(graph).items() if kind.startswith(shown)}
    FACTS[name] = facts


def torchscript() -> None:
    torch.manual_seed(0)
    net = (torch.zeros(2, 3, dtype=torch.long), torch.ones(2))
    saved("traced.pt", torch.jit.trace(Net().eval(), net, strict=False))
    saved("scripted.pt", torch.jit.script(Scripted()))
    saved("frozen.pt", torch.jit.freeze(torch.jit.script(Scripted().eval())))
    saved("recurrent.pt", torch.jit.script(Recurrent().eval()))
    saved("function.pt", torch.jit.script(helper))
    torch.backends.quantized.engine = "qnnpack" if "qnnpack" in torch.backends.quantized.supported_engines else "fbgemm"
    model = Quantized().eval()
    model.qconfig = torch.ao.quantization.get_default_qconfig(torch.backends.quantized.engine)
    torch.ao.quantization.prepare(model, inplace=True)
    model(torch.ones(2, 4))
    torch.ao.quantization.convert(model, inplace=True)
    saved("quantized.pt", torch.jit.trace(model, torch.ones(2, 4)))
    torch.jit.script(Block(4))._save_for_lite_interpreter(str(HERE / "mobile.ptl"))
    small(HERE / "mobile.ptl")
    # No graphs in these: what opscope says of them is tested.
    torch.save(Block(4).state_dict(), HERE / "state_dict.pt")
    torch.save(Block(4), HERE / "module.pt")
    torch.save(Block(4).state_dict(), HERE / "state_dict_old.pt", _use_new_zipfile_serialization=False)


# -- Chakra ---------------------------------------------------------------------------------------------------------


def chakra() -> None:
    from torch.profiler import ExecutionTraceObserver, record_function

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = TrainStep()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.ones(2, 4), torch.zeros(2, dtype=torch.long)
    model(x, y).backward()
    optimizer.step()
    observer = ExecutionTraceObserver()
    observer.register_callback(str(HERE / "chakra.json"))
    observer.start()
    with record_function("training step"):
        optimizer.zero_grad()
        loss = model(x, y)
        first, second = torch.split(x, 2, dim=1)
        total = loss + torch.cat([first, second]).sum()
        total.backward()
        optimizer.step()
    observer.stop()
    observer.unregister_callback()
    nodes = json.loads((HERE / "chakra.json").read_text())["nodes"]
    FACTS["chakra.json"] = {"nodes": len(nodes)}


if __name__ == "__main__":
    HERE.mkdir(parents=True, exist_ok=True)
    for make in (pt2, torchscript, chakra):
        make()
    (HERE / "facts.json").write_text(json.dumps(FACTS, indent=1) + "\n")
    print(*(f"{p.stat().st_size:8,} {p.name}" for p in sorted(HERE.iterdir())), sep="\n")
