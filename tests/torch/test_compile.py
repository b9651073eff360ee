"""Live capture of torch.compile: what it shows is what the compiler had in memory, and nothing is changed by it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo
import torch._inductor.config
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import opscope
from opscope.analysis import summary
from opscope.ir import verify_capture
from opscope.ir.attributes import MODULE_GUESSED, RECOMPUTE_POLICY, RECOMPUTED_BECAUSE
from opscope.ir.facts import NOT_FUSED


class Block(nn.Module):
    def __init__(self, width: int = 8, breaks: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.breaks = breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.gelu(self.up(self.norm(x)))
        if self.breaks:
            torch._dynamo.graph_break()
        return x + F.dropout(self.down(h), 0.1, self.training)


class Net(nn.Module):
    def __init__(self, blocks: int = 2, checkpointed: bool = False) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.head = nn.Linear(8, 3)
        self.checkpointed = checkpointed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(x)


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@contextlib.contextmanager
def printed_graphs() -> Iterator[dict[str, tuple[int, int]]]:
    """Every graph that torch prints meanwhile, with the numbers of its operators and of what each of them reads."""
    found: dict[str, tuple[int, int]] = {}
    original = torch.fx.GraphModule.print_readable

    def print_readable(module: Any, *args: Any, **kwargs: Any) -> str:
        text = original(module, *args, **kwargs)
        calls = [node for node in module.graph.nodes if node.op.startswith("call")]
        found[text.strip()] = len(calls), sum(len(node.all_input_nodes) for node in calls)
        return text

    torch.fx.GraphModule.print_readable = print_readable
    try:
        yield found
    finally:
        torch.fx.GraphModule.print_readable = original


def step(model: nn.Module, call: Any, optimizer: Any, x: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(1)
    loss = F.cross_entropy(call(x), torch.tensor([0, 1, 2, 0]))
    loss.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    optimizer.step()
    optimizer.zero_grad()
    return [loss.detach(), *gradients, *(parameter.detach().clone() for parameter in model.parameters())]


def names(capture: Any) -> list[str]:
    return [stage.name for stage in capture.stages]


def test_a_training_step() -> None:
    """The graphs are those in memory; every kernel has its operators; the numbers are the same, and so is what comes
    after."""
    results: list[list[torch.Tensor]] = []
    with printed_graphs() as graphs:
        for watched in (True, False):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, x = Net(), torch.randn(4, 8)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            compiled = torch.compile(model)
            if watched:
                with opscope.record(model, optimizer=optimizer) as capture:
                    first = step(model, compiled, optimizer, x)
                counted = dict(torch._dynamo.utils.counters["stats"])
                second = step(model, compiled, optimizer, x)
                assert dict(torch._dynamo.utils.counters["stats"]) == counted  # nothing is compiled again
            else:
                first, second = step(model, compiled, optimizer, x), step(model, compiled, optimizer, x)
            results.append(first + second)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))

    verify_capture(capture)
    assert not [text for stage in capture.stages for text in stage.warnings], "the printed graphs are those in memory"
    wanted = ["recorded", "dynamo", "pre-grad before", "pre-grad", "joint", "forward", "backward"]
    assert [name for name in names(capture) if ":" not in name][:7] == wanted
    compared = 0
    for stage in capture.stages[1:]:
        real = graphs.get(str(stage.listings["native"]).strip()) if "native" in stage.listings else None
        if real is not None:
            picks = real[0] - stage.graph.n_nodes  # `getitem` of an operator with several results is no operator here
            assert 0 <= picks <= 12, stage.name
            compared += 1
    assert compared >= 8

    recorded = capture.stages[0].graph
    ran = [node.op for node in recorded.nodes if node.op.startswith("compiled.")]
    assert ran == ["compiled.forward", "compiled.backward"]
    for stage in summary.info(capture)["stages"][1:]:
        coverage = stage["coverage"]
        assert coverage["operators"] == coverage["operators_with_module"] == coverage["operators_with_line"]
        assert coverage["kernels"] == coverage["kernels_with_module"] == coverage["kernels_with_line"]
    for word in ("forward", "backward"):
        groups = capture.stage(f"post-grad {word}").graph.groups["kernel"]
        assert len(groups) == capture.stage(f"kernels {word}").graph.n_nodes
        assert all(len(groups.members(i)) for i in range(len(groups)))
        phases = {node.phase for node in capture.stage(f"post-grad {word}").graph.nodes}
        assert phases <= ({"forward"} if word == "forward" else {"backward", "recompute"})
    assert any(table.fact == NOT_FUSED.name for table in capture.tables.values())
    again = [node for node in capture.stage("backward").graph.nodes if node.phase == "recompute"]
    assert again
    assert all(RECOMPUTED_BECAUSE in node.attrs for node in again)


def test_a_model_is_compiled_anew_and_nothing_else_is_touched() -> None:
    """Also one that its user has compiled and called before: his code is not taken for ours, nor ours for his."""

    def model(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b).relu().sum()

    a, b = torch.randn(3, 4), torch.randn(4, 5)
    compiled = torch.compile(model)
    compiled(a, b)
    before = (
        torch._inductor.config.save_config(),
        torch._dynamo.config.save_config(),
        {key: dict(value) for key, value in torch._dynamo.utils.counters.items()},
        torch.get_rng_state().tolist(),
    )
    for target in (model, compiled, model):
        capture = opscope.trace(target, a, b, how="compile")
        assert names(capture)[-1] == "kernels inference"
        assert summary.info(capture)["recompiles"] == 0
    assert before == (
        torch._inductor.config.save_config(),
        torch._dynamo.config.save_config(),
        {key: dict(value) for key, value in torch._dynamo.utils.counters.items()},
        torch.get_rng_state().tolist(),
    )
    compiled(a, b)
    assert dict(torch._dynamo.utils.counters["stats"]) == before[2]["stats"]


def test_what_is_in_a_cache_is_shown_whole(tmp_path: Path) -> None:
    """A second process finds all of it on disk: the passes and graphs are seen all the same, the cache stays."""
    model, x = Net(1), torch.randn(4, 8)
    seen: list[list[str]] = []
    files: list[set[Path]] = []
    for _ in range(2):
        torch._dynamo.reset()
        seen.append(names(opscope.trace(model, x, how="compile")))
        cache = tmp_path / "cache"
        files.append({path for part in ("fxgraph", "aotautograd") for path in (cache / part).rglob("*")})
    assert seen[0] == seen[1]
    assert "kernels backward" in seen[0]
    assert files[0] == files[1] != set()


def test_breaks_and_what_was_not_compiled() -> None:
    model, x = Block(breaks=True), torch.randn(4, 8)
    with opscope.record(model) as capture:
        torch.compile(model)(x)
    assert summary.info(capture)["breaks"] == 1
    assert any("graph break" in text and "test_compile.py" in text for text in capture.warnings)

    plain = Net(1)
    with opscope.record(plain) as capture, torch.compiler.set_stance("force_eager"):
        torch.compile(plain)(x)
    assert any("ran no compiled code of Net" in text for text in capture.warnings)
    assert names(capture) == ["recorded"]

    with opscope.record(plain) as capture:
        torch.compile(plain, backend="eager")(x)
    assert any("backend 'eager'" in text for text in capture.warnings)


def test_recompilations_say_what_failed() -> None:
    model = nn.Linear(8, 3)
    compiled = torch.compile(model)
    with opscope.record(model) as capture:
        compiled(torch.randn(4, 8))
        compiled(torch.randn(5, 8))
    assert summary.info(capture)["recompiles"] == 1
    assert any("expected 4, actual 5" in text for text in capture.warnings)


def test_code_that_is_compiled_for_one_module_after_another_can_be_saved(tmp_path: Path) -> None:
    """Some of its compilations are recompilations, others are only the first of ours."""

    class Wave(nn.Module):
        def __init__(self, kind: str) -> None:
            super().__init__()
            self.kind = kind

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.sin()
            if self.kind == "breaks":
                torch._dynamo.graph_break()
            return x.cos()

    class Waves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(Wave(kind) for kind in ("plain", "breaks", "plain"))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for part in self.parts:
                x = part(x)
            return x

    counted: list[int] = []
    for _ in range(2):
        capture = opscope.trace(Waves(), torch.randn(3), how="compile")
        capture.save(tmp_path / "waves.opscope")
        counted.append(summary.info(opscope.open(tmp_path / "waves.opscope"))["recompiles"])
    assert counted == [1, 1]


def test_checkpointed_blocks_say_why_they_run_again() -> None:
    model, x = Net(checkpointed=True), torch.randn(4, 8)
    capture = opscope.trace(model, x, how="compile")
    norms = {node.path for node in capture.stage("forward").graph.nodes if node.op.startswith("aten.var_mean")}
    assert {path.partition("/")[2] for path in norms} == {"blocks/0/norm", "blocks/1/norm"}
    again = [node for node in capture.stage("backward").graph.nodes if node.phase == "recompute"]
    policies = {str(node.attrs.get(RECOMPUTE_POLICY, "")).partition(" (")[0] for node in again}
    assert "prefer recompute" in policies
    assert (capture.stage("forward").graph.node_stack > 0).all()


SCRIPT = """
import torch
from torch import nn
from torch.nn import functional as F

