"""What programs are made of: generators, coroutines, contexts, exceptions, copies, recursion, other recordings."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import functools
import gc
import io
import pickle
import signal
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import opscope

from .common import batch, mlp, scenario, state, trained


@scenario(2 * 4 * 192)
def coroutines() -> Any:
    model, x = mlp(), batch()

    async def half(scale: float) -> Tensor:
        await asyncio.sleep(0)
        with torch.no_grad():
            y = model(x * scale)
        await asyncio.sleep(0)
        return y

    async def both() -> list[Tensor]:
        return list(await asyncio.gather(half(1.0), half(2.0)))

    return asyncio.run(both())


@scenario()
def work_given_away_by_a_coroutine() -> Any:
    model, x = mlp(), batch()

    async def run() -> Any:
        loop = asyncio.get_running_loop()
        first = await loop.run_in_executor(None, model, x)
        return first, await asyncio.to_thread(model, x * 2)

    first, second = asyncio.run(run())
    (first + second).sum().backward()
    return first, second, state(model)


@scenario()
def a_generator_that_waits_between_layers() -> Any:
    model = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def stream(x: Tensor) -> Iterator[Tensor]:
        for part in model:
            x = part(x).relu()
            given = yield x
            x = x if given is None else x + given

    one, other = stream(batch()), stream(batch())
    found = [next(one), next(other), one.send(torch.ones(8)), next(other), next(one)]
    other.close()
    found[-1].sum().backward()
    return found, state(model)


@scenario()
def a_generator_that_is_never_finished() -> Any:
    model = mlp()

    def rows() -> Iterator[Tensor]:
        with torch.no_grad():
            while True:
                yield model(batch())

    source = rows()
    found = [next(source) for _ in range(3)]
    del source
    found.append(model(batch()))
    return found, torch.tensor(torch.is_grad_enabled())


@scenario()
def context_variables() -> Any:
    scale: contextvars.ContextVar[float] = contextvars.ContextVar("scale", default=1.0)
    model, x = mlp(), batch()

    def run() -> Tensor:
        return model(x) * scale.get()

    context = contextvars.copy_context()
    context.run(scale.set, 3.0)
    return run(), context.run(run), run()


class Tree(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.here = nn.Linear(8, 8)
        self.parts = nn.ModuleList(Tree(depth - 1) for _ in range(2 if depth else 0))

    def forward(self, x: Tensor) -> Tensor:
        x = self.here(x).tanh()
        return x + sum((part(x) for part in self.parts), torch.zeros(()))


@scenario()
def recursion_through_modules() -> Any:
    model = Tree(3)
    return trained(model, lambda: model(batch()).sum())


class Again(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: Tensor, times: int) -> Tensor:
        return self(self.fc(x).relu(), times - 1) if times else x


@scenario(5 * 4 * 64)
def a_module_that_calls_itself() -> Any:
    with torch.no_grad():
        return Again()(batch(), 5)


@scenario()
def copies_while_it_runs() -> Any:
    model, x = mlp(), batch()
    optimizer = torch.optim.Adam(model.parameters())
    found = []
    for _ in range(2):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        kept = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
        found.append(kept[0])
    again = mlp()
    again.load_state_dict(found[0])
    return found, again(x), copy.copy(x), copy.deepcopy([x, {"x": x}])


@scenario()
def pickled_results() -> Any:
    model, x = mlp(), batch()
    y = model(x)
    again = pickle.loads(pickle.dumps({"y": y.detach(), "model": model, "size": y.shape, "type": y.dtype}))
    buffer = io.BytesIO()
    torch.save(y.detach()[::2], buffer)
    buffer.seek(0)
    return again["y"], again["model"](x), torch.load(buffer, weights_only=True)


class Interrupted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        if x.sum() > -1e9:
            raise KeyboardInterrupt
        return y


@scenario()
def an_interrupt_that_is_caught() -> Any:
    model, x = nn.Sequential(nn.Linear(8, 8), Interrupted()), batch()
    with contextlib.suppress(KeyboardInterrupt):
        model(x)
    return trained(model[0], lambda: model[0](x).sum())


@scenario()
def an_alarm_in_the_middle() -> Any:
    model, x, rung = mlp(), batch(), []
    before = signal.signal(signal.SIGUSR1, lambda *_: rung.append(model(x).detach()))
    try:
        found = []
        for place in range(4):
            found.append(model(x))
            if place == 1:
                signal.raise_signal(signal.SIGUSR1)
        return found, rung
    finally:
        signal.signal(signal.SIGUSR1, before)


class Picky(Exception):
    def __init__(self, x: Tensor) -> None:
        super().__init__(x.shape)
        self.x = x


@scenario()
def exceptions_that_carry_tensors() -> Any:
    model, x = mlp(), batch()
    try:
        try:
            raise Picky(model(x))
        except Picky as error:
            raise RuntimeError("wrapped") from error
    except RuntimeError as error:
        held = getattr(error.__cause__, "x", x)
    held.sum().backward()
    return held, state(model)


@scenario()
def an_error_in_a_backward_hook() -> Any:
    model, x = mlp(), batch()
    y = model(x)

    def fail(grad: Tensor) -> Tensor:
        raise ValueError("a hook")

    handle = y.register_hook(fail)
    with contextlib.suppress(ValueError, RuntimeError):
        y.sum().backward(retain_graph=True)
    handle.remove()
    model.zero_grad()
    y.sum().backward()
    return y, state(model)


@scenario()
def tensors_die_when_they_should() -> Any:
    model, x = mlp(), batch()
    y = model(x)
    dead = weakref.ref(y)
    z = y.sum().item()
    del y
    gc.collect()
    return torch.tensor([z, float(dead() is None)])


Pair = namedtuple("Pair", "first second")


@dataclass
class Output:
    value: Tensor
    more: dict[str, Tensor]


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any, *rest: Tensor, scale: Any = None, **named: Tensor) -> Any:
        x = x["x"] if isinstance(x, dict) else x
        y = self.a(x) + sum(rest, torch.zeros(())) * (scale or 1)
        y = y + sum((self.b(value) for value in named.values()), torch.zeros(()))
        return Output(y, {"pair": Pair(y, y * 2), "list": [y]})


@scenario()
def odd_arguments_and_results() -> Any:
    model, x = Odd(), batch()
    a = model({"x": x, "name": "a", 3: None}, x, x, scale=2)
    b = model(OrderedDict(x=x), other=x)
    c = model(defaultdict(lambda: x))
    return [a.value, a.more["pair"], b.value, c.value], state(model)


class Calls(nn.Module):
    """`forward` is not the only method."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp()
        self.cache: dict[str, Tensor] = {}

    @functools.cached_property
    def scale(self) -> Tensor:
        return torch.full((4,), 2.0) + 1

    @property
    def doubled(self) -> Tensor:
        return self.inner[2].bias * 2

    def encode(self, x: Tensor) -> Tensor:
        if "x" not in self.cache:
            self.cache["x"] = self.inner(x)
        return self.cache["x"] * self.scale + self.doubled

    @torch.no_grad()
    def predict(self, x: Tensor) -> Tensor:
        return self.encode(x).argmax(-1)

    @staticmethod
    def loss(x: Tensor) -> Tensor:
        return x.square().mean()

    @classmethod
    def made(cls) -> Calls:
        return cls()


