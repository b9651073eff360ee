"""The models of bench_cost.py, each with its cost derived by hand from the architecture.

Nothing here knows opscope. A truth is the multiply-accumulates of matrix products and convolutions, written down layer
by layer from the sizes: `forward`, and `both` with the backward pass. A layer with M on the way forward has 2 M on the
way back, one for its input and one for its weight; M only where the input needs no gradient. Attention's two products
are four on the way back, and a fused kernel multiplies queries by keys once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Case:
    model: nn.Module
    x: Tensor
    forward: int
    both: int
    params: int


class Count:
    """Adds up layers."""

    def __init__(self) -> None:
        self.forward = self.both = self.params = 0

    def linear(self, rows: int, inside: int, out: int, bias: bool = True, needs_input: bool = True) -> None:
        self.add(rows * inside * out, needs_input)
        self.params += inside * out + bias * out

    def conv(
        self, inside: int, out: int, kernel: int, size: int, batch: int, groups: int = 1, bias: bool = False,
        needs_input: bool = True,
    ) -> None:  # fmt: skip
        weights = inside // groups * out * kernel * kernel
        self.add(batch * size * size * weights, needs_input)
        self.params += weights + bias * out

    def add(self, macs: int, needs_input: bool = True) -> None:
        self.forward += macs
        self.both += macs * (3 if needs_input else 2)

    def norm(self, width: int) -> None:
        self.params += 2 * width

    def attention(self, batch: int, queries: int, keys: int, width: int, fused: bool = True) -> None:
        one = batch * queries * keys * width
        self.forward += 2 * one
        self.both += (7 if fused else 6) * one

    def case(self, model: nn.Module, x: Tensor) -> Case:
        return Case(model, x, self.forward, self.both, self.params)


# -- convolutions ---------------------------------------------------------------------------------------


class Basic(nn.Module):
    def __init__(self, inside: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down = _down(inside, out, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.down is None else self.down(x)))


class Bottleneck(nn.Module):
    def __init__(self, inside: int, out: int, stride: int) -> None:
        super().__init__()
        mid = out // 4
        self.conv1, self.bn1 = nn.Conv2d(inside, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv2, self.bn2 = nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv3, self.bn3 = nn.Conv2d(mid, out, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down = _down(inside, out, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
        return self.relu(self.bn3(self.conv3(y)) + (x if self.down is None else self.down(x)))


def _down(inside: int, out: int, stride: int) -> nn.Module | None:
    if stride == 1 and inside == out:
        return None
    return nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))


def _resnet(block: Any, widths: tuple[int, ...], depths: tuple[int, ...]) -> Case:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    n = Count()
    n.conv(3, 64, 7, 112, 1, needs_input=False)
    n.norm(64)
    inside, size = 64, 56
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        for i in range(depth):
            stride = 2 if stage and not i else 1
            layers.append(block(inside, width, stride))
            after = size // stride
            if block is Basic:
                convs = [(inside, width, 3, after), (width, width, 3, after)]
            else:
                mid = width // 4
                convs = [(inside, mid, 1, size), (mid, mid, 3, after), (mid, width, 1, after)]
            if stride > 1 or inside != width:
                convs.append((inside, width, 1, after))
            for a, b, k, s in convs:
                n.conv(a, b, k, s, 1)
                n.norm(b)
            inside, size = width, after
    n.linear(1, inside, 1000)
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))
    return n.case(model, torch.randn(1, 3, 224, 224))


def resnet18() -> Case:
    return _resnet(Basic, (64, 128, 256, 512), (2, 2, 2, 2))


def resnet50() -> Case:
    return _resnet(Bottleneck, (256, 512, 1024, 2048), (3, 4, 6, 3))


class Inverted(nn.Module):
    def __init__(self, inside: int, out: int, stride: int, widen: int) -> None:
        super().__init__()
        mid = inside * widen
        layers: list[nn.Module] = []
        if widen > 1:
            layers += [nn.Conv2d(inside, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU6(inplace=True)]
        layers += [nn.Conv2d(mid, mid, 3, stride, 1, groups=mid, bias=False), nn.BatchNorm2d(mid), nn.ReLU6(True)]
        layers += [nn.Conv2d(mid, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.layers = nn.Sequential(*layers)
        self.is_residual = stride == 1 and inside == out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.is_residual else self.layers(x)


def mobilenet_v2() -> Case:
    n = Count()
    n.conv(3, 32, 3, 112, 1, needs_input=False)
    n.norm(32)
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(inplace=True)]
    inside, size = 32, 112
    plan = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for widen, out, depth, first in plan:
        for i in range(depth):
            stride = first if not i else 1
            layers.append(Inverted(inside, out, stride, widen))
            mid = inside * widen
            if widen > 1:
                n.conv(inside, mid, 1, size, 1)
                n.norm(mid)
            size //= stride
            n.conv(mid, mid, 3, size, 1, groups=mid)
            n.norm(mid)
            n.conv(mid, out, 1, size, 1)
            n.norm(out)
            inside = out
    n.conv(320, 1280, 1, 7, 1)
    n.norm(1280)
    n.linear(1, 1280, 1000)
    layers += [nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(inplace=True)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000)]
    return n.case(nn.Sequential(*layers), torch.randn(1, 3, 224, 224))


# -- transformers ---------------------------------------------------------------------------------------


class FusedBlock(nn.Module):
    """One projection for queries, keys and values, and F.scaled_dot_product_attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.mlp = nn.LayerNorm(width), _mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))
        return x + self.mlp(self.norm2(x))


