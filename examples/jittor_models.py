"""Capture four Jittor graphs: a small model and ResNet-18, each once for inference and once for training.

    python examples/jittor_models.py [FOLDER] [--size 224] [--only simple_model ...]

Writes simple_model.opscope, simple_model_train.opscope, resnet.opscope and resnet_train.opscope.
Needs Jittor on Python 3.10 or older: see docs/jittor-live.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import jittor as jt
import numpy as np
from jittor.models import resnet

import opscope


def matmul(a: jt.Var, b: jt.Var) -> jt.Var:
    (n, m), k = a.shape, b.shape[-1]
    return (a.broadcast([n, m, k], dims=[2]) * b.broadcast([n, m, k], dims=[0])).sum(dim=1)


class Linear(jt.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        self.w = (jt.random((inputs, outputs)) - 0.5) / inputs**0.5
        self.b = jt.random((outputs,)) - 0.5

    def execute(self, x: jt.Var) -> jt.Var:
        return matmul(x, self.w) + self.b


class Relu(jt.Module):
    def execute(self, x: jt.Var) -> jt.Var:
        return jt.maximum(x, 0.0)


class Model(jt.Module):
    def __init__(self) -> None:
        self.linear1 = Linear(1, 10)
        self.relu1 = Relu()
        self.linear2 = Linear(10, 1)

    def execute(self, x: jt.Var) -> jt.Var:
        return self.linear2(self.relu1(self.linear1(x)))


def batch(*shape: int) -> jt.Var:
    return jt.array(np.random.rand(*shape).astype("float32"))


def inference(build: Callable[[], jt.Module], shape: tuple[int, ...]) -> opscope.Capture:
    """Everything from the first parameter on: the model is created inside the recording."""
    with opscope.record(framework="jittor") as capture:
        model = build()
        y = model(batch(*shape))  # noqa: F841  keep a reference, so that it is computed
    return capture


def training(build: Callable[[], jt.Module], shape: tuple[int, ...]) -> opscope.Capture:
    with opscope.record(framework="jittor") as capture:
        model = build()
        opt = jt.optim.SGD(model.parameters(), 0.1)
        y = model(batch(*shape))
        opt.step(y**2)
    return capture


def main() -> None:
    parser = argparse.ArgumentParser(description="Capture four Jittor graphs.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--size", type=int, default=224, help="height and width of the images for ResNet")
    jobs: dict[str, Callable[[int], opscope.Capture]] = {
        "simple_model": lambda size: inference(Model, (10, 1)),
        "simple_model_train": lambda size: training(Model, (10, 1)),
        "resnet": lambda size: inference(resnet.Resnet18, (2, 3, size, size)),
        "resnet_train": lambda size: training(resnet.Resnet18, (2, 3, size, size)),
    }
    parser.add_argument("--only", nargs="+", choices=jobs, default=list(jobs))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        capture = jobs[name](options.size)
        capture.save(options.folder / f"{name}.opscope")
        print(f"{name}.opscope: {capture.graph.n_nodes} operators")


if __name__ == "__main__":
    main()
