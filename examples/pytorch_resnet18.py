"""One ResNet-18, captured with every method that PyTorch offers.

    python examples/pytorch_resnet18.py [FOLDER] [--size 224] [--only record fx ...]

Writes one .opscope file per method, and prints how many operators each one captures. Needs torch: see docs/pytorch.md.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import opscope


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        widths = [64, 64, 128, 256, 512]
        self.layers = nn.Sequential(
            *[
                nn.Sequential(Block(inputs, outputs, 1 if inputs == outputs else 2), Block(outputs, outputs, 1))
                for inputs, outputs in itertools.pairwise(widths)
            ]
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.flatten(self.pool(self.layers(self.stem(x))), 1))


def training_step(x: Tensor) -> opscope.Capture:
    """What actually runs: forward, backward and optimizer, with modules, lines and gradient pairs."""
    model = ResNet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    labels = torch.zeros(len(x), dtype=torch.int64)
    with opscope.record(model, optimizer=optimizer) as capture:
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
    return capture


WAYS = ("step", "record", "export", "fx", "jit-trace", "jit-script", "dynamo", "joint", "autograd")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--size", type=int, default=224, help="height and width of the image")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    x = torch.randn(2, 3, options.size, options.size)
    for way in options.only:
        capture = training_step(x) if way == "step" else opscope.trace(ResNet18(), x, how=way)
        place = options.folder / f"resnet18-{way}.opscope"
        capture.save(place)
        stages = ", ".join(f"{stage.name} {stage.graph.n_nodes}" for stage in capture.stages)
        print(f"{place.name:<28} operators: {stages}")


if __name__ == "__main__":
    main()
