"""The backward graph of a small network, drawn in the style of paddleviz and captured with opscope.

python examples/paddle_backward.py                              opscope only
python -m opscope.compat.paddleviz.run examples/paddle_backward.py
opscope trace examples/paddle_backward.py                       the whole script as it runs
"""

from __future__ import annotations

import shutil
from pathlib import Path

import paddle
from paddle import nn

import opscope
from opscope.compat.paddleviz import make_graph


class Model(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2D(3, 6, 3, 1),
            nn.Sigmoid(),
            nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 3, 1),
            nn.Sigmoid(),
            nn.MaxPool2D(2, 2),
        )
        self.fc = nn.Sequential(
            nn.Linear(16 * 6 * 6, 120),
            nn.Sigmoid(),
            nn.Linear(120, 84),
            nn.Sigmoid(),
            nn.Linear(84, 10),
        )

    def forward(self, img):
        feature = self.conv(img)
        return self.fc(feature.reshape([img.shape[0], -1]))


def main(folder: Path = Path()) -> None:
    model = Model()
    x = paddle.randn([1, 3, 32, 32])
    y = model(x)
    y.sum().backward()

    dot = make_graph(y, dpi="600")
    if shutil.which("dot"):
        dot.render(str(folder / "viz-result.gv"), format="png", view=False)
    else:
        dot.save(str(folder / "viz-result.gv"))

    capture = opscope.trace(model, x, statistics=True)
    capture.save(folder / "paddle_step.opscope")
    print(capture)


if __name__ == "__main__":
    main()
