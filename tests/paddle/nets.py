"""Networks of the kinds that a backward graph can have."""

from __future__ import annotations

from typing import Any

import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.distributed.fleet.utils import recompute


class Example(nn.Layer):
    """The network of paddleviz's own example."""

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
        self.fc = nn.Sequential(nn.Linear(576, 120), nn.Sigmoid(), nn.Linear(120, 84), nn.Sigmoid(), nn.Linear(84, 10))

    def forward(self, img: Any) -> Any:
        return self.fc(self.conv(img).reshape([img.shape[0], -1]))


class Twice(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


class Shared(nn.Layer):
    """One layer called twice, a tensor used twice, a split, a frozen parameter, an assignment to a part."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.frozen = nn.Linear(4, 4)
        self.frozen.weight.stop_gradient = True

    def forward(self, x: Any) -> Any:
        h = self.inner(F.relu(self.inner(x)))
        first, second = paddle.split(self.frozen(h), 2, axis=-1)
        h = paddle.concat([second, first * first], axis=-1)
        h[0] = 0
        return h + h.clone()


class Custom(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return F.tanh(Twice.apply(self.inner(x)))


class Again(nn.Layer):
    """A part that is recomputed in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

    def forward(self, x: Any) -> Any:
        return recompute(self.second, self.first(x))


class Words(nn.Layer):
    """An embedding, an LSTM, an attention, a layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)

    def forward(self, ids: Any) -> Any:
        return self.block(self.lstm(self.words(ids))[0])


def small() -> Any:
    return paddle.randn([3, 4])


NETS: dict[str, tuple[Any, Any]] = {
    "example": (Example, lambda: paddle.randn([1, 3, 32, 32])),
    "resnet18": (lambda: paddle.vision.models.resnet18(), lambda: paddle.randn([2, 3, 64, 64])),
    "mobilenet": (lambda: paddle.vision.models.mobilenet_v2(scale=0.25), lambda: paddle.randn([2, 3, 64, 64])),
    "shared": (Shared, small),
    "custom": (Custom, small),
    "again": (Again, small),
    "words": (Words, lambda: paddle.randint(0, 20, [2, 5])),
}
