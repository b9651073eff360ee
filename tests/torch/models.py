"""Small models with something of everything: residuals, attention, recurrence, branches, shared modules."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    """The basic block of ResNet-18."""

    def __init__(self, inside: int, outside: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample = None
        if stride != 1 or inside != outside:
            self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet18(nn.Module):
    def __init__(self, width: int = 8, classes: int = 10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Block(width, width), Block(width, width))
        self.layer2 = nn.Sequential(Block(width, 2 * width, 2), Block(2 * width, 2 * width))
        self.layer3 = nn.Sequential(Block(2 * width, 4 * width, 2), Block(4 * width, 4 * width))
        self.layer4 = nn.Sequential(Block(4 * width, 8 * width, 2), Block(8 * width, 8 * width))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.ln1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, words: int = 32, width: int = 16, layers: int = 2, heads: int = 2, length: int = 8):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.tokens.weight  # tied

    def forward(self, words):
        x = self.tokens(words) + self.places(torch.arange(words.shape[1], device=words.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=True)
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.out(states)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x):
        return torch.relu(self.fc(x) + self.offset)


class Shared(nn.Module):
    """One module called twice, one in a list, one parameter of its own, two results of one operator."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.more = nn.ModuleList([Inner()])
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        y = self.inner(self.inner(x))
        y = self.more[0](y) * self.scale
        a, b = torch.split(y, 2, -1)
        return torch.cat([a, b.flip(0)], 1).sum()


class Branching(nn.Module):
    """A branch and a loop that depend on the numbers."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        for _ in range(3):
            if x.sum() > 0:
                x = self.inner(x)
            else:
                x = x - 1
        return x


class Choosing(nn.Module):
    """The same as a higher-order operator."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        def yes(y):
            return y + 1

        def no(y):
            return y.sin() - 1

        return torch.cond(x.sum() > 0, yes, no, (self.inner(x),))


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 + 0 * x


class Custom(nn.Module):
    """An autograd function of the user's own, and several results."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = Double.apply(self.fc(x))
        values, places = y.topk(2)
        return {"values": values, "places": places, "loss": y.mean()}
