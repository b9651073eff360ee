"""The drop-in for paddleviz, and our example."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import paddle
import pytest
from nets import Example

import opscope
from opscope.compat import paddleviz
from opscope.compat.paddleviz import make_graph

EXAMPLES = Path(__file__).parents[2] / "examples"


paddleviz.off()  # importing it begins to watch; here each test does


@pytest.fixture
def watching() -> Iterator[None]:
    paddleviz.on()
    yield
    paddleviz.off()


def lines(source: str) -> list[str]:
    return [line for line in re.sub(r'"[^"]*"', lambda m: m[0].replace("\n", "|"), source).splitlines() if "->" in line]


def test_every_edge_is_there_and_labelled(watching: None):
    model = Example()
    y = model(paddle.randn([1, 3, 32, 32]))
    y.sum().backward()
    source = make_graph(y, dpi="600").source
    edges = lines(source)
    assert len(edges) == 28 + 1, "and one from the output"
    assert sum("dtype: float32|place: Place(cpu)|shape: [" in line for line in edges) == 28
    assert any("shape: [1, 84]" in line for line in edges)
    for name, _ in model.named_parameters():
        assert f'"{name}\n' in source
    for word in ("dpi=600", "rankdir=BT", "darkolivegreen1", "#CCCCFF", "#FFCC99"):
        assert word in source
    assert not source.startswith("strict")


def test_without_a_backward_pass_edges_say_so(watching: None):
    model = Example()
    y = model(paddle.randn([1, 3, 32, 32]))
    edges = lines(make_graph((y,)).source)
    assert len(edges) == 29
    unknown = [line for line in edges if "unknown: no backward pass was seen" in line]
    assert len(unknown) == 18, "the ten edges into parameters have their shapes"


def test_off_forgets():
    y = Example()(paddle.randn([1, 3, 32, 32]))
    y.sum().backward()
    assert "unknown" in make_graph(y).source


def test_gradients_stay(watching: None):
    model, x = Example(), paddle.randn([1, 3, 32, 32])
    model(x).sum().backward()
    watched = model.fc[0].weight.grad.numpy().copy()
    model.clear_gradients()
    paddleviz.off()
    model(x).sum().backward()
    assert (watched == model.fc[0].weight.grad.numpy()).all()


def test_a_hook_of_the_users_still_counts(watching: None):
    layer = paddle.nn.Linear(3, 2)
    loss = (layer(paddle.ones([1, 3])) * 3).sum()
    loss.grad_fn.next_functions[0]._register_post_hook(lambda outputs, inputs: [outputs[0] * 2])
    loss.backward()
    assert layer.weight.grad.numpy().tolist() == [[6.0, 6.0]] * 3
    with opscope.record(layer) as capture:
        (layer(paddle.ones([1, 3])) * 3).sum().backward()
    assert not capture.all_warnings(), "who watches second sees it too"


def test_without_dot_opscope_draws_what_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watching: None):
    monkeypatch.setenv("PATH", str(tmp_path))
    y = Example()(paddle.randn([1, 3, 32, 32]))
    y.sum().backward()
    graph = make_graph(y)
    drawn = graph.render(str(tmp_path / "out.gv"), format="svg", view=False)
    assert drawn == str(tmp_path / "out.gv.svg")
    words = re.findall(r"<text class=.l.[^>]*>([^<]*)<", Path(drawn).read_text())
    assert words.count("Place(cpu)") == 28, "one on each edge"
    assert {"1×84 float32", "16×6×3×3 float32"} <= set(words)
    assert (tmp_path / "out.gv").read_text() == graph.source
    assert b"Place(cpu)" in graph.pipe("svg")
    png = graph.render(str(tmp_path / "out.gv"), format="png", cleanup=True)
    assert Path(png).read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "out.gv").exists()
    with pytest.raises(opscope.OpscopeError, match=r"'jpg': install it.*or ask for svg, png or pdf"):
        graph.render(str(tmp_path / "out.gv"), format="jpg")


def test_trace_knows_what_was_watched(watching: None, tmp_path: Path):
    y = Example()(paddle.randn([1, 3, 32, 32]))
    y.sum().backward()
    found = opscope.trace(y, how="autograd")
    assert not found.all_warnings()
    assert all(found.tables["gradients"].columns["place"].known)
    found.save(tmp_path / "graph.dot")
    edges = [line for line in (tmp_path / "graph.dot").read_text().splitlines() if "->" in line]
    assert len(edges) == 28
    assert all("float32\\nPlace(cpu)" in line for line in edges)
    found.save(tmp_path / "plain.svg", edges="none")
    assert "Place(cpu)" not in (tmp_path / "plain.svg").read_text()
    with pytest.raises(opscope.OpscopeError, match=r"edges: 'colour' is not known"):
        found.save(tmp_path / "plain.svg", edges="shape,colour")


def test_words_do_not_touch_their_edge(watching: None):
    y = Example()(paddle.randn([1, 3, 32, 32]))
    y.sum().backward()
    labels = re.findall(r'label="([^"]*)"', make_graph(y).source)
    for label in (label for label in labels if "place:" in label):
        *lines, last = label.split("\n")
        assert not last.strip(), "a line without words"
        assert len(last) > 1.5 * max(map(len, lines)), "and wider than the others"


def test_run_does_what_run_py_did(tmp_path: Path):
    script = tmp_path / "example.py"
    script.write_text(
        "import os, sys\nos.environ['GLOG_v'] = '6'\nimport paddle\nfrom paddleviz.viz import make_graph\n"
        "layer = paddle.nn.Linear(3, 2)\ny = layer(paddle.ones([1, 3]))\ny.sum().backward()\n"
        "print(sys.argv[1:], make_graph(y).source)\n"
    )
    command = [sys.executable, "-m", "opscope.compat.paddleviz.run", str(script), "--word"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.startswith("['--word'] digraph")
    assert "shape: [3, 2]" in done.stdout
    assert not (tmp_path / "output.txt").exists()
    missing = subprocess.run([*command[:3], "nothing.py"], capture_output=True, text=True)
    assert missing.returncode == 2
    assert missing.stderr.endswith("error: nothing.py: no such script\n")


def test_our_example_runs(tmp_path: Path):
    command = [sys.executable, str(EXAMPLES / "paddle_backward.py")]
    subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (tmp_path / "viz-result.gv").exists()
    assert opscope.open(tmp_path / "paddle_step.opscope").graph.n_nodes == 45
    trace = [sys.executable, "-m", "opscope", "trace", str(EXAMPLES / "paddle_backward.py"), "-o", "all.opscope"]
    subprocess.run(trace, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert opscope.open(tmp_path / "all.opscope").graph.n_nodes > 50