class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))
    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-6)
        return self.weight * x

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc = Norm(), nn.Linear(8, 8)
    def forward(self, x):
        h = F.silu(self.fc(self.norm(x)))
        return x + h

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

torch.manual_seed(0)
model = Net()
compiled = torch.compile(model)
loss = compiled(torch.randn(4, 8)).square().mean()
loss.backward()
print("loss", float(loss))
"""


def test_a_script_and_its_log_say_the_same(tmp_path: Path) -> None:
    """A script that compiles its model itself, while TORCH_TRACE writes the log: both show one program."""
    script, output, logs = tmp_path / "train.py", tmp_path / "step.opscope", tmp_path / "logs"
    script.write_text(SCRIPT)
    logs.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "opscope", "trace", "--how", "compile", "-o", str(output), str(script)],
        env={**os.environ, "TORCH_TRACE": str(logs)}, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "loss" in ran.stdout
    live, read = opscope.open(output), opscope.open(logs)
    by_name = {stage.name: stage.graph for stage in live.stages}
    assert {"dynamo", "joint", "forward", "backward", "kernels forward", "kernels backward"} <= by_name.keys()
    for stage in read.stages:
        graph = by_name[stage.name]
        assert [node.name for node in graph.nodes] == [node.name for node in stage.graph.nodes]
        assert graph.n_edges == stage.graph.n_edges
        assert [node.phase for node in graph.nodes] == [node.phase for node in stage.graph.nodes], stage.name
    # The log does not say modules: what is found without is what the process knows.
    dynamo = {node.name: node.path.partition("/")[2] for node in read.stage("dynamo").graph.nodes}
    assert dynamo == {node.name: node.path.partition("/")[2] for node in by_name["dynamo"].nodes}


CELLS = """
import torch
from torch import nn
from torch.nn import functional as F

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.ih, self.hh, self.act = nn.Linear(8, 16), nn.Linear(8, 16), nn.GELU()
    def forward(self, x, h):
        i, g = (self.ih(x) + self.hh(h)).chunk(2, -1); h = i.sigmoid() * h + self.act(g); return h.tanh() * i.sigmoid()

