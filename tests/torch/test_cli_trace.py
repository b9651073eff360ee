"""opscope trace on PyTorch, as a user runs it: the program in its own process."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import opscope
from opscope.ir import verify_capture

TRAIN = """
    import sys
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.ones(5, 4)
    for i in range(int(sys.argv[1])):
        opt.zero_grad()
        loss = net(x).sum()
        loss.backward()
        opt.step()
    print("done", sys.argv, __name__, i, flush=True)
"""

GAN = """
    import torch
    from torch import nn

    g, d = nn.Linear(2, 2), nn.Linear(2, 1)
    of_g, of_d = torch.optim.SGD(g.parameters(), 0.1), torch.optim.SGD(d.parameters(), 0.1)
    for i in range(3):
        d(g(torch.randn(4, 2)).detach()).sum().backward()
        of_d.step()
        d(g(torch.randn(4, 2))).sum().backward()
        of_g.step()
"""

NETS = """
    import sys
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width=4):
            super().__init__()
            self.a, self.b = nn.Linear(width, 4), nn.Linear(4, 2)

        def forward(self, x, scale=1.0):
            h = self.a(x).relu()
            if h.sum() > 3:
                h = h * 2
            return {"y": self.b(h) * scale, "n": h.argmax()}

    class Wide(Net):
        def __init__(self, width):
            super().__init__(width)

    def make():
        print("making", sys.argv)
        torch.manual_seed(0)
        return Net()

    model = make()

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(50, 4)

        def forward(self, ids, mask):
            return self.words(ids) * mask[..., None]

    def function(x):
        return x.relu() + 1

    def three():
        return 3

    def broken():
        return {}["missing"]

    def main():
        Net()(torch.ones(2, 4))["y"].sum().backward()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"train.py": TRAIN, "gan.py": GAN, "nets.py": NETS}.items():
        Path(name).write_text(dedent(text))


def run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opscope", "trace", *args]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}  # several threads make small models slow on a busy machine


def good(*args: str) -> subprocess.CompletedProcess[str]:
    ran = run(*args)
    assert ran.returncode == 0, ran.stderr
    return ran


def captured(name: str) -> opscope.Capture:
    capture = opscope.open(name)
    verify_capture(capture)
    return capture


def steps_of(capture: opscope.Capture) -> set[str]:
    return {node.path.partition("/")[0] for node in capture.graph.nodes if node.path.startswith("step")}


def test_a_script_runs_unchanged():
    ran = good("train.py", "3", "--flag")
    assert ran.stdout == "done ['train.py', '3', '--flag'] __main__ 2\n"
    assert ran.stderr == "train.opscope: 108 operators\n"  # no progress bar in a pipe
    capture = captured("train.opscope")
    assert steps_of(capture) == {"step 1", "step 2", "step 3"}
    assert {"step 1/net/0", "step 3/opt/0.weight"} <= {node.path for node in capture.graph.nodes}
    assert {frame.file for node in capture.graph.nodes for frame in node.frames[:1]} == {
        str(Path("train.py").absolute())
    }


def test_the_first_steps_only():
    ran = good("--steps", "2", "train.py", "3")
    assert ran.stdout.startswith("done")  # it runs to its end
    two = captured("train.opscope")
    assert steps_of(two) == {"step 1", "step 2"}
    assert max(i for i, node in enumerate(two.graph.nodes) if node.phase == "optimizer") == two.graph.n_nodes - 1
    good("train.py", "--steps=1", "-o", "one.opscope", "3")
    one = captured("one.opscope")
    assert steps_of(one) == set()
    assert sum(node.phase == "optimizer" for node in one.graph.nodes) == 4


def test_a_step_of_two_optimizers():
    good("gan.py", "--steps", "1")
    paths = {node.path for node in captured("gan.opscope").graph.nodes if node.phase == "optimizer"}
    assert paths == {"of_d/d.weight", "of_d/d.bias", "of_g/g.weight", "of_g/g.bias"}
    good("gan.py", "--steps", "2")
    assert steps_of(captured("gan.opscope")) == {"step 1", "step 2"}


