"""Autograd: checkpoints, functions of one's own, hooks, several derivatives."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from .common import batch, mlp, scenario, state


@scenario()
def checkpointing() -> Any:
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    model, x = nn.Sequential(mlp(), nn.Dropout(0.5), nn.Linear(4, 8), mlp()), batch().requires_grad_()
    a = checkpoint(model, x, use_reentrant=False)
    b = checkpoint(model, x, use_reentrant=True)
    c = checkpoint_sequential(model, 2, x, use_reentrant=False)
    (a + b + c).sum().backward()
    return a, b, c, x.grad, state(model)


@scenario()
def selective_checkpointing() -> Any:
    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        is_kept = op == torch.ops.aten.addmm.default
        return CheckpointPolicy.MUST_SAVE if is_kept else CheckpointPolicy.PREFER_RECOMPUTE

    model, x = mlp(), batch().requires_grad_()
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    checkpoint(model, x, use_reentrant=False, context_fn=contexts).sum().backward()
    return x.grad, state(model)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


@scenario()
def custom_function_twice() -> Any:
    x = batch().requires_grad_()
    (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    first.sum().backward()
    return first, x.grad


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, scale: float) -> Tensor:
        return (x / scale).round() * scale

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, None

    @staticmethod
    def vmap(info: Any, dims: Any, x: Tensor, scale: float) -> Any:
        return Straight.apply(x, scale), dims[0]


@scenario()
def straight_through_under_vmap() -> Any:
    x = batch().requires_grad_()
    y = torch.func.vmap(lambda row: Straight.apply(row, 0.1))(x)
    y.square().sum().backward()
    return y, x.grad


@scenario()
def hooks_of_all_kinds() -> Any:
    model, x, seen = mlp(), batch().requires_grad_(), []
    handles = [
        model[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
        model[0].register_forward_hook(lambda m, args, out: out + 1),
        model[2].register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.5,)),
        model[2].register_full_backward_pre_hook(lambda m, go: (go[0] * 3,)),
        nn.modules.module.register_module_forward_hook(lambda m, args, out: seen.append(out.detach().sum())),
    ]
    x.register_hook(lambda grad: grad.clamp(-1, 1))
    y = model(x)
    y.grad_fn.register_hook(lambda gi, go: seen.append(go[0].sum()))
    y.sum().backward()
    [handle.remove() for handle in handles]
    return x.grad, seen, state(model)


@scenario()
def retained_and_repeated() -> Any:
    model, x = mlp(), batch()
    y = model(x)
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    y.square().sum().backward()
    return y.grad, state(model)


@scenario()
def saved_tensor_hooks() -> Any:
    model, x = mlp(), batch().requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        a = model(x)
    kept: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t.detach().clone()) or len(kept) - 1, lambda i: kept[i]
    ):
        b = model(x).relu()
    (a + b).sum().backward()
    return x.grad, state(model)


@scenario()
def anomaly_and_gradcheck() -> Any:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    with warnings.catch_warnings(), torch.autograd.detect_anomaly():
        warnings.simplefilter("ignore")
        assert torch.autograd.gradcheck(lambda x: x.sin() * x, x)
        assert torch.autograd.gradgradcheck(lambda x: x.sin() * x, x)
        (x.sin() * x).sum().backward()
    return x.grad


@scenario()
def hessians() -> Any:
    x = torch.randn(4)
    f = lambda x: (x**3).sum() + (x[0] * x[1]).sin()  # noqa: E731
    vhp = torch.autograd.functional.vhp(f, x, torch.ones(4))
    return torch.autograd.functional.hessian(f, x), torch.autograd.functional.jacobian(lambda x: x**2, x), vhp


@scenario()
def in_place_in_many_ways() -> Any:
    x = batch().requires_grad_()
    y = x * 1
    y[:, ::2] *= 2
    y.view(-1)[3:7].add_(1)
    y.T[0].mul_(3)
    z = y.clone()
    z[torch.tensor([0, 2])] = y[1]
    z.masked_fill_(z > 2, 0.0)
    z.index_put_((torch.tensor([1, 1]), torch.tensor([2, 2])), torch.tensor([1.0, 2.0]), accumulate=True)
    z.sum().backward()
    return z, x.grad


@scenario()
def multiplied_and_complex() -> Any:
    x = torch.randn(8, 8, dtype=torch.complex64, requires_grad=True)
    y = torch.fft.ifft2(torch.fft.fft2(x.conj()).abs().to(torch.complex64) * x.mH)
    torch.view_as_real(y).square().sum().backward()
    return y, x.grad


@scenario()
def forward_mode() -> Any:
    import torch.autograd.forward_ad as forward

    model, x = mlp(), batch()
    with forward.dual_level():
        out = forward.unpack_dual(model(forward.make_dual(x, torch.ones_like(x))))
    return out.primal, out.tangent


@scenario()
def functions_with_odd_results() -> Any:
    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, how: str) -> Any:
            values, places = x.sort()
            ctx.mark_non_differentiable(places)
            ctx.save_for_backward(places)
            ctx.set_materialize_grads(False)
            return values, places, how

        @staticmethod
        def backward(ctx: Any, grad: Any, *_: Any) -> Any:
            (places,) = ctx.saved_tensors
            return None if grad is None else torch.zeros_like(grad).scatter(-1, places, grad), None

    x = batch().requires_grad_()
    values, places, _ = Split.apply(x, "up")
    values[:, 0].sum().backward()
    return values, places, x.grad


@scenario()
def a_function_that_writes_its_input() -> Any:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * 2

    x = batch().requires_grad_()
    y = Double.apply(x.clone())
    y.sin().sum().backward()
    return y, x.grad


@scenario()
def a_function_that_runs_a_model_inside() -> Any:
    model = mlp()

    class Reversible(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            with torch.no_grad():
                return model(x)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            with torch.enable_grad():
                y = model(x)
            torch.autograd.backward(y, grad)
            return x.grad

    x = batch().requires_grad_()
    Reversible.apply(x).sum().backward()
    return x.grad, state(model)


@scenario()
def gradients_of_parts() -> Any:
    model, x = mlp(), batch().requires_grad_()
    y = model(x)
    (dx,) = torch.autograd.grad(y[:, 0].sum(), x, retain_graph=True)
    (dw,) = torch.autograd.grad(y.sum(), [model[0].weight], retain_graph=True)
    unused = torch.autograd.grad(y.sum(), [model[2].bias, torch.ones(1, requires_grad=True)], allow_unused=True)
    return dx, dw, unused


@scenario()
def many_vectors_at_once() -> Any:
    x = torch.randn(4, requires_grad=True)
    y = x**2 + x.sum()
    (rows,) = torch.autograd.grad(y, x, torch.eye(4), is_grads_batched=True, retain_graph=True)
    return rows, torch.autograd.grad(y, x, torch.ones(4))


@scenario()
def hooks_before_and_after_accumulation() -> Any:
    model, x, seen = mlp(), batch(), []
    handles = [p.register_hook(lambda g: seen.append(g.norm()) or g * 0.5) for p in model.parameters()]
    handles += [
        p.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().clone())) for p in model.parameters()
    ]
    torch.autograd.graph.register_multi_grad_hook(list(model.parameters()), lambda grads: seen.append(len(grads) * x))
    model(x).sum().backward()
    [handle.remove() for handle in handles]
    return seen, state(model)


@scenario()
def nested_checkpoints() -> Any:
    from torch.utils.checkpoint import checkpoint

    inner, outer, x = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3)), nn.Linear(8, 8), batch().requires_grad_()

    def block(x: Tensor) -> Tensor:
        return outer(checkpoint(inner, x, use_reentrant=False)).tanh()

    y = checkpoint(block, x, use_reentrant=False)
    y = checkpoint(block, y, use_reentrant=True)
    y.sum().backward()
    return y, x.grad, state(inner, outer)


@scenario()
def checkpoint_under_autocast() -> Any:
    from torch.utils.checkpoint import checkpoint

    model, x = mlp(), batch().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss = checkpoint(model, x, use_reentrant=False).float().square().mean()
    loss.backward()
    return loss, x.grad, state(model)


@scenario()
def offloaded_by_hooks_and_compressed() -> Any:
    model, x = mlp(), batch()

    def pack(t: Tensor) -> Any:
        return t.half(), t.dtype

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held[0].to(held[1])):
        y = model(x)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        z = (x.clone().requires_grad_() * 2).square()
        z.sum().backward()
    y.sum().backward()
    return y, z, state(model)


@scenario()
def a_leaf_in_two_graphs() -> Any:
    w = nn.Parameter(torch.randn(8, 8))
    a, b = (batch() @ w).sum(), (batch() @ w.T).square().sum()
    a.backward()
    first = w.grad.clone()
    b.backward()
    torch.autograd.backward([w.sum() * 2, w.square().sum()], [torch.tensor(1.0), torch.tensor(0.5)])
    return first, w.grad


@scenario()
def detached_and_joined_again() -> Any:
    first, second, x = nn.Linear(8, 8), nn.Linear(8, 8), batch()
    h = first(x)
    cut = h.detach().requires_grad_()
    second(cut).sum().backward()
    h.backward(cut.grad)
    return cut.grad, state(first, second)