class MultiheadBlock(nn.Module):
    """nn.MultiheadAttention, which has a fast path of its own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2, self.mlp = nn.LayerNorm(width), _mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def _mlp(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class ViT(nn.Module):
    def __init__(self, block: Any, width: int = 768, depth: int = 12, heads: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.cls, self.place = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, 197, width))
        self.blocks = nn.Sequential(*[block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


def _vit(block: Any) -> Case:
    width, tokens = 768, 197
    n = Count()
    n.conv(3, width, 16, 14, 1, bias=True, needs_input=False)
    n.params += width + tokens * width
    for _ in range(12):
        _transformer_layer(n, 1, tokens, width, 4 * width)
    n.norm(width)
    n.linear(1, width, 1000)
    return n.case(ViT(block), torch.randn(1, 3, 224, 224))


def _transformer_layer(n: Count, batch: int, tokens: int, width: int, wide: int, fused: bool = True) -> None:
    n.norm(width)
    n.linear(batch * tokens, width, 3 * width)
    n.attention(batch, tokens, tokens, width, fused)
    n.linear(batch * tokens, width, width)
    n.norm(width)
    n.linear(batch * tokens, width, wide)
    n.linear(batch * tokens, wide, width)


def vit_fused() -> Case:
    return _vit(FusedBlock)


def vit_multihead() -> Case:
    return _vit(MultiheadBlock)


class Only(nn.Module):
    """A model of transformers with one tensor in and one out."""

    def __init__(self, model: nn.Module, argument: str, result: str) -> None:
        super().__init__()
        self.model, self.argument, self.result = model, argument, result

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self.model(**{self.argument: x}), self.result)


def swin_t() -> Case:
    from transformers import SwinConfig, SwinForImageClassification

    n = Count()
    n.conv(3, 96, 4, 56, 1, bias=True, needs_input=False)
    n.norm(96)
    width, size = 96, 56
    for stage, (depth, heads) in enumerate(zip((2, 2, 6, 2), (3, 6, 12, 24), strict=True)):
        for _ in range(depth):  # attention in windows of 7 × 7, with a bias for each pair of places
            n.norm(width)
            n.linear(size * size, width, 3 * width)
            n.attention(size * size // 49, 49, 49, width, fused=False)
            n.params += 13 * 13 * heads
            n.linear(size * size, width, width)
            n.norm(width)
            n.linear(size * size, width, 4 * width)
            n.linear(size * size, 4 * width, width)
        if stage < 3:
            size //= 2
            n.norm(4 * width)
            n.linear(size * size, 4 * width, 2 * width, bias=False)
            width *= 2
    n.norm(width)
    n.linear(1, width, 1000)
    model = SwinForImageClassification(SwinConfig(num_labels=1000, drop_path_rate=0.0))
    return n.case(Only(model, "pixel_values", "logits"), torch.randn(1, 3, 224, 224))


def gpt2() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    n = Count()
    n.params += 50257 * 768 + 1024 * 768
    for _ in range(12):
        _transformer_layer(n, 1, 128, 768, 3072)
    n.norm(768)
    n.add(128 * 768 * 50257)  # the head's weight is the embedding's
    model = GPT2LMHeadModel(GPT2Config(use_cache=False, attn_pdrop=0.0))  # with dropout, no fused attention
    return n.case(Only(model, "input_ids", "logits"), torch.randint(0, 50257, (1, 128)))


def bert() -> Case:
    from transformers import BertConfig, BertModel

    n = Count()
    n.params += (30522 + 512 + 2) * 768
    n.norm(768)
    for _ in range(12):
        _transformer_layer(n, 1, 128, 768, 3072)
    n.linear(1, 768, 768)
    return n.case(
        Only(BertModel(BertConfig(attention_probs_dropout_prob=0.0)), "input_ids", "pooler_output"),
        torch.randint(0, 30522, (1, 128)),
    )


# -- others ---------------------------------------------------------------------------------------------


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(5000, 256), nn.LSTM(256, 512, 2, batch_first=True)
        self.head = nn.Linear(512, 100)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(self.embed(x))[0])


def lstm() -> Case:
    n = Count()
    n.params += 5000 * 256
    for inside in (256, 512):
        n.linear(8 * 64, inside, 4 * 512)
        n.linear(8 * 64, 512, 4 * 512)
    n.linear(8 * 64, 512, 100)
    return n.case(Tagger(), torch.randint(0, 5000, (8, 64)))


class Functional(nn.Module):
    """Attention without any module: linear, einsum, matmul, bmm, the @ operator and fused attention."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.qkv = nn.Parameter(torch.randn(3 * width, width) * 0.02)
        self.out = nn.Parameter(torch.randn(width, width) * 0.02)
        self.up, self.back = (nn.Parameter(torch.randn(width, 4 * width) * 0.02) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        q, k, v = F.linear(x, self.qkv).view(b, n, 3, 8, c // 8).permute(2, 0, 3, 1, 4)
        y = torch.einsum("bhij,bhjd->bhid", (q @ k.transpose(-1, -2) * 0.125).softmax(-1), v)
        y = F.linear(y.transpose(1, 2).reshape(b, n, c), self.out)
        y = y + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c)
        return torch.matmul(F.gelu(torch.bmm(y, self.up.expand(b, -1, -1))), self.back.t())


def functional() -> Case:
    batch, tokens, width = 4, 128, 512
    n = Count()
    n.linear(batch * tokens, width, 3 * width, bias=False, needs_input=False)
    n.attention(batch, tokens, tokens, width, fused=False)
    n.linear(batch * tokens, width, width, bias=False)
    n.attention(batch, tokens, tokens, width, fused=True)
    n.linear(batch * tokens, width, 4 * width, bias=False)
    n.linear(batch * tokens, 4 * width, width, bias=False)
    return n.case(Functional(), torch.randn(batch, tokens, width))


class Experts(nn.Module):
    """Each token goes to two of eight experts: shapes depend on the data."""

    def __init__(self, width: int = 256, experts: int = 8) -> None:
        super().__init__()
        self.stem, self.gate = nn.Linear(width, width), nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList([_mlp(width) for _ in range(experts)])

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x.flatten(0, 1))
        weight, chosen = self.gate(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            row, which = torch.nonzero(chosen == number, as_tuple=True)
            out = out.index_add(0, row, expert(x[row]) * weight[row, which, None])
        return out


def experts() -> Case:
    rows, width = 4 * 128, 256
    n = Count()
    n.linear(rows, width, width, needs_input=False)
    n.linear(rows, width, 8, bias=False)
    n.add(2 * rows * width * 4 * width)
    n.add(2 * rows * width * 4 * width)
    n.params += 8 * (2 * width * 4 * width + 5 * width)
    return n.case(Experts(), torch.randn(4, 128, width))


MODELS: dict[str, Callable[[], Case]] = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "vit fused": vit_fused,
    "vit multihead": vit_multihead,
    "swin_t": swin_t,
    "gpt2": gpt2,
    "bert": bert,
    "lstm": lstm,
    "functional": functional,
    "experts": experts,
}
