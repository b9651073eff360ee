"""opscope trace script.py."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

import opscope
from opscope.ir import verify
from opscope.tracers.script import ScriptFailed, run_script

TRAIN = """
    import sys
    import jittor as jt
    from jittor import nn

    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = jt.optim.SGD(net.parameters(), 0.1)
    for _ in range(int(sys.argv[1])):
        opt.step(net(jt.ones((5, 4))).sum())
    print("done", sys.argv, __name__, flush=True)
"""

# A script that dumps and clears Jittor's trace itself, as the generator of the sample files does.
GENERATOR = """
    import pickle
    import sys
    import unittest
    import jittor as jt
    from jittor import nn

    class TestTraceVar(unittest.TestCase):
        def test_inference(self):
            with jt.flag_scope(trace_py_var=2):
                model = nn.Linear(4, 2)
                y = model(jt.ones((3, 4)))
                y.sync()
                self.save("inference")

        def test_train(self):
            with jt.flag_scope(trace_py_var=2):
                model = nn.Linear(4, 2)
                opt = jt.optim.SGD(model.parameters(), 0.1)
                opt.step(model(jt.ones((3, 4))) ** 2)
                jt.sync_all()
                self.save("train")

        def save(self, name):
            data = jt.dump_trace_data()
            jt.clear_trace_data()
            with open(f"{name}.pkl", "wb") as file:
                pickle.dump(data, file)

    if __name__ == "__main__":
        unittest.main()
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "train.py") -> str:
        (tmp_path / name).write_text(dedent(text))
        return name

    return write


