"""A Llama-like model on tensor, pipeline and data parallel ranks: one training step, without the ranks.

    opscope trace --world 1024 --fake --steps 1 examples/torch_world.py --tp 8 --pp 16 --layers 126 --hidden 16384 \
        --ffn 53248 --heads 128 --kv 8 --vocab 128256 --sequence 8192 --microbatches 16
    opscope info torch_world.opscope

The parallel layers are written by hand, as in Megatron: every rank holds its part of each matrix, and the collectives
stand in the code. The pipeline is PyTorch's own. Run by torchrun, it trains for real.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


class _Forward(torch.autograd.Function):
    """All-reduce on the way there, nothing on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        y = x.clone()
        dist.all_reduce(y, group=group)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0], None


class _Backward(torch.autograd.Function):
    """Nothing on the way there, all-reduce on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        dx = gradients[0].clone()
        dist.all_reduce(dx, group=ctx.group)
        return dx, None


def matrix(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(rows, columns, dtype=torch.bfloat16) * 0.02)


class Layer(nn.Module):
    def __init__(self, o: argparse.Namespace, group: Any) -> None:
        super().__init__()
        tp = dist.get_world_size(group)
        self.group = group
        self.head = o.hidden // o.heads
        self.heads, self.kv = o.heads // tp, o.kv // tp
        self.norm1 = nn.RMSNorm(o.hidden, dtype=torch.bfloat16)
        self.norm2 = nn.RMSNorm(o.hidden, dtype=torch.bfloat16)
        self.qkv = matrix((self.heads + 2 * self.kv) * self.head, o.hidden)
        self.out = matrix(o.hidden, self.heads * self.head)
        self.gate = matrix(o.ffn // tp, o.hidden)
        self.up = matrix(o.ffn // tp, o.hidden)
        self.down = matrix(o.hidden, o.ffn // tp)

    def forward(self, x: Tensor) -> Tensor:
        h = _Backward.apply(self.norm1(x), self.group)
        parts = F.linear(h, self.qkv).unflatten(-1, (-1, self.head)).transpose(1, 2)
        q, k, v = parts.split((self.heads, self.kv, self.kv), dim=1)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv)
        x = x + _Forward.apply(F.linear(a.transpose(1, 2).flatten(2), self.out), self.group)
        h = _Backward.apply(self.norm2(x), self.group)
        return x + _Forward.apply(
            F.linear(F.silu(F.linear(h, self.gate)) * F.linear(h, self.up), self.down), self.group
        )


class Embedding(nn.Module):
    """Every rank of a group has a part of the vocabulary."""

    def __init__(self, o: argparse.Namespace, group: Any) -> None:
        super().__init__()
        tp = dist.get_world_size(group)
        self.group, self.rows = group, o.vocab // tp
        self.first = self.rows * dist.get_rank(group)
        self.weight = matrix(self.rows, o.hidden)

    def forward(self, tokens: Tensor) -> Tensor:
        outside = (tokens < self.first) | (tokens >= self.first + self.rows)
        own = (tokens - self.first).masked_fill(outside, 0)
        found = F.embedding(own, self.weight).masked_fill(outside.unsqueeze(-1), 0.0)
        return _Forward.apply(found, self.group)


class Head(nn.Module):
    def __init__(self, o: argparse.Namespace, group: Any) -> None:
        super().__init__()
        tp = dist.get_world_size(group)
        self.group, self.rows = group, o.vocab // tp
        self.norm = nn.RMSNorm(o.hidden, dtype=torch.bfloat16)
        self.weight = matrix(self.rows, o.hidden)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(_Backward.apply(self.norm(x), self.group), self.weight)


class Stage(nn.Module):
    """The layers of one stage of the pipeline; the first embeds, the last has the head."""

    def __init__(self, o: argparse.Namespace, group: Any, stage: int) -> None:
        super().__init__()
        each, more = divmod(o.layers + 2, o.pp)  # the embedding and the head weigh about as much as a layer each
        count = each + (stage < more) - (stage == 0) - (stage == o.pp - 1)
        self.embedding = Embedding(o, group) if stage == 0 else None
        self.layers = nn.ModuleList(Layer(o, group) for _ in range(count))
        self.head = Head(o, group) if stage == o.pp - 1 else None

    def forward(self, x: Tensor) -> Tensor:
        if self.embedding is not None:
            x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return x if self.head is None else self.head(x)


class _Loss(torch.autograd.Function):
    """Cross entropy over parts of the vocabulary: three small all-reduces instead of one of all the logits."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, group: Any) -> Tensor:
        rows = logits.shape[-1]
        first = rows * dist.get_rank(group)
        logits = logits.float()
        most = logits.amax(-1)
        dist.all_reduce(most, dist.ReduceOp.MAX, group=group)
        logits = logits - most.unsqueeze(-1)
        outside = (target < first) | (target >= first + rows)
        own = (target - first).masked_fill(outside, 0)
        right = logits.gather(-1, own.unsqueeze(-1)).squeeze(-1).masked_fill(outside, 0.0)
        dist.all_reduce(right, group=group)
        exponents = logits.exp()
        total = exponents.sum(-1)
        dist.all_reduce(total, group=group)
        ctx.save_for_backward(exponents / total.unsqueeze(-1), own, outside)
        return (total.log() - right).mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        share, own, outside = ctx.saved_tensors
        dx = share.clone()
        dx.scatter_add_(-1, own.unsqueeze(-1), -(~outside).to(dx.dtype).unsqueeze(-1))
        return (dx * (gradients[0] / outside.numel())).to(torch.bfloat16), None, None


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    sizes = {
        "tp": 2,
        "pp": 2,
        "layers": 4,
        "hidden": 64,
        "ffn": 192,
        "heads": 4,
        "kv": 2,
        "vocab": 256,
        "sequence": 16,
        "microbatches": 4,
        "steps": 1,
    }
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    return parser.parse_args()


def main() -> None:
    o = options()
    dist.init_process_group("gloo")
    dp = dist.get_world_size() // (o.tp * o.pp)
    mesh = init_device_mesh("cpu", (o.pp, dp, o.tp), mesh_dim_names=("pp", "dp", "tp"))
    torch.manual_seed(0)
    tp, place = mesh.get_group("tp"), mesh.get_local_rank("pp")
    model = Stage(o, tp, place)

    tokens = torch.zeros(1, o.sequence, dtype=torch.int64)
    hidden = torch.zeros(1, o.sequence, o.hidden, dtype=torch.bfloat16)
    logits = torch.zeros(1, o.sequence, o.vocab // o.tp, dtype=torch.bfloat16)
    stage = PipelineStage(
        model, place, o.pp, torch.device("cpu"), group=mesh.get_group("pp"),
        input_args=(tokens if place == 0 else hidden.clone().requires_grad_(),),
        output_args=(logits if place == o.pp - 1 else hidden.clone().requires_grad_(),),
        input_grads=None if place == 0 else (hidden,),
        output_grads=None if place == o.pp - 1 else (hidden,),
    )  # fmt: skip
    schedule = Schedule1F1B(stage, o.microbatches, loss_fn=lambda y, t: _Loss.apply(y, t, tp))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batch = torch.randint(o.vocab, (o.microbatches, o.sequence + 1))
    for _ in range(o.steps):
        given = (batch[:, :-1].contiguous(),) if place == 0 else ()
        target = batch[:, 1:].contiguous() if place == o.pp - 1 else None
        schedule.step(*given, target=target)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=mesh.get_group("dp"))
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
