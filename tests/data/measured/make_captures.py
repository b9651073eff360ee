"""The same small model, recorded with times (and values, where the framework has them) in each framework.

Run in the lane of a framework, from this folder: python make_captures.py torch
"""

import re
import sys

import numpy as np

import opscope
from opscope import wire

X = np.linspace(-1, 1, 2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8)
KERNEL = np.linspace(-0.5, 0.5, 4 * 3 * 3 * 3, dtype=np.float32).reshape(4, 3, 3, 3)
WEIGHT = np.linspace(-0.3, 0.3, 64 * 5, dtype=np.float32).reshape(64, 5)
# conv 2×3×8×8 -> 2×4×8×8, layer norm over the last dimension, matmul 8×64 by 64×5, softmax


def torch():
    import torch
    from torch.nn import functional as F

    x, kernel, weight = map(torch.from_numpy, (X, KERNEL, WEIGHT))
    with opscope.record(times=True, values=True) as capture:
        y = F.layer_norm(F.conv2d(x, kernel, padding=1), [8])
        torch.softmax(y.reshape(8, 64) @ weight, 1)
    return capture


def paddle():
    import paddle
    from paddle.nn import functional as F

    x, kernel, weight = map(paddle.to_tensor, (X, KERNEL, WEIGHT))
    with opscope.record(framework="paddle", times=True, values=True) as capture:
        y = F.layer_norm(F.conv2d(x, kernel, padding=1), [8])
        F.softmax(y.reshape([8, 64]) @ weight, 1)
    return capture


def jittor():
    import jittor as jt
    from jittor import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv(3, 4, 3, padding=1, bias=False)
            self.conv.weight = jt.array(KERNEL)
            self.norm = nn.LayerNorm(8, elementwise_affine=False)
            self.weight = jt.array(WEIGHT)

        def execute(self, x):
            return nn.softmax(nn.matmul(self.norm(self.conv(x)).reshape(8, 64), self.weight), 1)

    model, x = Model(), jt.array(X)
    model(x).sync()
    with opscope.record(model, times=True, values=True) as capture:
        model(x).sync()
    return capture


def hidet():
    import hidet

    x, kernel, weight = map(hidet.asarray, (X, KERNEL, WEIGHT))
    y = hidet.symbol_like(x)
    normed = hidet.ops.layer_norm(hidet.ops.conv2d(hidet.ops.pad(y, [1, 1, 1, 1]), kernel, stride=1), num_last_dims=1)
    graph = hidet.trace_from(hidet.ops.softmax(hidet.ops.matmul(normed.reshape([8, 64]), weight), axis=1))
    with opscope.record(framework="hidet", times=True, values=True) as capture:
        graph(x)
    return capture


def megengine():
    import megengine as mge
    from megengine import functional as F

    x, kernel, weight = map(mge.tensor, (X, KERNEL, WEIGHT))
    with opscope.record(framework="megengine", times=True) as capture:
        y = F.nn.layer_norm(F.conv2d(x, kernel, padding=1), (8,), False)
        F.softmax(F.matmul(y.reshape(8, 64), weight), axis=1).numpy()
    return capture


def portable(file):
    """A path without the folders of this machine."""
    return file.rpartition("site-packages/")[2] if "site-packages" in file else "/".join(file.split("/")[-2:])


if __name__ == "__main__":
    name = sys.argv[1]
    capture = globals()[name]()
    capture.sources.clear()
    texts = capture.pools.attr_texts.rows()
    texts[:] = [re.sub(r'"/[^"]*/(jit/)', r'"\1', text) for text in texts]  # where Jittor has a kernel's code
    frames = capture.pools.frames.rows()
    frames[:] = [frame._replace(file=portable(frame.file)) for frame in frames]
    with open(f"{name}.opscope", "wb") as file:
        wire.write(capture, file)  # without what opscope computes, which a test wants to see added