@scenario()
def methods_properties_and_caches() -> Any:
    model, x = Calls.made(), batch()
    y = model.encode(x)
    model.loss(y).backward()
    return y, model.predict(x), state(model)


@scenario()
def a_forward_that_is_replaced() -> Any:
    model, x = mlp(), batch()
    plain = model[0].forward
    model[0].forward = lambda x: plain(x) * 2
    y = model(x)
    del model[0].forward
    model[1].__class__ = nn.GELU
    model[1].approximate = "none"
    return y, model(x), nn.Linear.forward(model[0], x)


@scenario()
def modules_that_come_and_go() -> Any:
    model, x = nn.ModuleDict({"a": nn.Linear(8, 8)}), batch()
    found = [model["a"](x)]
    for name in "bcd":
        model[name] = nn.Linear(8, 8)
        found.append(model[name](found[-1]))
    del model["b"]
    model.add_module("e", nn.Identity())
    model.register_parameter("w", nn.Parameter(torch.ones(8)))
    model.register_buffer("seen", torch.zeros(8), persistent=False)
    model.seen += found[-1].detach().sum(0)
    found.append(model.e(found[-1]) * model.w)
    found[-1].sum().backward()
    return found, state(model)


@scenario()
def frozen_and_thawed() -> Any:
    model, x = mlp(), batch()
    model[0].requires_grad_(False)
    model(x).sum().backward()
    first = [p.grad for p in model.parameters()]
    model.requires_grad_(True).zero_grad(set_to_none=False)
    model.train().eval()
    model(x).sum().backward()
    return first, state(model)


