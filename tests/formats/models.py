"""Ten models, small enough to be exported in seconds each, with what exporters meet in practice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Made = tuple[nn.Module, tuple[Any, ...]]
MODELS: dict[str, Callable[[], Made]] = {}


def model(make: Callable[[], Made]) -> Callable[[], Made]:
    MODELS[make.__name__] = make
    return make


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.down = nn.Conv2d(inside, outside, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + self.down(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.pool(self.layers(self.stem(x))).flatten(1))


@model
def resnet() -> Made:
    return ResNet(), (torch.randn(2, 3, 64, 64),)


class Mobile(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Conv2d(4, 24, 1)
        self.depthwise = nn.Conv2d(24, 24, 5, 2, 2, groups=24)
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(24, 6, 1), nn.SiLU(), nn.Conv2d(6, 24, 1))
        self.project = nn.Conv2d(24, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.hardswish(self.depthwise(nn.functional.relu6(self.expand(x))))
        return self.project(x * torch.sigmoid(self.squeeze(x)))


@model
def mobile() -> Made:
    return Mobile(), (torch.randn(1, 4, 20, 20),)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 8, 3, 2, 1)
        self.middle = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 2, dilation=2), nn.GroupNorm(2, 8), nn.GELU())
        self.up = nn.ConvTranspose2d(8, 4, 4, 2, 1)
        self.out = nn.Conv2d(5, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(self.middle(self.down(x)))
        y = nn.functional.interpolate(y, scale_factor=2.0, mode="bilinear")
        return self.out(torch.cat([nn.functional.avg_pool2d(y, 2), x], 1))


@model
def unet() -> Made:
    return UNet(), (torch.randn(2, 1, 16, 16),)


class Attention(nn.Module):
    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, width)
        made = (nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True) for _ in range(layers))
        self.layers = nn.ModuleList(made)
        self.head = nn.Linear(width, 50, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@model
def attention() -> Made:
    torch.backends.mha.set_fastpath_enabled(False)
    return Attention(2, 32), (torch.randint(0, 50, (2, 7)),)


def small_attention() -> Made:
    return Attention(1, 16), attention()[1]


class Causal(nn.Module):
    """Causal attention, rotated queries and keys, RMSNorm: written out as language models have it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(32)
        self.q, self.k, self.v = (nn.Linear(32, 32, bias=False) for _ in range(3))
        self.gate, self.up, self.down = nn.Linear(32, 48), nn.Linear(32, 48), nn.Linear(48, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        q, k, v = (p(y).view(2, 6, 4, 8).transpose(1, 2) for p in (self.q, self.k, self.v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 6, 32)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


@model
def causal() -> Made:
    return nn.Sequential(Causal(), Causal()), (torch.randn(2, 6, 32),)


class Twice(nn.Module):
    """One module called twice, one weight used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.shared(self.norm(self.shared(x)))
        return nn.functional.linear(x, self.shared.weight)


@model
def twice() -> Made:
    return Twice(), (torch.randn(3, 8),)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.out = nn.Linear(10, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(x)[0])


@model
def recurrent() -> Made:
    return Recurrent(), (torch.randn(2, 4, 6),)


class Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 5))
        self.bilinear = nn.Linear(5, 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.einsum("bi,hij->bhj", x, self.weight)
        z = torch.bmm(z, z.transpose(1, 2)) @ torch.baddbmm(z, torch.eye(3).expand(2, 3, 3), z)
        return self.bilinear(z) + torch.matmul(y, z[0].T).sum() + torch.outer(x[0], y[0])[:3, :5].mean()


@model
def products() -> Made:
    return Products(), (torch.randn(2, 4), torch.randn(6, 5))


class Sound(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv1d(2, 8, 5, 2), nn.InstanceNorm1d(8, affine=True), nn.LeakyReLU(), nn.Conv1d(8, 4, 3)
        )
        self.volume = nn.Conv3d(1, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(self.convs(x), -1)
        return self.volume(y.unsqueeze(1).unsqueeze(-1)).amax(2) + torch.cumsum(y, 1)[:, :1, :, None]


@model
def sound() -> Made:
    return Sound(), (torch.randn(2, 2, 30),)


class Experts(nn.Module):
    """A choice of experts, by gathering and scattering."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.experts = nn.Parameter(torch.randn(4, 8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = torch.softmax(self.router(x), -1).topk(2)
        mixed = torch.zeros(x.shape[0], 4).scatter(1, chosen, weights)
        return torch.einsum("be,bi,eij->bj", mixed, x, self.experts) + torch.where(x > 0, x, x.exp())


@model
def experts() -> Made:
    return Experts(), (torch.randn(5, 8),)
