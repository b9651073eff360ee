"""Training steps are scopes, as with the other frameworks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import paddle
from paddle import nn

import opscope


def gan(rounds: int) -> opscope.Capture:
    g, d = nn.Linear(4, 8), nn.Linear(8, 1)
    og = paddle.optimizer.Adam(parameters=g.parameters())
    od = paddle.optimizer.SGD(parameters=d.parameters())
    real = paddle.randn([3, 8])
    with opscope.record([g, d], optimizer=[og, od]) as capture:
        for _ in range(rounds):
            fake = g(paddle.randn([3, 4]))
            (d(real).mean() - d(fake.detach()).mean()).backward()
            od.step()
            od.clear_grad()
            d(fake).mean().backward()
            og.step()
            og.clear_grad()
    return capture


def test_a_step_is_over_when_an_optimizer_is_about_to_step_again():
    capture = gan(2)
    paths = {"/".join(node.path.split("/")[:2]) for node in capture.graph.nodes if node.path.count("/")}
    assert paths == {f"step {n}/{layer}" for n in (1, 2) for layer in ("g", "d", "d#2", "d#3")}
    assert all(node.path.startswith("step ") for node in capture.graph.nodes)
    grad = capture.graph.links["grad"]
    for forward, backward in zip(grad.source.tolist(), grad.target.tolist(), strict=True):
        assert capture.graph.node(forward).path == capture.graph.node(backward).path


def test_one_step_is_no_scope():
    assert not any(node.path.startswith("step") for node in gan(1).graph.nodes)


def test_recording_ends_when_every_optimizer_has_made_its_steps(tmp_path: Path):
    script = tmp_path / "two.py"
    script.write_text(
        "import paddle\n"
        "a, b = paddle.nn.Linear(3, 2), paddle.nn.Linear(3, 2)\n"
        "one = paddle.optimizer.SGD(parameters=a.parameters())\n"
        "other = paddle.optimizer.SGD(parameters=b.parameters())\n"
        "for _ in range(3):\n"
        "    for model, opt in ((a, one), (b, other)):\n"
        "        model(paddle.ones([1, 3])).sum().backward()\n"
        "        opt.step(); opt.clear_grad()\n"
    )
    out = tmp_path / "two.opscope"
    command = [sys.executable, "-m", "opscope", "trace", "--steps", "2", "-o", str(out), str(script)]
    subprocess.run(command, capture_output=True, check=True)
    found = opscope.open(out)
    assert sum(node.op == "sgd_" for node in found.graph.nodes) == 2 * 2 * 2, "steps, optimizers, parameters"
    assert {node.path for node in found.graph.nodes if node.op == "linear"} == {
        f"step {n}/{model}" for n in (1, 2) for model in ("a", "b")
    }
