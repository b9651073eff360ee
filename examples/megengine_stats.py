"""The statistics examples of MegEngine's manual, with opscope instead of MegEngine's tools.

    python examples/megengine_stats.py [FOLDER] [--size 224]

Writes resnet18.mge, a log for `tensorboard --logdir FOLDER/log`, and resnet18.opscope. Needs MegEngine (Python 3.10):
see docs/megengine.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np

import opscope
from opscope.compat.megengine import module_stats, visualize


class Block(M.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = M.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = M.BatchNorm2d(outputs)
        self.conv2 = M.Conv2d(outputs, outputs, 3, 1, padding=1, bias=False)
        self.bn2 = M.BatchNorm2d(outputs)
        self.downsample: Any = M.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = M.Sequential(M.Conv2d(inputs, outputs, 1, stride, bias=False), M.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet18(M.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = M.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = M.BatchNorm2d(64)
        self.maxpool = M.MaxPool2d(3, 2, padding=1)
        self.layer1 = M.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = M.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = M.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = M.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.fc = M.Linear(512, 1000)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(F.flatten(F.avg_pool2d(x, x.shape[-1]), 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."))
    parser.add_argument("--size", type=int, default=224)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)

    net = ResNet18()
    net.eval()
    input_data = np.random.rand(1, 3, args.size, args.size).astype("float32")

    # By module: what MegEngine's module_stats counts.
    total_stats, _ = module_stats(net, inputs=input_data, logging_to_stdout=False)
    print(f"params {total_stats.param_dims} flops {total_stats.flops} acts {total_stats.act_dims}")

    # By dump: every operator, and a log for TensorBoard.
    @mge.jit.trace(symbolic=True, capture_as_const=True)
    def infer(data: Any) -> Any:
        return net(data)

    infer(mge.tensor(input_data))
    model = args.folder / "resnet18.mge"
    infer.dump(str(model), arg_names=["data"], keep_opr_name=True, keep_var_name=2, optimize_for_inference=False)
    total_stats, _ = visualize(str(model), str(args.folder / "log"), input=input_data, logging_to_stdout=False)
    print(f"params {total_stats.param_dims} flops {total_stats.flops} acts {total_stats.act_dims}")

    # Live: with modules, source lines and functional operators.
    capture = opscope.trace(net, mge.tensor(input_data))
    capture.save(args.folder / "resnet18.opscope")
    print(opscope.stats(capture).by_module(depth=1))


if __name__ == "__main__":
    main()