def test_some_phases_only():
    good("train.py", "-o", "all.opscope", "1")
    whole = captured("all.opscope").graph
    counts = {phase: sum(node.phase == phase for node in whole.nodes) for phase in ("forward", "backward", "optimizer")}
    ran = good("train.py", "--phase", "forward", "1")
    assert f"warning: only forward: {whole.n_nodes - counts['forward']} of {whole.n_nodes} operators" in ran.stderr
    part = captured("train.opscope").graph
    assert [node.op for node in part.nodes] == [node.op for node in whole.nodes if node.phase == "forward"]
    assert part.links_of("grad").source.size == 0
    good("train.py", "--phase", "init,backward,optimizer", "--phase=forward", "-o", "same.opscope", "1")
    assert captured("same.opscope").graph.n_nodes == whole.n_nodes
    good("train.py", "--phase", "optimizer", "-o", "step.opscope", "1")
    step = captured("step.opscope").graph
    assert {value.role for node in step.nodes for value in node.inputs if value.producer is None} >= {"gradient"}


@pytest.mark.parametrize("ending", ["html", "dot", "mmd", "json"])
def test_to_any_export(ending: str):
    good("nets:make", "--input", "3x4", "-o", f"out.{ending}")
    assert Path(f"out.{ending}").stat().st_size > 200


@pytest.mark.parametrize("target", ["nets:make", "nets:Net", "nets:model"])
def test_a_model_by_its_name(target: str):
    good(target, "--input", "3x4")
    graph = captured("nets.opscope").graph
    assert {"a", "b"} <= {node.path for node in graph.nodes}
    assert [(value.name, value.role, value.type.shape) for value in graph.values if value.role == "input"] == [
        ("x", "input", (3, 4))
    ]


def test_inputs_by_name_with_types():
    good("nets:Words", "--input", "2x6:int64:50", "--input", "mask=2x6:bool")
    values = {value.name: value.type for value in captured("nets.opscope").graph.values if value.role == "input"}
    assert {name: (type_.dtype, type_.shape) for name, type_ in values.items()} == {
        "ids": ("int64", (2, 6)),
        "mask": ("bool", (2, 6)),
    }


def test_the_backward_pass_of_a_model():
    good("nets:make", "--input", "3x4", "--train")
    graph = captured("nets.opscope").graph
    assert {node.phase for node in graph.nodes} == {"forward", "backward"}
    assert len(graph.links_of("grad")) > 0
    assert {"a.weight.grad", "b.bias.grad"} <= {value.name for value in graph.values}
    assert "aten.add.Tensor" not in {node.op for node in graph.nodes}  # one result is not added to anything


def test_a_function_of_the_inputs():
    good("nets:function", "--input", "3")
    assert [node.op for node in captured("nets.opscope").graph.nodes] == ["aten.relu", "aten.add.Tensor"]


def test_a_callable_is_called_as_it_is():
    good("nets:main", "--phase", "backward")
    assert {node.phase for node in captured("nets.opscope").graph.nodes} == {"backward"}


def test_another_way():
    good("nets:make", "--input", "3x4", "--how", "dynamo", "-o", "d.opscope")
    assert captured("d.opscope").origin.how == "dynamo"


