"""Single operators for bench_cost.py, each with its multiply-accumulates written down by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Op(nn.Module):
    """An operator as a model: x is the argument, everything else is held, as parameters, for the tools that look there.

    What it calls is looked up when it runs (`lambda *a: torch.mm(*a)`), as in anybody's code: some tools replace it."""

    def __init__(self, call: Callable[..., Tensor], *held: Tensor) -> None:
        super().__init__()
        self.call, self.count = call, len(held)
        for i, tensor in enumerate(held):
            self.register_parameter(f"held{i}", nn.Parameter(tensor, requires_grad=False))

    def forward(self, x: Tensor) -> Tensor:
        return self.call(x, *(getattr(self, f"held{i}") for i in range(self.count)))


class First(nn.Module):
    """The first of what a module returns."""

    def __init__(self, module: nn.Module, times: int = 1) -> None:
        super().__init__()
        self.module, self.times = module, times

    def forward(self, x: Tensor) -> Tensor:
        return self.module(*[x] * self.times)[0]


R = torch.randn
Entry = tuple[nn.Module, Tensor, int]


def entries() -> dict[str, Entry]:
    found: dict[str, Entry] = {}

    def op(name: str, call: Callable[..., Any], x: Tensor, macs: int, *held: Tensor) -> None:
        found[name] = (Op(call, *held), x, macs)

    def module(name: str, made: nn.Module, x: Tensor, macs: int) -> None:
        found[name] = (nn.Sequential(made).eval(), x, macs)

    # products
    op("mm", lambda *a: torch.mm(*a), R(4, 5), 4 * 5 * 6, R(5, 6))
    op("mv", lambda *a: torch.mv(*a), R(4, 5), 4 * 5, R(5))
    op("dot", lambda *a: torch.dot(*a), R(9), 9, R(9))
    op("bmm", lambda *a: torch.bmm(*a), R(3, 4, 5), 3 * 4 * 5 * 6, R(3, 5, 6))
    op("matmul 2d", lambda *a: torch.matmul(*a), R(4, 5), 4 * 5 * 6, R(5, 6))
    op("matmul 3d × 2d", lambda *a: torch.matmul(*a), R(3, 4, 5), 3 * 4 * 5 * 6, R(5, 6))
    op("matmul broadcast", lambda *a: torch.matmul(*a), R(8, 1, 4, 5), 8 * 3 * 4 * 5 * 6, R(3, 5, 6))
    op("matmul vector", lambda *a: torch.matmul(*a), R(3, 4, 5), 3 * 4 * 5, R(5))
    op("@", lambda x, y: x @ y, R(4, 5), 4 * 5 * 6, R(5, 6))
    op("addmm", lambda x, a, b: torch.addmm(b, x, a), R(4, 5), 4 * 5 * 6, R(5, 6), R(6))
    op("addmv", lambda x, a, b: torch.addmv(b, x, a), R(4, 5), 4 * 5, R(5), R(4))
    op("addbmm", lambda x, a, b: torch.addbmm(b, x, a), R(3, 4, 5), 3 * 4 * 5 * 6, R(3, 5, 6), R(4, 6))
    op("baddbmm", lambda x, a, b: torch.baddbmm(b, x, a), R(3, 4, 5), 3 * 4 * 5 * 6, R(3, 5, 6), R(3, 4, 6))
    op("einsum ij,jk", lambda x, y: torch.einsum("ij,jk->ik", x, y), R(4, 5), 4 * 5 * 6, R(5, 6))
    op(
        "einsum attention",
        lambda x, y: torch.einsum("bhid,bhjd->bhij", x, y),
        R(2, 3, 4, 5),
        2 * 3 * 4 * 7 * 5,
        R(2, 3, 7, 5),
    )
    op("tensordot", lambda x, y: torch.tensordot(x, y, 2), R(3, 4, 5), 3 * 4 * 5 * 6, R(4, 5, 6))
    op("inner", lambda *a: torch.inner(*a), R(4, 5), 4 * 5 * 6, R(6, 5))
    op("outer", lambda *a: torch.outer(*a), R(4), 0, R(5))
    op(
        "chain_matmul",
        lambda x, a, b: torch.linalg.multi_dot([x, a, b]),
        R(10, 20),
        10 * 20 * 5 + 10 * 5 * 30,
        R(20, 5),
        R(5, 30),
    )
    op("kron", lambda *a: torch.kron(*a), R(2, 3), 0, R(4, 5))
    op("F.linear", lambda *a: F.linear(*a), R(2, 7, 5), 2 * 7 * 5 * 6, R(6, 5))
    op("F.linear bias", lambda *a: F.linear(*a), R(2, 7, 5), 2 * 7 * 5 * 6, R(6, 5), R(6))
    op("F.bilinear", lambda *a: F.bilinear(*a), R(4, 5), 4 * 7 * (5 * 6 + 6), R(4, 6), R(7, 5, 6))
    module("Linear", nn.Linear(5, 6), R(2, 7, 5), 2 * 7 * 5 * 6)
    module("Linear 4d", nn.Linear(5, 6), R(2, 3, 7, 5), 2 * 3 * 7 * 5 * 6)
    # convolutions
    module("Conv1d", nn.Conv1d(4, 6, 3), R(2, 4, 10), 2 * 6 * 8 * 4 * 3)
    module("Conv2d", nn.Conv2d(4, 6, 3), R(2, 4, 10, 10), 2 * 6 * 64 * 4 * 9)
    module("Conv2d stride", nn.Conv2d(4, 6, 3, 2, 1), R(2, 4, 10, 10), 2 * 6 * 25 * 4 * 9)
    module("Conv2d dilation", nn.Conv2d(4, 6, 3, dilation=2), R(2, 4, 10, 10), 2 * 6 * 36 * 4 * 9)
    module("Conv2d groups", nn.Conv2d(4, 6, 3, groups=2), R(2, 4, 10, 10), 2 * 6 * 64 * 2 * 9)
    module("Conv2d depthwise", nn.Conv2d(4, 4, 3, groups=4), R(2, 4, 10, 10), 2 * 4 * 64 * 9)
    module("Conv2d same", nn.Conv2d(4, 6, 3, padding="same"), R(2, 4, 10, 10), 2 * 6 * 100 * 4 * 9)
    module("Conv3d", nn.Conv3d(4, 6, 3), R(2, 4, 6, 6, 6), 2 * 6 * 64 * 4 * 27)
    module("ConvTranspose1d", nn.ConvTranspose1d(4, 6, 3, 2), R(2, 4, 10), 2 * 4 * 10 * 6 * 3)
    module("ConvTranspose2d", nn.ConvTranspose2d(4, 6, 3, 2), R(2, 4, 10, 10), 2 * 4 * 100 * 6 * 9)
    module("ConvTranspose3d", nn.ConvTranspose3d(4, 6, 3, 2), R(2, 4, 5, 5, 5), 2 * 4 * 125 * 6 * 27)
    op("F.conv1d", lambda *a: F.conv1d(*a), R(2, 4, 10), 2 * 6 * 8 * 4 * 3, R(6, 4, 3))
    op("F.conv2d", lambda *a: F.conv2d(*a), R(2, 4, 10, 10), 2 * 6 * 64 * 4 * 9, R(6, 4, 3, 3))
    op("F.conv3d", lambda *a: F.conv3d(*a), R(2, 4, 6, 6, 6), 2 * 6 * 64 * 4 * 27, R(6, 4, 3, 3, 3))
    op(
        "F.conv_transpose2d",
        lambda x, w: F.conv_transpose2d(x, w, stride=2),
        R(2, 4, 10, 10),
        2 * 4 * 100 * 6 * 9,
        R(4, 6, 3, 3),
    )
    op("unfold and mm", lambda x, w: w @ F.unfold(x, 3), R(2, 4, 10, 10), 2 * 6 * 64 * 4 * 9, R(6, 36))
    # attention: 2 heads of 8, 5 queries, 5 keys
    attention = 2 * 2 * 2 * 5 * 5 * 8
    op("SDPA", lambda *a: F.scaled_dot_product_attention(*a), R(2, 2, 5, 8), attention, R(2, 2, 5, 8), R(2, 2, 5, 8))
    op(
        "SDPA causal",
        lambda x, k, v: F.scaled_dot_product_attention(x, k, v, is_causal=True),
        R(2, 2, 5, 8),
        attention,
        R(2, 2, 5, 8),
        R(2, 2, 5, 8),
    )
    op(
        "SDPA mask",
        lambda x, k, v, m: F.scaled_dot_product_attention(x, k, v, attn_mask=m),
        R(2, 2, 5, 8),
        attention,
        R(2, 2, 5, 8),
        R(2, 2, 5, 8),
        R(5, 5),
    )
    op(
        "SDPA grouped",
        lambda x, k, v: F.scaled_dot_product_attention(x, k, v, enable_gqa=True),
        R(2, 2, 5, 8),
        attention,
        R(2, 1, 5, 8),
        R(2, 1, 5, 8),
    )
    op(
        "softmax(q kᵀ) v",
        lambda x, k, v: (x @ k.mT).softmax(-1) @ v,
        R(2, 2, 5, 8),
        attention,
        R(2, 2, 5, 8),
        R(2, 2, 5, 8),
    )
    heads = 2 * 5 * 16 * 64 + 2 * 2 * 5 * 5 * 16
    module("MultiheadAttention", First(nn.MultiheadAttention(16, 2, batch_first=True), 3), R(2, 5, 16), heads)
    layer = heads + 2 * 2 * 5 * 16 * 32
    module("TransformerEncoderLayer", nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), R(2, 5, 16), layer)
    # recurrent: 2 sequences of 5, width 8, state 6
    for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        module(name, First(getattr(nn, name)(8, 6, batch_first=True)), R(2, 5, 8), 2 * 5 * gates * 6 * (8 + 6))
    module(
        "LSTM two ways", First(nn.LSTM(8, 6, batch_first=True, bidirectional=True)), R(2, 5, 8), 2 * 2 * 5 * 4 * 6 * 14
    )
    module("LSTM two layers", First(nn.LSTM(8, 6, 2, batch_first=True)), R(2, 5, 8), 2 * 5 * 4 * 6 * (14 + 12))
    module("LSTMCell", First(nn.LSTMCell(8, 6)), R(2, 8), 2 * 4 * 6 * 14)
    module("GRUCell", nn.GRUCell(8, 6), R(2, 8), 2 * 3 * 6 * 14)
    # others
    module("Bilinear", _Both(nn.Bilinear(5, 5, 7)), R(4, 5), 4 * 7 * (5 * 5 + 5))
    op("cdist", lambda x, y: torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist"), R(4, 5), 4 * 6 * 7, R(6, 5))
    op("Embedding", lambda x, w: F.embedding(x, w), torch.randint(0, 9, (4,)), 0, R(9, 5))
    op("sparse mm", lambda x, a: torch.sparse.mm(a.to_sparse(), x), R(5, 6), 5 * 6, torch.eye(5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            quantized = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(5, 6)), {nn.Linear})
            module("Linear quantized", quantized, R(2, 7, 5), 2 * 7 * 5 * 6)
        except Exception:  # torch without a quantized engine
            pass
    return found


class _Both(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x)