def command(*args: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, where Jittor is not imported yet."""
    code = "from opscope.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)


def plain(*args: str) -> None:
    subprocess.run([sys.executable, *args], capture_output=True, text=True, check=True)


def test_a_script_runs_as_python_would_run_it(script):
    ran = command("trace", script(TRAIN), "2", "--flag", "-o", "mine")
    assert ran.returncode == 0, ran.stderr
    assert "done ['train.py', '2', '--flag', '-o', 'mine'] __main__" in ran.stdout
    capture = opscope.open("train.opscope")
    verify(capture.graph)
    paths = {node.path for node in capture.graph.nodes}
    assert {"step 1/net/0", "step 2/net/2", "step 1/opt", "Linear_init", "SGD_init"} <= paths
    names = {value.name for value in capture.graph.values if value.role == "parameter"}
    assert names == {"0.weight", "0.bias", "2.weight", "2.bias"}
    files = {frame.file for node in capture.graph.nodes for frame in node.frames}
    ours = str(Path(opscope.__file__).parent)
    assert not [file for file in files if file.startswith((ours, "<frozen")) or "runpy" in file]
    assert {node.frames[0].function for node in capture.graph.nodes if node.frames} == {"<module>"}


def test_a_script_that_dumps_for_itself(script):
    """All of it is in the capture, a stage for each dump, and its own files are what they would have been."""
    name = script(GENERATOR, "generator.py")
    plain(name)
    expected = {kind: pickle.loads(Path(f"{kind}.pkl").read_bytes()) for kind in ("inference", "train")}
    ran = command("trace", "-o", "all.opscope", name)
    assert ran.returncode == 0, ran.stderr
    for kind, before in expected.items():
        after = pickle.loads(Path(f"{kind}.pkl").read_bytes())
        assert shape(after) == shape(before)
    capture = opscope.open("all.opscope")
    assert [stage.name for stage in capture.stages] == ["save", "save 2"]
    for stage, kind in zip(capture.stages, expected, strict=True):
        verify(stage.graph)
        ops = [node for node in expected[kind]["node_data"].values() if node["attrs"]["is_var"] == "0"]
        assert stage.graph.n_nodes == len(ops)
        assert len(stage.graph.groups["kernel"]) == len(expected[kind]["execute_op_info"])
        assert {"model", "Linear_init"} <= {node.path for node in stage.graph.nodes}


def shape(data):
    """A dump without what differs between two runs: its numbers."""
    stacks = Counter(
        (node["attrs"]["name"], tuple((entry["name"], entry["type"], entry["lineno"]) for entry in node["stacks"]))
        for node in data["node_data"].values()
        if "runpy" not in str(node["stacks"]) and "unittest" not in str(node["stacks"])
    )
    return stacks, Counter(entry["jit_key"] for entry in data["execute_op_info"].values())


def test_an_exit_code_is_told_and_the_capture_kept(script):
    capture = run_script(script("import jittor as jt, sys\njt.ones((2, 2)).sync()\nsys.exit(3)"))
    assert [text for text in capture.all_warnings() if "train.py ended with exit code 3" in text]
    assert [node.op for node in capture.graph.nodes] == ["array", "unary.cast", "broadcast_to"]


def test_an_exception_is_shown_and_what_was_recorded_kept(script):
    name = script("import jittor as jt\ny = jt.ones((2, 2)).sync()\ndef inner():\n    return {}['missing']\ninner()\n")
    with pytest.raises(ScriptFailed, match=r"^train.py failed at /.*/train.py:4: KeyError: 'missing'$") as caught:
        run_script(name)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.report.startswith(
        f'Traceback (most recent call last):\n  File "{Path(name).absolute()}", line 5'
    )
    assert "opscope" not in caught.value.report
    assert caught.value.capture.graph.n_nodes == 3
    ran = command("trace", name)
    assert ran.returncode == 2
    assert "return {}['missing']" in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("opscope: train.py failed at ")
    assert opscope.open("train.opscope").graph.n_nodes == 3


def test_an_exception_before_anything_was_recorded(script):
    with pytest.raises(ScriptFailed, match="ModuleNotFoundError: No module named 'nothing_like_it'") as caught:
        run_script(script("import nothing_like_it"))
    assert caught.value.capture is None


def test_a_script_without_a_framework(script):
    ran = command("trace", script("print('hello')"))
    assert (ran.returncode, ran.stdout) == (2, "hello\n")
    assert (
        ran.stderr
        == "opscope: train.py imported no framework that opscope can record (hidet, jittor, megengine, paddle, torch)\n"
    )
    assert not Path("train.opscope").exists()


def test_a_script_that_computes_nothing(script):
    with pytest.raises(opscope.OpscopeError, match=r"train.py: Jittor ran no operator"):
        run_script(script("import jittor as jt\na = jt.Var"))


def test_a_script_that_switches_the_tracer_off(script):
    text = "import jittor as jt\njt.ones(3).sync()\njt.flags.trace_py_var = 0\njt.zeros(3).exp().sync()\n"
    capture = run_script(script(text))
    assert "unary.exp" not in {node.op for node in capture.graph.nodes}
    assert [text for text in capture.all_warnings() if "switched off in the code (trace_py_var=0)" in text]


def test_a_callable_of_a_module(script):
    script(
        "import jittor as jt\nimport sys\ndef go():\n    jt.exp(jt.ones(3)).sync()\n    print(sys.argv)\n", "mine.py"
    )
    ran = command("trace", "mine:go", "--some", "argument")
    assert ran.returncode == 0, ran.stderr
    assert "['mine:go', '--some', 'argument']" in ran.stdout
    assert "unary.exp" in {node.op for node in opscope.open("mine.opscope").graph.nodes}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere.py", "nowhere.py: no such script"),
        ("no_such_package.module:main", "there is no module no_such_package"),
        ("json:no_such_function", "json has no 'no_such_function'"),
    ],
)
def test_targets_that_are_not_there(target, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(opscope.OpscopeError, match=message):
        run_script(target)


def test_a_framework_that_is_not_known(script):
    with pytest.raises(
        opscope.OpscopeError,
        match=r"framework 'abacus' cannot be traced \(supported: .*jittor.*\)",
    ):
        run_script(script("import jittor"), framework="abacus")


def test_times_are_not_printed(tmp_path: Path) -> None:
    """Jittor prints its whole profile where one is taken; that is not what the user asked for."""
    script = tmp_path / "times.py"
    script.write_text(
        "import jittor as jt, opscope\n"
        "with opscope.record(times=True) as capture:\n"
        "    print((jt.ones((3, 4)) * 2).sum().item())\n"
        "print(len(capture.tables['times'].index), jt.flags.log_silent)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "24.0"
    assert done.stdout.splitlines()[1].endswith(" 0")
    assert "Profile result" not in done.stdout + done.stderr
    assert "TotalTime" not in done.stdout + done.stderr