def test_all_ways():
    ran = good("nets:make", "--input", "3x4", "--how", "all")
    # What the model's module prints when it is made comes first; the tries are silent.
    lines = ran.stdout.splitlines()
    assert lines[:2] == ["making ['nets:make']"] * 2
    assert [line.split()[0] for line in lines[2:]] == [
        "way", "record", "export", "export-strict", "fx", "jit-trace", "jit-script", "dynamo", "joint", "autograd",
    ]  # fmt: skip
    assert "nets.py:13" in ran.stdout
    assert ran.stderr == ""
    assert not list(Path().glob("*.opscope"))
    good("nets:make", "--input", "3x4", "--how", "all", "-o", "kept.opscope")
    assert captured("kept.opscope").origin.how == "recorder"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("nets:make --input 3x4 --how magic", "--how magic: unknown capture method (there are: auto, record, "),
        ("nets:make --input 3xx4", "not [NAME=]SHAPE[:DTYPE[:BELOW]], such as 1x3x224x224, "),
        ("nets:make --input 3x4:float99", "'float99' is not a dtype (there are: float16, "),
        ("nets:make --input 3x4:float32:9", "only whole numbers have an upper bound"),
        ("nets:make --input 3x4:int8:999", "the upper bound of int8 is between 1 and 127"),
        ("nets:make --input 99999x99999", "more than 2,147,483,648 numbers"),
        ("no_such:make --input 3x4", "no_such:make: there is no module no_such"),
        ("nets:missing --input 3x4", "nets:missing: nets has no 'missing'"),
        ("nets:Wide --input 3x4", "nets:Wide needs arguments (width): name a function"),
        ("nets:three --input 3x4", "nets:three() is an object of type builtins.int, which cannot be called"),
        ("nets:Net", "nets:Net is a model: say what it is called with, such as --input"),
        ("nets:model", "nets:model is a model: say what it is called with, such as --input"),
        ("nets:make --input 3x5 --how all", "the model fails on these arguments at nets.py:12: RuntimeError: mat1"),
        ("nets:make --input 3x4 --train --how fx", "--train works only with the recorder"),
        ("nets:make --input 3x4 --steps 2", "--steps works only for scripts"),
        ("train.py --how export", "train.py: --how export needs a model, not a script"),
        ("train.py --input 3x4", "train.py: --input needs a model, not a script"),
        ("train.py --phase sideways 1", "--phase sideways: unknown phase (there are: init, forward"),
        ("train.py --phase recompute 1", "no operator is in the phase recompute (there are: init, forward, "),
        ("train.py --steps 0 1", "Invalid value for '--steps'"),
        ("nowhere.py", "nowhere.py: no such script"),
    ],
)
def test_bad_input(args: str, message: str):
    ran = run(*args.split())
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("opscope: ")
    assert message in ran.stderr
    assert not list(Path().glob("*.opscope"))


@pytest.mark.parametrize(("target", "line"), [("nets:broken", 43), ("nets:make", 12)])
def test_code_that_fails_is_shown_as_python_shows_it(target: str, line: int):
    ran = run(target, "--input", "3x5")
    assert ran.returncode == 2
    assert ran.stderr.startswith("Traceback (most recent call last):\n")
    own = str(Path(opscope.__file__).parent) + os.sep  # not the clone's folder, which may have the same name
    assert own not in ran.stderr
    assert f"opscope: {target} failed at {Path('nets.py').absolute()}:{line}: " in ran.stderr.splitlines()[-1]


def test_a_script_that_fails_keeps_what_it_did():
    Path("bad.py").write_text("import torch\ny = torch.ones(2).exp()\nraise ValueError('no')\n")
    ran = run("bad.py")
    assert ran.returncode == 2
    assert "raise ValueError('no')" in ran.stderr
    assert [node.op for node in captured("bad.opscope").graph.nodes] == ["aten.ones", "aten.exp"]


@pytest.mark.parametrize("stdout", ["pipe", "terminal"])
def test_progress_on_a_terminal(stdout: str):
    """The line is on stderr only, and what the script prints is whole."""
    Path("slow.py").write_text(
        "import time, torch\nfor i in range(4):\n    torch.ones(2)\n    print('line', i)\n    time.sleep(0.3)\n"
    )
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "opscope", "trace", "slow.py"],
        stdout=subprocess.PIPE if stdout == "pipe" else end,
        stderr=end,
        env={**environment(), "TERM": "xterm", "COLUMNS": "100"},
        text=True,
    )
    os.close(end)
    seen = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    assert process.wait() == 0
    text = seen.decode()
    assert "recording" in text
    assert "operators" in text
    printed = process.stdout.read() if stdout == "pipe" else text
    for i in range(4):
        assert f"line {i}\n" in printed.replace("\r\n", "\n")
    if stdout == "pipe":
        assert printed == "".join(f"line {i}\n" for i in range(4))
    assert "slow.opscope: 4 operators" in text