class Down(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = nn.Sequential(nn.MaxPool1d(1), nn.Linear(8, 8), nn.ReLU())
    def forward(self, x):
        return self.both(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([Cell(), Cell()])
        self.downs = nn.ModuleList([Down(), Down()])
    def forward(self, x):
        hidden = [torch.zeros(4, 8), torch.zeros(4, 8)]
        for step in range(2):
            h = x[:, step]
            for k, cell in enumerate(self.cells):
                h = hidden[k] = cell(h, hidden[k])
        for down in self.downs:
            h = h + down(h)
        return h

torch.manual_seed(0)
compiled = torch.compile(Net())
compiled(torch.randn(4, 2, 8)).square().mean().backward()
"""


def test_a_log_says_which_modules_are_guessed(tmp_path: Path) -> None:
    """Several copies of a module run one line, and modules without parameters: what is not marked is as in memory."""
    script, output, logs = tmp_path / "train.py", tmp_path / "step.opscope", tmp_path / "logs"
    script.write_text(CELLS)
    logs.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "opscope", "trace", "-o", str(output), str(script)],
        env={**os.environ, "TORCH_TRACE": str(logs)}, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    by_name = {stage.name: stage.graph for stage in opscope.open(output).stages}
    count = guessed = 0
    for stage in opscope.open(logs).stages:
        if stage.name.startswith("kernels"):
            continue
        for live, node in zip(by_name[stage.name].nodes, stage.graph.nodes, strict=True):
            assert live.name == node.name
            count, guessed = count + 1, guessed + (MODULE_GUESSED in node.attrs)
            if MODULE_GUESSED not in node.attrs and not node.op.startswith("aten.add"):  # of gradients: of two modules
                assert node.path.partition("/")[2] == live.path.partition("/")[2], f"{stage.name}: {node.name}"
    assert count > 300
    assert guessed < count / 10


def test_compiled_autograd_and_a_compiled_optimizer() -> None:
    """The backward pass of the whole step as one graph: its operators are where those of the model's backward graph
    are. What updates the parameters is the optimizer's."""
    model, x = Block(), torch.randn(4, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled, step = torch.compile(model), torch.compile(optimizer.step)
    with opscope.record(model, optimizer=optimizer) as capture:
        loss = compiled(x).square().mean()
        with torch._dynamo.compiled_autograd._enable(torch.compile()):
            loss.backward()
        step()
    verify_capture(capture)
    phases = {node.op: node.phase for node in capture.stages[0].graph.nodes if node.op.startswith("compiled.")}
    assert phases["compiled.forward"] == "forward"
    regions = [node.phase for node in capture.stages[0].graph.nodes if node.op == "compiled.inference"]
    assert regions == ["backward", "optimizer"]
    (last,) = [stage for stage in capture.stages if stage.name.startswith("post-grad inference [!")]
    assert {node.phase for node in last.graph.nodes} == {"backward"}
    inside = {node.path.partition("/")[2] for node in last.graph.nodes}
    assert {"norm", "up", "down"} <= inside
    coverage = next(row for row in summary.info(capture)["stages"] if row["name"] == last.name)["coverage"]
    assert coverage["operators"] == coverage["operators_with_line"]


def test_the_example(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "torch_compile.py"
    ran = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "cpp_fused_gelu_mul_sigmoid" in ran.stdout
    from opscope.analysis.diff.kernels import compare_kernels

    found = compare_kernels(*(opscope.open(tmp_path / f"{name}.opscope") for name in ("step", "careless")))
    assert found is not None
    (split,) = [change for change in found.changes if change.kind == "split"]
    assert (split.module, split.added) == ("net/1", ("aten.sort",))
    assert "torch.ops.aten.sort.stable" in split.reason
