"""Training steps of three models for a GPU, without any other package: a Llama, GPT-2 and ResNet-50."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * h.to(x.dtype)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.v = nn.Linear(width, groups * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        b, t, _ = x.shape
        h = self.norm1(x)
        q = rotated(self.q(h).view(b, t, self.heads, self.size).transpose(1, 2), cos, sin)
        k = rotated(self.k(h).view(b, t, self.groups, self.size).transpose(1, 2), cos, sin)
        v = self.v(h).view(b, t, self.groups, self.size).transpose(1, 2)
        k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, -1))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


@dataclasses.dataclass
class Size:
    layers: int
    width: int
    heads: int
    groups: int
    inner: int
    words: int
    batch: int
    length: int

    @property
    def products(self) -> int:
        """Parameters that are factors of matrix products."""
        side = self.width // self.heads * self.groups
        block = 2 * self.width**2 + 2 * self.width * side + 3 * self.width * self.inner
        return self.layers * block + self.words * self.width

    def flops(self) -> float:
        """Of a step, by hand: 6 for each of these parameters and each token, and attention, of which a causal mask
        leaves (length + 1) / 2 scores of each row: two products forward, five backward (the scores once more)."""
        tokens = self.batch * self.length
        scores = self.batch * self.length * (self.length + 1) / 2 * self.width * self.layers
        return 6.0 * self.products * tokens + 2 * (2 + 5) * scores


class Llama(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.words, size.width)
        self.layers = nn.ModuleList(
            [LlamaBlock(size.width, size.heads, size.groups, size.inner) for _ in range(size.layers)]
        )
        self.norm = RMSNorm(size.width)
        self.head = nn.Linear(size.width, size.words, bias=False)
        half = size.width // size.heads // 2
        angle = torch.outer(torch.arange(size.length).float(), 10000.0 ** -(torch.arange(half).float() / half))
        angle = torch.cat((angle, angle), -1)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x)
        for layer in self.layers:
            h = layer(h, self.cos, self.sin)
        return self.head(self.norm(h))


class GPTBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.dropout(self.out(y.transpose(1, 2).reshape(b, t, c)), 0.1, self.training)
        return x + F.dropout(self.mlp(self.norm2(x)), 0.1, self.training)


class GPT2(nn.Module):
    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 50257, most: int = 1024):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(words, width), nn.Embedding(most, width)
        self.blocks = nn.ModuleList([GPTBlock(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        h = F.dropout(self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device)), 0.1, self.training)
        for block in self.blocks:
            h = block(h)
        return F.linear(self.norm(h), self.tokens.weight)


class Bottleneck(nn.Module):
    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inside != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + identity)


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        inside = 64
        for number, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
            blocks = [
                Bottleneck(inside if i == 0 else 4 * width, width, 2 if i == 0 and number else 1) for i in range(count)
            ]
            setattr(self, f"layer{number + 1}", nn.Sequential(*blocks))
            inside = 4 * width
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(inside, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


@dataclasses.dataclass
class Work:
    """A model with its training step."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    step: Callable[[], Tensor]
    size: Size | None = None


def work(name: str, device: str, scale: str) -> Work:
    """`scale`: "batch" is a training batch that fills an H200, "launch" one so small that launching is all of the time,
    "tiny" is for a CPU."""
    torch.manual_seed(0)
    if name == "resnet50":
        batch, side = {"batch": (128, 224), "launch": (16, 224), "tiny": (2, 64)}[scale]
        model: nn.Module = ResNet50().to(device)
        x = torch.randn(batch, 3, side, side, device=device)
        y = torch.randint(0, 1000, (batch,), device=device)
        return _work(model, lambda: F.cross_entropy(model(x), y), None)
    if name == "gpt2":
        batch, length = {"batch": (16, 1024), "launch": (2, 256), "tiny": (1, 16)}[scale]
        model = GPT2(*((2, 32, 2, 100) if scale == "tiny" else ())).to(device)
        words = 100 if scale == "tiny" else 50257
        size = None
    else:
        size = {
            "batch": Size(16, 2048, 32, 8, 8192, 32000, 4, 2048),
            "launch": Size(16, 2048, 32, 8, 8192, 32000, 1, 128),
            "tiny": Size(2, 32, 4, 2, 64, 100, 1, 16),
        }[scale]
        batch, length, words = size.batch, size.length, size.words
        model = Llama(size).to(device=device, dtype=torch.bfloat16)
    ids = torch.randint(0, words, (batch, length + 1), device=device)
    autocast = torch.autocast(torch.device(device).type, torch.bfloat16, enabled=name == "gpt2")

    def loss() -> Tensor:
        with autocast:
            return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten())

    return _work(model, loss, size)


def _work(model: nn.Module, loss: Callable[[], Tensor], size: Size | None) -> Work:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return Work(model, optimizer, step, size)


NAMES = ("llama", "gpt2", "resnet50")
