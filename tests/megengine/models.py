"""The models of the samples, and others that MegEngine's own tools fail on."""

from __future__ import annotations

from typing import Any

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np


class Tiny(M.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = M.Conv2d(3, 4, 3, padding=1)
        self.bn = M.BatchNorm2d(4)
        self.pool = M.AvgPool2d(2)
        self.fc = M.Linear(64, 5)

    def forward(self, x: Any) -> Any:
        x = self.pool(F.relu(self.bn(self.conv(x))))
        return self.fc(F.flatten(x, 1))


class Block(M.Module):
    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.conv1 = M.Conv2d(cin, cout, 3, stride, padding=1, bias=False)
        self.bn1 = M.BatchNorm2d(cout)
        self.conv2 = M.Conv2d(cout, cout, 3, 1, padding=1, bias=False)
        self.bn2 = M.BatchNorm2d(cout)
        if stride == 1 and cin == cout:
            self.downsample = M.Identity()
        else:
            self.downsample = M.Sequential(M.Conv2d(cin, cout, 1, stride, bias=False), M.BatchNorm2d(cout))

    def forward(self, x: Any) -> Any:
        identity = x
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        return F.relu(x + self.downsample(identity))


class ResNet18(M.Module):
    def __init__(self, width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = M.Conv2d(3, width, 7, 2, padding=3, bias=False)
        self.bn1 = M.BatchNorm2d(width)
        self.maxpool = M.MaxPool2d(3, 2, padding=1)
        before = width
        for i in range(4):
            now = width * 2**i
            layer = M.Sequential(Block(before, now, 1 if i == 0 else 2), Block(now, now, 1))
            setattr(self, f"layer{i + 1}", layer)
            before = now
        self.fc = M.Linear(before, classes)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = F.avg_pool2d(x, x.shape[-1])
        return self.fc(F.flatten(x, 1))


class OwnWeight(M.Module):
    """A module of one's own with a `weight`: MegEngine's module_stats raises KeyError."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = mge.Parameter(np.ones((4, 3), "float32"))
        self.shift = mge.Parameter(np.zeros(4, "float32"))
        self.fc = M.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.fc(F.relu(F.matmul(x, self.weight.T) + self.shift))


def dump(model: Any, path: str, shape: tuple[int, ...], **options: Any) -> None:
    """As the samples were dumped: every name kept, nothing optimized."""
    model.eval()
    traced = mge.jit.trace(lambda data: model(data), symbolic=True, capture_as_const=True)
    traced(mge.tensor(np.zeros(shape, "float32")))
    options = {"keep_opr_name": True, "keep_var_name": 2, "optimize_for_inference": False, **options}
    traced.dump(path, arg_names=["data"], output_names=["out"], **options)
