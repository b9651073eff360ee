"""torch.func: gradients of functions, ensembles, other modes of differentiation."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .common import batch, mlp, scenario, state


@scenario()
def per_sample_gradients() -> Any:
    model, x = mlp(), batch()
    held = {name: p.detach() for name, p in model.named_parameters()}

    def loss(held: Any, row: Tensor) -> Tensor:
        return torch.func.functional_call(model, held, (row[None],)).square().sum()

    return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(held, x)


@scenario()
def ensemble_by_vmap() -> Any:
    models, x = [mlp() for _ in range(3)], batch()
    parameters, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")
    run = lambda p, b, x: torch.func.functional_call(base, (p, b), (x,))  # noqa: E731
    return torch.func.vmap(run, in_dims=(0, 0, None))(parameters, buffers, x)


@scenario()
def model_agnostic_meta_learning() -> Any:
    model = mlp()
    held = dict(model.named_parameters())
    x, y = batch(), batch()
    inner = torch.func.functional_call(model, held, (x,)).square().mean()
    grads = torch.autograd.grad(inner, tuple(held.values()), create_graph=True)
    fast = {name: p - 0.1 * g for (name, p), g in zip(held.items(), grads, strict=True)}
    torch.func.functional_call(model, fast, (y,)).square().mean().backward()
    return state(model)


@scenario()
def jvp_and_linearize() -> Any:
    model, x = mlp(), batch()
    out, tangent = torch.func.jvp(model, (x,), (torch.ones_like(x),))
    value, linear = torch.func.linearize(model, x)
    pulled, pull = torch.func.vjp(model, x)
    return out, tangent, value, linear(torch.ones_like(x)), pulled, pull(torch.ones_like(pulled))


@scenario()
def random_under_vmap() -> Any:
    x = batch()
    drop = lambda row: F.dropout(row, 0.5)  # noqa: E731
    return torch.func.vmap(drop, randomness="different")(x), torch.func.vmap(drop, randomness="same")(x)


@scenario()
def jacobians_of_every_kind() -> Any:
    f, x = lambda x: x.sin() * x.sum(), torch.randn(4)
    return torch.func.jacrev(f)(x), torch.func.jacfwd(f)(x), torch.func.hessian(lambda x: f(x).sum())(x)


@scenario()
def vmap_in_vmap() -> Any:
    x, y = torch.randn(3, 8), torch.randn(5, 8)
    each = torch.func.vmap(torch.func.vmap(torch.dot, in_dims=(None, 0)), in_dims=(0, None))
    chunked = torch.func.vmap(lambda row: row.softmax(-1), chunk_size=2)
    return each(x, y), chunked(x), torch.func.vmap(lambda row: row[:, None] * row)(x)


@scenario()
def gradients_with_side_results() -> Any:
    model, x = mlp(), batch()
    held = dict(model.named_parameters())

    def loss(held: Any, x: Tensor) -> Any:
        y = torch.func.functional_call(model, held, (x,))
        return y.square().mean(), y

    grads, (value, y) = torch.func.grad_and_value(loss, has_aux=True)(held, x)
    return grads, value, y


@scenario()
def functional_calls_with_swapped_weights() -> Any:
    model, x = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)), batch()
    mine = {"0.weight": torch.zeros(8, 8, requires_grad=True)}
    y = torch.func.functional_call(model, mine, (x,), strict=False)
    y.sum().backward()
    tied = torch.func.functional_call(model, (mine, {"1.running_mean": torch.ones(8)}), (x,))
    return y, tied, mine["0.weight"].grad, state(model)


@scenario()
def functionalized() -> Any:
    def f(x: Tensor) -> Tensor:
        y = x.clone()
        y[0] = 3
        y.view(-1)[2:].mul_(2)
        return y

    return torch.func.functionalize(f)(batch()), f(batch())


@scenario()
def traced_by_make_fx() -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    model, x = mlp(), batch()
    graph = make_fx(lambda x: model(x).relu())(x)
    return graph(x)
