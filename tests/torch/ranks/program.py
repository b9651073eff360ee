"""A training step on several ranks: `program.py WAY [RESULTS]`. Run by torchrun, or as ranks without their peers."""

from __future__ import annotations

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(16, 64)
        self.down = nn.Linear(64, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


def model(layers: int = 4) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(Block() for _ in range(layers)))


def odd(rank: int) -> str:
    """What this rank does wrong."""
    which, _, what = os.environ.get("ODD", "").partition(":")
    return what if which == str(rank) else ""


def train(net: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(2):
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return list(net.parameters())


def ddp() -> list[torch.Tensor]:
    return train(nn.parallel.DistributedDataParallel(model()), torch.ones(4, 16) * (1 + dist.get_rank()))


def fsdp1() -> list[torch.Tensor]:
    from torch.distributed.fsdp import FullyShardedDataParallel

    return train(FullyShardedDataParallel(model(), device_id=torch.device("cpu")), torch.ones(4, 16))


def fsdp2() -> list[torch.Tensor]:
    from torch.distributed.fsdp import fully_shard

    net = model()
    for block in net:
        fully_shard(block)
    fully_shard(net)
    return train(net, torch.ones(4, 16) * (1 + dist.get_rank()))


def tp() -> list[torch.Tensor]:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    net = model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    for block in net:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return train(net, torch.ones(4, 16))


def sp() -> list[torch.Tensor]:
    """Sequence parallel: activations are cut between the matrices."""
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    net = model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    for block in net:
        plan = {
            "up": ColwiseParallel(input_layouts=Shard(0)),
            "down": RowwiseParallel(output_layouts=Shard(0)),
        }
        parallelize_module(block, mesh, plan)
    return train(net, torch.ones(2, 16))


def pipeline(name: str, static: bool = True) -> list[torch.Tensor]:
    from torch.distributed import pipelining

    size, rank = dist.get_world_size(), dist.get_rank()
    many = name in ("interleaved", "zero_bubble", "zbv")
    count = size * (2 if many else 1)
    places = (rank, 2 * size - 1 - rank) if name == "zbv" else (rank, rank + size) if many else (rank,)
    blocks = model(count)
    hidden = torch.zeros(2, 16)
    stages = []
    for place in places:
        told = {}
        if static:
            told = {
                "input_args": (hidden.clone().requires_grad_(place > 0),),
                "output_args": (hidden.clone().requires_grad_(),),
                "input_grads": (hidden,) if place else None,
                "output_grads": (hidden,) if place < count - 1 else None,
            }
        stages.append(pipelining.PipelineStage(blocks[place], place, count, torch.device("cpu"), **told))
    kinds = {
        "gpipe": "ScheduleGPipe",
        "1f1b": "Schedule1F1B",
        "interleaved": "ScheduleInterleaved1F1B",
        "zero_bubble": "ScheduleInterleavedZeroBubble",
        "zbv": "ScheduleZBVZeroBubble",
    }
    made = getattr(pipelining.schedules, kinds[name])
    schedule = made(stages if many else stages[0], 4, loss_fn=lambda y, t: (y - t).square().mean())
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=0.01)
    for _ in range(2):
        given = (torch.ones(8, 16),) if 0 in places else ()
        schedule.step(*given, target=torch.zeros(8, 16) if count - 1 in places else None)
        optimizer.step()
        optimizer.zero_grad()
    return parameters


def experts() -> list[torch.Tensor]:
    """Tokens go to the rank that has their expert, and back."""
    import torch.distributed.nn.functional as collectives

    size = dist.get_world_size()
    net = model(1)

    def forward(x: torch.Tensor) -> torch.Tensor:
        there = collectives.all_to_all_single(torch.empty_like(x), x)
        return collectives.all_to_all_single(torch.empty_like(x), net(there))

    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    forward(torch.ones(4 * size, 16)).square().mean().backward()
    optimizer.step()
    return list(net.parameters())


def by_hand() -> list[torch.Tensor]:
    """Collectives in the code itself; a rank may do something else."""
    rank = dist.get_rank()
    what = odd(rank)
    net = model()
    blocks = list(net)[:-1] if what == "layer" else list(net)
    x = torch.ones(4, 16)
    for block in blocks:
        x = block(x)
    x.square().mean().backward()
    if what == "hang":
        time.sleep(600)
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in net.parameters()]
    order = gradients[1::-1] + gradients[2:] if what == "order" else gradients
    for gradient in order:
        dist.all_reduce(gradient)
    if what == "extra":
        dist.all_reduce(torch.ones(3))
    if what == "reduction":
        dist.all_reduce(torch.ones(1), op=dist.ReduceOp.MAX)
    else:
        dist.all_reduce(torch.ones(1))
    return gradients


WAYS = {
    "ddp": ddp,
    "fsdp1": fsdp1,
    "fsdp2": fsdp2,
    "tp": tp,
    "sp": sp,
    "experts": experts,
    "by_hand": by_hand,
    **{name: lambda name=name: pipeline(name) for name in ("gpipe", "1f1b", "interleaved", "zero_bubble", "zbv")},
    "shapes asked": lambda: pipeline("1f1b", static=False),
}


def main() -> None:
    dist.init_process_group("gloo")
    found = WAYS[sys.argv[1]]()
    if len(sys.argv) > 2:
        local = [p.to_local() if hasattr(p, "to_local") else p for p in found]
        torch.save([p.detach().clone() for p in local], f"{sys.argv[2]}.{dist.get_rank()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
