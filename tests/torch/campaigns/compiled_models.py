"""Models for `compiled.py`: it is hard to say which module their operators are in, or which kernel computes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

MODELS: dict[str, Callable[[], tuple[Any, ...]]] = {}  # name -> (model, inputs, options of torch.compile)


def model(make: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    MODELS[make.__name__] = make
    return make


class GPTBlock(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc, self.proj = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.heads = heads
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(d, dim=2)
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.c_proj(y.transpose(1, 2).reshape(b, t, d)))
        return x + self.drop(self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh")))


class GPT(nn.Module):
    def __init__(self, n=3, d=32, vocab=64):
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(vocab, d), nn.Embedding(32, d), nn.Dropout(0.1)
        self.h = nn.ModuleList(GPTBlock(d, 4) for _ in range(n))
        self.ln_f = nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx):
        pos = torch.arange(idx.shape[1], device=idx.device)
        x = self.drop(self.wte(idx) + self.wpe(pos))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


@model
def gpt2():
    m = GPT()
    return m, (torch.randint(0, 64, (2, 16)),)


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        dtype = x.dtype
        x = x.float()
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(dtype)


class Rotary(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("inv", 1.0 / 10000 ** (torch.arange(0, d, 2).float() / d))

    def forward(self, t):
        f = torch.outer(torch.arange(t).float(), self.inv)
        e = torch.cat((f, f), -1)
        return e.cos(), e.sin()


def rotate(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class LlamaAttention(nn.Module):
    def __init__(self, d, h, kv):
        super().__init__()
        self.h, self.kv, self.hd = h, kv, d // h
        self.q_proj, self.k_proj = nn.Linear(d, d, bias=False), nn.Linear(d, kv * self.hd, bias=False)
        self.v_proj, self.o_proj = nn.Linear(d, kv * self.hd, bias=False), nn.Linear(d, d, bias=False)

    def forward(self, x, cos, sin):
        b, t, d = x.shape
        q = self.q_proj(x).view(b, t, self.h, self.hd).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.kv, self.hd).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.kv, self.hd).transpose(1, 2)
        q, k = q * cos + rotate(q) * sin, k * cos + rotate(k) * sin
        k, v = k.repeat_interleave(self.h // self.kv, 1), v.repeat_interleave(self.h // self.kv, 1)
        s = (q @ k.transpose(-1, -2)) / math.sqrt(self.hd)
        s = s + torch.full((t, t), float("-inf")).triu(1)
        return self.o_proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class LlamaMLP(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (
            nn.Linear(d, 2 * d, bias=False),
            nn.Linear(d, 2 * d, bias=False),
            nn.Linear(2 * d, d, bias=False),
        )
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.self_attn, self.mlp = LlamaAttention(d, 4, 2), LlamaMLP(d)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(d), RMSNorm(d)

    def forward(self, x, cos, sin):
        residual = x
        x = self.input_layernorm(x)
        x = self.self_attn(x, cos, sin)
        x = residual + x
        residual = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        return residual + x


class Llama(nn.Module):
    def __init__(self, n=3, d=32, vocab=64):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, d)
        self.rotary = Rotary(d // 4)
        self.layers = nn.ModuleList(LlamaLayer(d) for _ in range(n))
        self.norm = RMSNorm(d)
        self.lm_head = nn.Linear(d, vocab, bias=False)

    def forward(self, idx):
        x = self.embed_tokens(idx)
        cos, sin = self.rotary(idx.shape[1])
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


@model
def llama():
    return Llama(), (torch.randint(0, 64, (2, 16)),)


class ViT(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 4, 4)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, d)), nn.Parameter(torch.zeros(1, 17, d))
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d, 4, 64, 0.1, batch_first=True, activation="gelu", norm_first=True),
            2,
            enable_nested_tensor=False,
        )
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.encoder(x))[:, 0])


@model
def vit():
    return ViT(), (torch.randn(2, 3, 16, 16),)


class Bottleneck(nn.Module):
    def __init__(self, i, w, stride=1):
        super().__init__()
        o = 4 * w
        self.conv1, self.bn1 = nn.Conv2d(i, w, 1, bias=False), nn.BatchNorm2d(w)
        self.conv2, self.bn2 = nn.Conv2d(w, w, 3, stride, 1, bias=False), nn.BatchNorm2d(w)
        self.conv3, self.bn3 = nn.Conv2d(w, o, 1, bias=False), nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = (
            nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if i != o or stride > 1 else None
        )

    def forward(self, x):
        identity = x
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.conv2(out)
        out = self.bn2(out)
        out = self.relu(out)
        out = self.conv3(out)
        out = self.bn3(out)
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        out = self.relu(out)
        return out


class ResNet(nn.Module):
    def __init__(self, blocks=(3, 4, 6, 3)):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        i = 8
        for n, c in enumerate(blocks):
            w = 8 << n
            layer = []
            for k in range(c):
                layer.append(Bottleneck(i, w, 2 if n and not k else 1))
                i = 4 * w
            setattr(self, f"layer{n + 1}", nn.Sequential(*layer))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(i, 10)

    def forward(self, x):
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.maxpool(x)
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.fc(x)


@model
def resnet50():
    return ResNet(), (torch.randn(2, 3, 64, 64),)


@model
def resnet14():
    return ResNet((1, 2, 1, 1)), (torch.randn(2, 3, 64, 64),)


class Expert(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w1, self.w2 = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)))


class MoE(nn.Module):
    def __init__(self, d=16, n=4):
        super().__init__()
        self.gate = nn.Linear(d, n)
        self.experts = nn.ModuleList(Expert(d) for _ in range(n))
        self.out = nn.Linear(d, 8)

    def forward(self, x):
        scores = self.gate(x).softmax(-1)
        weights, chosen = scores.topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mask = (chosen == i).to(x.dtype) * weights
            y = y + expert(x) * mask.sum(-1, keepdim=True)
        return self.out(x + y)


@model
def moe():
    return MoE(), (torch.randn(8, 16),)


class RoutedMoE(nn.Module):
    """Batched weights, sorted tokens."""

    def __init__(self, d=16, n=4, k=2):
        super().__init__()
        self.router = nn.Linear(d, n, bias=False)
        self.w_in, self.w_out = (
            nn.Parameter(torch.randn(n, d, 2 * d) * 0.1),
            nn.Parameter(torch.randn(n, 2 * d, d) * 0.1),
        )
        self.k = k

    def forward(self, x):
        p = self.router(x).softmax(-1)
        w, e = p.topk(self.k, -1)
        order = e.flatten().argsort(stable=True)
        token = order // self.k
        rows = x[token]
        we = e.flatten()[order]
        h = F.gelu(torch.bmm(rows.unsqueeze(1), self.w_in[we]))
        y = torch.bmm(h, self.w_out[we]).squeeze(1) * w.flatten()[order].unsqueeze(-1)
        return torch.zeros_like(x).index_add(0, token, y)


class RoutedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleDict({"norm": nn.LayerNorm(16), "moe": RoutedMoE()}) for _ in range(2))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer["moe"](layer["norm"](x))
        return self.head(x)


@model
def routed():
    return RoutedNet(), (torch.randn(8, 16),)


class Breaker(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(d), nn.Linear(d, d)

    def forward(self, x):
        h = self.norm(x)
        torch._dynamo.graph_break()
        return x + F.relu(self.fc(h))


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = Breaker(16), Breaker(16), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.b(self.a(x)))


@model
def broken():
    return Broken(), (torch.randn(4, 16),)


class Dynamic(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(32, 16)
        self.conv = nn.Conv1d(16, 16, 3, padding=1)
        self.att = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, i):
        x = self.emb(i)
        x = F.relu(self.conv(x.transpose(1, 2)).transpose(1, 2))
        x = x + self.att(x, x, x, need_weights=False)[0]
        return self.head(x.mean(1))


@model
def dynamic():
    return Dynamic(), (torch.randint(0, 32, (3, 11)),), {"dynamic": True}


class DoubleConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1, bias=False),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(i, o))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.up = nn.ConvTranspose2d(i, i // 2, 2, 2)
        self.conv = DoubleConv(i, o)

    def forward(self, a, b):
        a = self.up(a)
        dy, dx = b.size(2) - a.size(2), b.size(3) - a.size(3)
        a = F.pad(a, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([b, a], 1))


class UNet(nn.Module):
    def __init__(self, w=4):
        super().__init__()
        self.inc = DoubleConv(3, w)
        self.down1, self.down2, self.down3 = Down(w, 2 * w), Down(2 * w, 4 * w), Down(4 * w, 8 * w)
        self.up1, self.up2, self.up3 = Up(8 * w, 4 * w), Up(4 * w, 2 * w), Up(2 * w, w)
        self.outc = nn.Conv2d(w, 2, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(x4, x3)
        x = self.up2(x, x2)
        x = self.up3(x, x1)
        return self.outc(x)


@model
def unet():
    return UNet(), (torch.randn(1, 3, 32, 32),)


class LSTMCell(nn.Module):
    def __init__(self, i, h):
        super().__init__()
        self.ih, self.hh = nn.Linear(i, 4 * h), nn.Linear(h, 4 * h)

    def forward(self, x, h, c):
        i, f, g, o = (self.ih(x) + self.hh(h)).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([LSTMCell(8, 8), LSTMCell(8, 8)])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        state = [(torch.zeros(x.shape[0], 8), torch.zeros(x.shape[0], 8)) for _ in self.cells]
        for t in range(x.shape[1]):
            h = x[:, t]
            for k, cell in enumerate(self.cells):
                h, c = cell(h, *state[k])
                state[k] = (h, c)
        return self.head(h)


@model
def lstm():
    return LSTM(), (torch.randn(2, 4, 8),)


class OneLine(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.act = nn.Linear(8, 16), nn.Linear(16, 8), nn.GELU()
        self.n1, self.n2, self.d = nn.LayerNorm(8), nn.LayerNorm(8), nn.Dropout(0.1)

    def forward(self, x):
        return self.n2(x + self.d(self.b(self.act(self.a(self.n1(x))))))


@model
def oneline():
    return nn.Sequential(*[OneLine() for _ in range(3)], nn.Linear(8, 4)), (torch.randn(4, 8),)


class Dense(nn.Module):
    def __init__(self, i, g):
        super().__init__()
        self.norm1, self.relu1, self.conv1 = nn.BatchNorm2d(i), nn.ReLU(), nn.Conv2d(i, 2 * g, 1, bias=False)
        self.norm2, self.relu2, self.conv2 = (
            nn.BatchNorm2d(2 * g),
            nn.ReLU(),
            nn.Conv2d(2 * g, g, 3, padding=1, bias=False),
        )

    def forward(self, xs):
        h = self.conv1(self.relu1(self.norm1(torch.cat(xs, 1))))
        return self.conv2(self.relu2(self.norm2(h)))


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2))
        self.block = nn.ModuleDict({f"denselayer{i}": Dense(8 + 4 * i, 4) for i in range(3)})
        self.classifier = nn.Linear(20, 5)

    def forward(self, x):
        x = self.features(x)
        xs = [x]
        for layer in self.block.values():
            xs.append(layer(xs))
        x = F.adaptive_avg_pool2d(F.relu(torch.cat(xs, 1)), 1).flatten(1)
        return self.classifier(x)


@model
def densenet():
    return DenseNet(), (torch.randn(2, 3, 16, 16),)


class Mixer(nn.Module):
    def __init__(self, t, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.tok = nn.Sequential(nn.Linear(t, 2 * t), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * t, t), nn.Dropout(0.1))
        self.ch = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * d, d), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ch(self.n2(x))


@model
def mixer():
    return nn.Sequential(
        nn.Linear(8, 16), *[Mixer(8, 16) for _ in range(3)], nn.LayerNorm(16), nn.Flatten(), nn.Linear(128, 4)
    ), (torch.randn(2, 8, 8),)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 8), nn.Tanh())
        self.head = nn.Bilinear(8, 8, 3)

    def forward(self, a, b):
        return self.head(self.tower(a), self.tower(b))


@model
def siamese():
    return Siamese(), (torch.randn(4, 8), torch.randn(4, 8))


class Activations(nn.Module):
    """Modules without parameters, all on loops and single lines."""

    def __init__(self):
        super().__init__()
        self.acts = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sigmoid(), nn.ReLU(), nn.Softmax(-1), nn.Hardtanh()])
        self.proj = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def forward(self, x):
        for p in self.proj:
            for a in self.acts:
                x = a(x) + 0.1
            x = p(x)
        return x


@model
def activations():
    return Activations(), (torch.randn(4, 8),)


class Inception(nn.Module):
    def __init__(self, i):
        super().__init__()

        def conv(i, o, k):
            return nn.Sequential(nn.Conv2d(i, o, k, padding=k // 2, bias=False), nn.BatchNorm2d(o), nn.ReLU())

        self.b1, self.b2, self.b3 = (
            conv(i, 4, 1),
            nn.Sequential(conv(i, 4, 1), conv(4, 4, 3)),
            nn.Sequential(conv(i, 2, 1), conv(2, 4, 3), conv(4, 4, 3)),
        )
        self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(i, 4, 1))

    def forward(self, x):
        return torch.cat([b(x) for b in (self.b1, self.b2, self.b3, self.pool)], 1)


@model
def inception():
    return nn.Sequential(Inception(3), Inception(16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)), (
        torch.randn(2, 3, 16, 16),
    )


class Conformer(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.ff1, self.ff2 = self.ff(d), self.ff(d)
        self.att = nn.MultiheadAttention(d, 2, batch_first=True)
        self.n = nn.ModuleList(nn.LayerNorm(d) for _ in range(4))
        self.pw1, self.dw, self.bn, self.pw2 = (
            nn.Conv1d(d, 2 * d, 1),
            nn.Conv1d(d, d, 3, padding=1, groups=d),
            nn.BatchNorm1d(d),
            nn.Conv1d(d, d, 1),
        )

    def ff(self, d):
        return nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d))

    def conv(self, x):
        x = F.glu(self.pw1(x.transpose(1, 2)), 1)
        return self.pw2(F.silu(self.bn(self.dw(x)))).transpose(1, 2)

    def forward(self, x):
        x = x + 0.5 * self.ff1(x)
        y = self.n[0](x)
        x = x + self.att(y, y, y, need_weights=False)[0]
        x = x + self.conv(self.n[1](x))
        x = x + 0.5 * self.ff2(self.n[2](x))
        return self.n[3](x)


@model
def conformer():
    return nn.Sequential(Conformer(), Conformer(), nn.Linear(16, 4)), (torch.randn(2, 8, 16),)


class Repeat(nn.Module):
    """ALBERT: one layer, run again and again; and a hidden child that is called through a helper."""

    def __init__(self):
        super().__init__()
        self.layer = LlamaMLP(16)
        self.norm = nn.RMSNorm(16)
        self.extra = nn.ModuleDict({"gate": nn.Linear(16, 16), "act": nn.Tanh()})

    def helper(self, x, name):
        return getattr(self, name)(x)

    def forward(self, x):
        for _ in range(3):
            x = x + self.helper(self.helper(x, "norm"), "layer")
            x = self.extra["act"](self.extra["gate"](x)).mul(0.5).add(x)
        return x


@model
def albert():
    return Repeat(), (torch.randn(4, 16),)


class Encoder(nn.Module):
    """nn.Transformer, masks, positional functions."""

    def __init__(self):
        super().__init__()
        self.t = nn.Transformer(16, 2, 1, 1, 32, 0.1, batch_first=True)
        self.out = nn.Linear(16, 5)

    def forward(self, a, b):
        return self.out(self.t(a, b))


@model
def transformer():
    return Encoder(), (torch.randn(2, 5, 16), torch.randn(2, 4, 16))


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(OneLine() for _ in range(3))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for b in self.blocks:
            x = checkpoint(b, x, use_reentrant=False)
        return self.head(x)


@model
def checkpointed():
    return Checkpointed(), (torch.randn(4, 8),)