@scenario()
def recordings_in_each_other() -> Any:
    model, x = mlp(), batch()
    with opscope.record(model) as outer:
        y = model(x)
        with opscope.record(model) as inner:
            z = model(x * 2)
    traced = opscope.trace(model, x)
    counted = opscope.stats(model, x)
    figures = outer.graph.n_nodes, inner.graph.n_nodes, traced.graph.n_nodes, counted.total.macs
    return y, z, torch.tensor(figures)


@scenario()
def grad_modes_in_every_order() -> Any:
    model, x = mlp(), batch()
    with torch.no_grad(), torch.enable_grad():
        a = model(x)
    with torch.inference_mode():
        b = model(x)
        with torch.inference_mode(False):
            c = model(x.clone())
    with torch.set_grad_enabled(False):
        d = model(x)
    torch.set_grad_enabled(False)
    e = model(x)
    torch.set_grad_enabled(True)
    c.sum().backward()
    marks = [float(t.requires_grad) for t in (a, b, c, d, e)]
    return a, b, c, d, e, torch.tensor(marks), state(model)


@scenario()
def defaults_of_the_process() -> Any:
    torch.set_default_dtype(torch.float64)
    try:
        model = mlp()
        y = model(torch.randn(4, 8))
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        shape = mlp()(torch.empty(2, 8)).shape
    threads = torch.get_num_threads()
    return y, torch.tensor(shape), torch.tensor(threads)


@scenario()
def functions_of_functions() -> Any:
    model, x = mlp(), batch()
    half = functools.partial(torch.mul, 0.5)
    chained = functools.reduce(lambda value, part: part(value), [model, half, torch.relu, Tensor.exp], x)
    mapped = list(map(model, x.split(2)))
    return chained, mapped, sorted(mapped[0][0].tolist()) and torch.stack(sorted(mapped[0][0], key=float))


@scenario()
def tensors_as_python_numbers() -> Any:
    x = torch.arange(6.0)
    found = [float(x[2]), int(x[3]), bool(x[1]), x[4].item(), len(x), x.tolist()[5], max(x).item(), sum(x).item()]
    rows = [row * 2 for row in x.reshape(2, 3)]
    a, b = x.reshape(2, 3)
    return torch.tensor([float(number) for number in found]), rows, a, b, torch.tensor(5.0 in x)


@scenario()
def numpy_back_and_forth() -> Any:
    import numpy as np

    x = torch.arange(6.0)
    y = np.tanh(x.numpy())
    z = torch.from_numpy(y) * 2
    w = torch.tensor(np.float32(3.0)) + torch.as_tensor(y)
    v = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(z))
    return z, w, v + 1, torch.frombuffer(y.tobytes(), dtype=torch.float32) * 1
