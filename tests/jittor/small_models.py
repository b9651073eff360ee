"""Models that are quick to compile, and questions to ask of their captures."""

from __future__ import annotations

import numpy as np
from jittor import nn

import opscope


class MLP(nn.Module):
    def __init__(self) -> None:
        self.fc1 = nn.Linear(4, 8)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(8, 1)

    def execute(self, x):
        hidden = self.relu(self.fc1(x))
        return self.fc2(hidden)


class ConvNet(nn.Module):
    """Has what is easily upset: running statistics and random numbers."""

    def __init__(self) -> None:
        self.conv = nn.Conv(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm(4)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(4 * 8 * 8, 2)

    def execute(self, x):
        x = self.drop(self.bn(self.conv(x)))
        return self.fc(x.reshape((x.shape[0], -1)))


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape, dtype=np.float32)


def paths(capture: opscope.Capture) -> set[str]:
    return {node.path for node in capture.graph.nodes}


def inputs(capture: opscope.Capture) -> dict[str, tuple[str, str]]:
    """Name -> (role, type) of what the graph reads and does not make."""
    values = [capture.graph.value(int(index)) for index in capture.graph.inputs]
    return {value.name: (value.role, str(value.type)) for value in values}


def line(capture: opscope.Capture, frame) -> str:
    """The source text that a frame points at, as the capture holds it."""
    return capture.sources[frame.file].splitlines()[frame.line - 1].strip()
