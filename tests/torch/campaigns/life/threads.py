"""Threads and ranks."""

from __future__ import annotations

import contextlib
import copy
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn

from .common import batch, mlp, scenario, state, trained


@scenario(3 * 4 * 192)
def threads_with_their_own_gradients() -> Any:
    models = [mlp() for _ in range(3)]
    xs = [batch() for _ in range(3)]
    results: dict[int, Tensor] = {}

    def work(place: int) -> None:
        with torch.no_grad():
            results[place] = models[place](xs[place])

    threads = [threading.Thread(target=work, args=(place,)) for place in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return [results[place] for place in range(3)]


@scenario()
def a_pipeline_of_threads() -> Any:
    first, second, between = nn.Linear(8, 8), nn.Linear(8, 4), queue.Queue()
    xs, found = [batch() for _ in range(4)], []

    def produce() -> None:
        for x in xs:
            between.put(first(x))
        between.put(None)

    thread = threading.Thread(target=produce)
    thread.start()
    while (x := between.get()) is not None:
        found.append(second(x))
    thread.join()
    sum(found).sum().backward()
    return found, state(first, second)


@scenario()
def backward_in_a_thread() -> Any:
    model, x = mlp(), batch()
    loss = model(x).square().mean()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    return state(model)


@scenario(4 * 192)
def halves_in_a_pool() -> Any:
    model, x = mlp(), batch()

    def part(rows: Tensor) -> Tensor:
        with torch.no_grad():
            return model(rows)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(part, x.chunk(2)))


@scenario()
def futures_of_jit() -> Any:
    x = batch()
    future = torch.jit.fork(torch.sin, x)
    return torch.jit.wait(future) + 1


@contextlib.contextmanager
def one_rank() -> Any:
    import torch.distributed as dist

    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


@scenario()
def ddp() -> Any:
    with one_rank():
        model = nn.parallel.DistributedDataParallel(mlp(), gradient_as_bucket_view=True)
        found = trained(model, lambda: model(batch()).sum())
        with model.no_sync():
            model(batch()).sum().backward()
        return found, state(model)


@scenario()
def ddp_with_a_communication_hook() -> Any:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    with one_rank():
        one = nn.parallel.DistributedDataParallel(mlp(), find_unused_parameters=True)
        one.register_comm_hook(None, default_hooks.fp16_compress_hook)
        found = trained(one, lambda: one(batch()).sum())
        return found


@scenario()
def fsdp2() -> Any:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    with one_rank():
        model = mlp()
        for part in model:
            fully_shard(part, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
        fully_shard(model)
        x = batch()
        losses = []
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(2):
            loss = model(x).float().sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
        return losses, [p.full_tensor().detach() for p in model.parameters()]


@scenario()
def zero_redundancy() -> Any:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    with one_rank():
        model = nn.parallel.DistributedDataParallel(mlp())
        return trained(
            model, lambda: model(batch()).sum(), ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
        )


@scenario()
def collectives() -> Any:
    import torch.distributed as dist

    with one_rank():
        x = batch()
        dist.all_reduce(x)
        work = dist.broadcast(x, 0, async_op=True)
        work.wait()
        parts = [torch.empty_like(x)]
        dist.all_gather(parts, x)
        return x, parts


@scenario(2 * 4 * 64)
def a_worker_that_was_there_before() -> Any:
    first, second, todo, done = nn.Linear(8, 8), nn.Linear(8, 8), queue.Queue(), queue.Queue()

    def work() -> None:
        while (x := todo.get()) is not None:
            done.put(x @ first.weight.T + first.bias)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    with torch.no_grad():
        todo.put(batch())
        y = second(done.get())
    todo.put(None)
    worker.join()
    return y


@scenario(8 * 4 * 192)
def many_threads_on_one_model() -> Any:
    model, xs = mlp().eval(), [batch() for _ in range(8)]
    with ThreadPoolExecutor(4) as pool, torch.no_grad():
        return list(pool.map(torch.no_grad()(model), xs))


@scenario()
def replicas_as_in_data_parallel() -> Any:
    model, x = mlp(), batch()
    replicas = [copy.deepcopy(model) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda pair: pair[0](pair[1]), zip(replicas, x.chunk(2), strict=True)))
    torch.cat(outputs).sum().backward()
    for own, *others in zip(model.parameters(), *(r.parameters() for r in replicas), strict=True):
        own.grad = sum((other.grad for other in others), torch.zeros_like(own))
    return outputs, state(model)


@scenario()
def timers_and_events() -> Any:
    model, x, found = mlp(), batch(), []
    ready = threading.Event()

    def late() -> None:
        found.append(model(x))
        ready.set()

    timer = threading.Timer(0.001, late)
    timer.start()
    ready.wait()
    timer.join()
    return found


@scenario()
def a_lock_and_a_barrier() -> Any:
    model, x, lock, barrier = mlp(), batch(), threading.Lock(), threading.Barrier(2)
    found: dict[int, Tensor] = {}

    def work(place: int) -> None:
        barrier.wait()
        with lock:
            found[place] = model(x + place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    sum(found.values()).sum().backward()
    return found[0], found[1]


@scenario()
def checkpointed_ddp() -> Any:
    from torch.utils.checkpoint import checkpoint

    with one_rank():
        inner = mlp()
        model = nn.parallel.DistributedDataParallel(inner, static_graph=True)
        x = batch().requires_grad_()

        class Checkpointed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.body = mlp()

            def forward(self, x: Tensor) -> Tensor:
                return checkpoint(self.body, x, use_reentrant=False)

        other = nn.parallel.DistributedDataParallel(Checkpointed())
        found = trained(other, lambda: other(x).sum())
        return found, trained(model, lambda: model(x).sum())


@scenario()
def reductions_of_all_kinds() -> Any:
    import torch.distributed as dist

    with one_rank():
        x, parts = batch(), [torch.empty(4, 8)]
        dist.reduce_scatter_tensor(out := torch.empty(4, 8), x)
        dist.all_gather_into_tensor(whole := torch.empty(4, 8), x)
        dist.gather(x, parts)
        dist.scatter(kept := torch.empty(4, 8), parts)
        dist.barrier()
        objects: list[Any] = [None]
        dist.all_gather_object(objects, {"x": x})
        return out, whole, kept, objects[0]["x"]


@scenario()
def tensor_parallel() -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    with one_rank():
        mesh = init_device_mesh("cpu", (1,))
        model = parallelize_module(mlp(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        loss = model(batch()).sum()
        loss.backward()
        return loss, [p.full_tensor().detach() for p in model.parameters()]


@scenario()
def a_process_of_its_own() -> Any:
    model, x = mlp(), batch()
    context = torch.multiprocessing.get_context("fork")
    given, taken = context.Pipe()
    child = context.Process(target=lambda: given.send(model(x).detach().tolist()))
    child.start()
    found = torch.tensor(taken.recv())
    child.join()
    return found, model(x)
