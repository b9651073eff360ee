"""What people do with PyTorch besides calling a model: each with and without the recorder.

    python tests/torch/campaigns/scenarios.py --results scenarios.jsonl [--only lora ddp]

A scenario returns whatever must be the same to the bit. Where the products are known by hand, it says how many there
are: the recorder counts as many, or says that it counted a part.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import pickle
import queue
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import torch.nn.functional as F
from fidelity import campaign, difference, said, seed, tensors
from torch import Tensor, nn

import opscope

Scenario = Callable[[], Any]
SCENARIOS: dict[str, tuple[Scenario, int | None]] = {}


def scenario(macs: int | None = None) -> Callable[[Scenario], Scenario]:
    def keep(run: Scenario) -> Scenario:
        SCENARIOS[run.__name__] = run, macs
        return run

    return keep


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))  # 192 products a row


def batch() -> Tensor:
    return torch.randn(4, 8)


def state(*modules: nn.Module) -> list[Any]:
    return [(t.detach().clone(), t.grad) for m in modules for t in [*m.parameters(), *m.buffers()]]


def trained(model: nn.Module, loss: Callable[[], Tensor], optimizer: Any = None, steps: int = 2) -> list[Any]:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return [losses, state(model)]


# -- training loops ------------------------------------------------------------------------------------


@scenario()
def amp_with_scaler() -> Any:
    model, x = mlp(), batch()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return state(model), torch.tensor(scaler.get_scale())


@scenario()
def ema_of_weights() -> Any:
    model, x = mlp(), batch()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        average.update_parameters(model)
    return state(model, average), average(x)


@scenario()
def swa_with_batch_norm() -> Any:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    torch.optim.swa_utils.update_bn([batch(), batch()], average)
    return state(average)


@scenario(4 * 3 * 4 * 192 - 4 * 4 * 128)
def gradient_accumulation() -> Any:
    model, data = mlp(), [batch() for _ in range(4)]
    optimizer = torch.optim.Adam(model.parameters())
    for x in data:
        (model(x).square().mean() / 4).backward()
    optimizer.step()
    return state(model)


@scenario()
def lbfgs() -> Any:
    model, x = mlp(), batch()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return optimizer.step(closure), state(model)


@scenario()
def sharpness_aware() -> Any:
    model, x = mlp(), batch()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(2):
        model(x).square().mean().backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            moves = [p.grad * (0.05 / (norm + 1e-12)) for p in model.parameters()]
            for p, move in zip(model.parameters(), moves, strict=True):
                p.add_(move)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        with torch.no_grad():
            for p, move in zip(model.parameters(), moves, strict=True):
                p.sub_(move)
        optimizer.step()
        optimizer.zero_grad()
    return state(model)


@scenario()
def schedulers() -> Any:
    model, x = mlp(), batch()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    plan = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=2),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5),
        ],
        [2],
    )
    rates = []
    for _ in range(4):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        plan.step()
        rates.append(plan.get_last_lr()[0])
    return torch.tensor(rates, dtype=torch.float64), state(model)


@scenario()
def gan_with_two_optimizers() -> Any:
    generator, critic = nn.Linear(3, 8), nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(), nn.Linear(8, 1))
    first = torch.optim.Adam(generator.parameters(), foreach=True)
    second = torch.optim.Adam(critic.parameters(), fused=True)
    for _ in range(2):
        second.zero_grad()
        fake = generator(torch.randn(4, 3))
        loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(batch())).mean()
        loss.backward()
        second.step()
        first.zero_grad()
        F.softplus(-critic(fake)).mean().backward()
        first.step()
    return state(generator, critic)


@scenario()
def wasserstein_penalty() -> Any:
    critic, x = mlp(), batch().requires_grad_()
    (gradient,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    (gradient.norm(2, 1) - 1).square().mean().backward()
    return state(critic), x.grad


@scenario()
def policy_gradient() -> Any:
    policy, place = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)), torch.zeros(4)
    optimizer = torch.optim.RMSprop(policy.parameters())
    logs = []
    for _ in range(6):
        choice = torch.distributions.Categorical(logits=policy(place))
        action = choice.sample()
        logs.append(choice.log_prob(action))
        place = place + (action.float() - 0.5) * torch.randn(4)
    rewards = torch.arange(6.0).flip(0)
    (-(torch.stack(logs) * rewards).sum()).backward()
    optimizer.step()
    return state(policy), place


@scenario()
def q_learning() -> Any:
    online = mlp()
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), amsgrad=True)
    for _ in range(3):
        before, after, action = batch(), batch(), torch.randint(0, 4, (4, 1))
        wanted = torch.randn(4) + 0.9 * target(after).max(1).values
        loss = F.smooth_l1_loss(online(before).gather(1, action)[:, 0], wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(online.parameters(), 1.0)
        optimizer.step()
        for a, b in zip(target.parameters(), online.parameters(), strict=True):
            a.data.lerp_(b.data, 0.05)
    return state(online, target)


@scenario()
def contrastive() -> Any:
    one, other = mlp(), mlp()
    scale = nn.Parameter(torch.tensor(2.0))
    a, b = F.normalize(one(batch()), dim=-1), F.normalize(other(batch()), dim=-1)
    scores = scale.exp() * a @ b.T
    labels = torch.arange(4)
    loss = (F.cross_entropy(scores, labels) + F.cross_entropy(scores.T, labels)) / 2
    loss.backward()
    return loss, state(one, other), scale.grad


@scenario()
def knowledge_distillation() -> Any:
    teacher, student, x = mlp().eval(), mlp(), batch()
    with torch.inference_mode():
        wanted = teacher(x)
    loss = F.kl_div(F.log_softmax(student(x) / 2, -1), F.softmax(wanted.clone() / 2, -1), reduction="batchmean")
    loss.backward()
    return loss, state(student)


@scenario()
def data_loader_with_workers() -> Any:
    data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(4, 8), torch.arange(4))
    loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2, shuffle=True)
    model = mlp()
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
    return state(model)


@scenario()
def optimizer_hooks_and_fused_backward() -> Any:
    model, x = mlp(), batch()
    optimizers = {p: torch.optim.SGD([p], 0.1) for p in model.parameters()}

    def update(p: Tensor) -> None:
        optimizers[p].step()
        optimizers[p].zero_grad()

    handles = [p.register_post_accumulate_grad_hook(update) for p in model.parameters()]
    model(x).square().mean().backward()
    [handle.remove() for handle in handles]
    return state(model)


@scenario()
def many_optimizers() -> Any:
    found = []
    for kind in (torch.optim.Adadelta, torch.optim.Adagrad, torch.optim.Adamax, torch.optim.ASGD, torch.optim.NAdam):
        model = mlp()
        found += trained(model, lambda m=model: m(batch()).sum(), kind(model.parameters()))
    for kind in (torch.optim.RAdam, torch.optim.Rprop):
        model = mlp()
        found += trained(model, lambda m=model: m(batch()).sum(), kind(model.parameters(), foreach=False))
    return found


@scenario()
def loading_a_state() -> Any:
    model, x, file = mlp(), batch(), io.BytesIO()
    optimizer = torch.optim.Adam(model.parameters())
    model(x).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    again = mlp()
    other = torch.optim.Adam(again.parameters())
    held = torch.load(file, weights_only=True)
    again.load_state_dict(held["model"], assign=True)
    other.load_state_dict(held["optimizer"])
    return trained(again, lambda: again(x).sum(), other)


# -- autograd -----------------------------------------------------------------------------------------


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


# -- torch.func ---------------------------------------------------------------------------------------


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


# -- modules -----------------------------------------------------------------------------------------


@scenario(4 * 8 * 16 + 4 * 16 * 8)
def tied_weights() -> Any:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up = nn.Linear(8, 16, bias=False), nn.Linear(16, 8, bias=False)
            self.up.weight = nn.Parameter(self.down.weight.detach().T.clone())
            self.last = nn.Linear(8, 16, bias=False)
            self.last.weight = self.down.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.up(self.down(x)) + 0 * self.last.weight.sum()

    with torch.no_grad():
        return Tied()(batch())


@scenario()
def lora() -> Any:
    class Lora(nn.Module):
        def __init__(self, base: nn.Linear) -> None:
            super().__init__()
            self.base = base.requires_grad_(False)
            self.a = nn.Parameter(torch.randn(2, base.in_features))
            self.b = nn.Parameter(torch.zeros(base.out_features, 2))

        def forward(self, x: Tensor) -> Tensor:
            return self.base(x) + x @ self.a.T @ self.b.T

    model = nn.Sequential(Lora(nn.Linear(8, 16)), nn.GELU(), Lora(nn.Linear(16, 4)))
    found = trained(model, lambda: model(batch()).square().mean(), torch.optim.Adam(model.parameters()))
    with torch.no_grad():  # merged
        model[0].base.weight += model[0].b @ model[0].a
    return found, state(model)


@scenario()
def parametrizations() -> Any:
    from torch.nn.utils import parametrizations as p

    model = nn.Sequential(
        p.orthogonal(nn.Linear(8, 8)), p.spectral_norm(nn.Linear(8, 8)), p.weight_norm(nn.Linear(8, 8))
    )
    found = trained(model, lambda: model(batch()).sum())
    with nn.utils.parametrize.cached():
        found.append((model(batch()), model(batch())))
    nn.utils.parametrize.remove_parametrizations(model[2], "weight")
    return found, model(batch())


@scenario()
def old_weight_norm_and_spectral_norm() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Sequential(nn.utils.weight_norm(nn.Linear(8, 8)), nn.utils.spectral_norm(nn.Linear(8, 4)))
    return trained(model, lambda: model(batch()).sum())


@scenario()
def pruning() -> Any:
    from torch.nn.utils import prune

    model = mlp()
    prune.l1_unstructured(model[0], "weight", 0.5)
    prune.ln_structured(model[2], "weight", 0.5, 2, 0)
    prune.global_unstructured([(model[0], "bias"), (model[2], "bias")], prune.L1Unstructured, amount=0.2)
    found = trained(model, lambda: model(batch()).sum())
    prune.remove(model[0], "weight")
    return found, state(model)


@scenario()
def lazy_modules() -> Any:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    return trained(model, lambda: model(torch.ones(2, 3, 6, 6)).sum(), torch.optim.SGD([torch.zeros(1)], 0.1))


@scenario()
def recurrent() -> Any:
    x, lengths = torch.randn(3, 5, 8), torch.tensor([5, 3, 1])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    found: list[Any] = []
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        model = kind(8, 6, 2, batch_first=True, bidirectional=True, dropout=0.3)
        out, last = model(packed)
        out.data.sum().backward()
        found += [out.data, last, state(model)]
    cell, hidden = nn.LSTMCell(8, 6), (torch.zeros(3, 6), torch.zeros(3, 6))
    for step in range(4):
        hidden = cell(x[:, step], hidden)
    hidden[0].sum().backward()
    return found, hidden, state(cell)


@scenario()
def transformer_fast_path() -> Any:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x, mask = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model(x, src_key_padding_mask=mask), model(x)


@scenario()
def whole_transformer() -> Any:
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    x, y = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    return trained(model, lambda: model(x, y, tgt_mask=mask, tgt_is_causal=True).sum())


@scenario()
def channels_last() -> Any:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 1)).to(
        memory_format=torch.channels_last
    )
    x = torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last)
    return model(x), trained(model, lambda: model(x).sum())


@scenario()
def embedding_bags() -> Any:
    sparse = nn.Embedding(10, 4, sparse=True)
    bag = nn.EmbeddingBag(10, 4, mode="mean", sparse=True)
    optimizer = torch.optim.SparseAdam([*sparse.parameters(), *bag.parameters()])
    ids = torch.tensor([1, 2, 2, 5])
    (sparse(ids).sum() + bag(ids, torch.tensor([0, 2])).sum()).backward()
    optimizer.step()
    clipped = nn.Embedding(10, 4, max_norm=0.1)
    return state(sparse, bag), clipped(ids), clipped.weight.detach().clone()


@scenario()
def quantization_aware() -> Any:
    import torch.ao.quantization as q

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
            self.conv, self.relu, self.fc = nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Linear(32, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.dequant(self.fc(self.relu(self.conv(self.quant(x))).flatten(1)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Net().train()
        model.qconfig = q.get_default_qat_qconfig("fbgemm")
        q.prepare_qat(model, inplace=True)
        found = trained(model, lambda: model(torch.randn(2, 1, 6, 6)).sum())
        done = q.convert(model.eval())
        return found, done(torch.randn(2, 1, 6, 6))


@scenario()
def dynamic_quantization() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.ao.quantization.quantize_dynamic(mlp(), {nn.Linear}, dtype=torch.qint8)
        return model(batch())


@scenario(4 * 192)
def scripted_inside() -> Any:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.jit.script(mlp())

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x).relu()

    with torch.no_grad():
        return Outer()(batch())


@scenario()
def traced_and_frozen() -> Any:
    model, x = mlp().eval(), batch()
    traced = torch.jit.trace(model, x)
    frozen = torch.jit.freeze(torch.jit.script(model))
    return traced(x), frozen(x), torch.jit.optimize_for_inference(torch.jit.script(mlp().eval()))(x)


@scenario()
def exported_inside() -> Any:
    model, x = mlp(), batch()
    program = torch.export.export(model, (x,))
    return program.module()(x), torch.fx.symbolic_trace(model)(x)


@scenario()
def compiled_inside() -> Any:
    model, x = mlp(), batch()
    fast = nn.Sequential(torch.compile(model, backend="eager"), nn.Linear(4, 2))
    return trained(fast, lambda: fast(x).sum())


@scenario()
def compiled_around() -> Any:
    model, x = mlp(), batch()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def step(x: Tensor) -> Tensor:
        return model(x).square().mean()

    step(x).backward()
    return state(model)


@scenario()
def flex_attention_with_mask() -> Any:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q = torch.randn(1, 2, 32, 16)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 32, 32, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flex_attention(q, q, q, block_mask=mask), flex_attention(q, q, q, lambda s, b, h, i, j: s + i - j)


@scenario()
def pickled_and_copied() -> Any:
    model, x = mlp(), batch()
    again = pickle.loads(pickle.dumps(model))
    twin = copy.deepcopy(again)
    return again(x), trained(twin, lambda: twin(x).sum())


@scenario()
def moved_and_cast() -> Any:
    model, x = mlp(), batch()
    y = model.double()(x.double())
    z = model.bfloat16()(x.bfloat16())
    shape = model.to("meta")(x.to("meta").bfloat16()).shape
    return y, z, torch.tensor(shape)


@scenario()
def a_generator_of_layers() -> Any:
    class Stream(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

        def forward(self, x: Tensor) -> Any:
            for part in self.parts:
                x = part(x).tanh()
                yield x

    return list(Stream()(batch()))


@scenario()
def exceptions_that_are_caught() -> Any:
    model, x = mlp(), batch()
    with contextlib.suppress(RuntimeError):
        model(torch.randn(3, 7))
    with contextlib.suppress(RuntimeError):
        y = x.clone().requires_grad_()
        z = y.exp()
        z.add_(1)
        z.sum().backward()
    return trained(model, lambda: model(x).sum())


# -- kinds of tensors --------------------------------------------------------------------------------


@scenario()
def nested_tensors() -> Any:
    model = mlp()
    strided = torch.nested.as_nested_tensor([torch.randn(2, 8), torch.randn(5, 8)])
    jagged = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(5, 8)], layout=torch.jagged)
    a, b = model(strided), model(jagged)
    (torch.nested.to_padded_tensor(a, 0.0).sum() + b.values().sum()).backward()
    return list(a.unbind()), b.values(), state(model)


@scenario()
def sparse_tensors() -> Any:
    dense = (torch.rand(6, 6) > 0.7).float().requires_grad_()
    coo = dense.to_sparse()
    y = torch.sparse.mm(coo, torch.ones(6, 2)) + torch.sparse.softmax(coo, 1).to_dense()[:, :2]
    y.sum().backward()
    csr = dense.detach().to_sparse_csr()
    return y, dense.grad, csr @ torch.ones(6, 3), (csr * 2).to_dense()


@scenario()
def masked_tensors() -> Any:
    from torch.masked import masked_tensor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = masked_tensor(torch.arange(6.0), torch.tensor([True, False] * 3))
        return (x * 2 + 1).to_tensor(0.0), x.sum().get_data()


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


@scenario()
def a_subclass_by_torch_function() -> Any:
    x = batch().as_subclass(Logged)
    model = mlp()
    y = model(x)
    y.sum().backward()
    return torch.Tensor(y.detach()), state(model)


@scenario()
def two_tensors() -> Any:
    from torch.testing._internal.two_tensor import TwoTensor

    model, x = mlp(), TwoTensor(batch(), batch())
    y = model(x)
    return y.a, y.b


@scenario()
def fake_and_meta() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model = mlp()
        shape = model(torch.empty(4, 8)).shape
    return torch.tensor(shape), torch.tensor(mlp().to("meta")(torch.empty(3, 8, device="meta")).shape)


@scenario()
def other_modes_around() -> Any:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    class Doubles(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            return out * 2 if func is torch.ops.aten.relu.default else out

    class Renames(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return (torch.sin if func is torch.cos else func)(*args, **(kwargs or {}))

    model, x = mlp(), batch()
    with Doubles(), Renames(), FlopCounterMode(display=False) as counter:
        y = model(x) + x.sum().cos()
    with torch.device("cpu"), torch.utils._python_dispatch._disable_current_modes():
        z = model(x)
    return y, z, torch.tensor(counter.get_total_flops())


@scenario()
def deterministic_and_seeded() -> Any:
    torch.use_deterministic_algorithms(True)
    try:
        generator = torch.Generator().manual_seed(3)
        with torch.random.fork_rng():
            torch.manual_seed(1)
            a = torch.rand(3)
        b = torch.rand(3, generator=generator)
        c = torch.zeros(4).index_add(0, torch.tensor([0, 0, 1]), torch.randn(3))
        return a, b, c, torch.randperm(5), torch.get_rng_state()
    finally:
        torch.use_deterministic_algorithms(False)


@scenario()
def storage_tricks() -> Any:
    x = torch.arange(12.0)
    y = x.as_strided((3, 3), (1, 2))
    y += 1
    z = torch.empty(0)
    z.set_(x.untyped_storage(), 2, (4,), (2,))
    z.mul_(3)
    x.resize_(20)[12:] = 7
    array = x.numpy()
    array[0] = 42
    shared = torch.from_numpy(array[:4])
    shared.neg_()
    w = x.view(torch.int32).bitwise_and(255)
    x.data = x.data + 1
    return x, y, z, w, torch.tensor(x.tolist()), x.storage_offset() and x


@scenario()
def numbers_decide() -> Any:
    model, x = mlp(), batch()
    for _ in range(5):
        y = model(x)
        if y.sum() > 0 and y.isfinite().all():
            x = x - 0.5 * y.max().item()
        x = x[: max(1, int(y.argmax()) % 4 + 1)]
    return x, torch.unique(y.round(), return_counts=True), y.nonzero()


# -- threads, processes, ends of the recording -----------------------------------------------------------


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


# -- libraries' own operators ------------------------------------------------------------------------------


@functools.cache
def _library() -> None:
    @torch.library.custom_op("campaign::scaled", mutates_args=())
    def scaled(x: Tensor, by: float) -> Tensor:
        return x * by

    scaled.register_autograd(lambda ctx, grad: (grad * ctx.by, None), setup_context=_keep_scale)

    @torch.library.custom_op("campaign::fill", mutates_args=("x",))
    def fill(x: Tensor) -> None:
        x.fill_(3)


def _keep_scale(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.by = inputs[1]


@scenario()
def custom_operators() -> Any:
    _library()
    x = batch().requires_grad_()
    y = torch.ops.campaign.scaled(x, 2.0)
    y.sum().backward()
    z = torch.zeros(3)
    torch.ops.campaign.fill(z)
    return y, x.grad, z


@scenario()
def control_flow() -> Any:
    x = torch.randn(4)
    a = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    b = torch._higher_order_ops.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))
    return a, b


@scenario()
def attention_backends() -> Any:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.randn(2, 2, 6, 8, requires_grad=True) for _ in range(3))
    found = []
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.0)
            out.sum().backward()
            found.append(out)
    return found, q.grad, k.grad, v.grad


@scenario()
def distributions() -> Any:
    import torch.distributions as d

    mean, scale = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    q = d.Independent(d.Normal(mean, scale), 1)
    sample = q.rsample((5,))
    loss = -(d.StudentT(3.0).log_prob(sample).sum(-1) - q.log_prob(sample)).mean()
    loss = loss + d.kl_divergence(q, d.Independent(d.Normal(torch.zeros(3), torch.ones(3)), 1))
    loss = loss + d.Gamma(scale, scale).rsample().sum() + d.Dirichlet(scale).rsample()[0]
    mixed = d.TransformedDistribution(q, [d.transforms.TanhTransform()]).rsample()
    (loss + mixed.sum()).backward()
    return loss, mean.grad, scale.grad


@scenario()
def linear_algebra() -> Any:
    a = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    spd = a @ a.T + 4 * torch.eye(4)
    chol = torch.linalg.cholesky(spd)
    found = [torch.linalg.solve(spd, a), torch.linalg.eigh(spd).eigenvalues, torch.linalg.qr(a).Q.abs()]
    found += [torch.linalg.svdvals(a), torch.logdet(spd), torch.einsum("ij,jk,kl->il", a, spd, chol)]
    sum(f.sum() for f in found).backward()
    return found, a.grad


def check(name: str) -> dict[str, Any]:
    run, macs = SCENARIOS[name]

    def fresh() -> list[Tensor | None]:
        seed()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tensors(run())

    plain, again = fresh(), fresh()
    with opscope.record() as cap:
        recorded = fresh()
    after = fresh()
    faults: list[str] = []
    if not difference(plain, again) and (where := difference(recorded, plain)):
        faults.append(f"not the same to the bit: {where}")
    if not difference(plain, again) and (where := difference(after, plain)):
        faults.append(f"not the same afterwards: {where}")
    told = said(cap)
    faults += [f"{key}: {told[key]}" for key in ("silent", "misled", "problems", "before") if told[key]]
    stats = cap.stats()
    if macs is not None and stats.total.macs != macs and not stats.total.at_least:
        faults.append(f"{stats.total.macs} products instead of {macs}")
    cap.stats().to_dict()
    str(stats)
    row = {
        **{key: told[key] for key in ("nodes", "backward", "linked", "unnamed", "gaps")},
        "compared": int(not difference(plain, again)),
        "marks": told["warnings"],
        "macs": stats.total.macs,
        "at least": int(stats.total.at_least),
        "unknown": stats.unknown_ops,
    }
    return {"verdict": "faithful" if not faults else "; ".join(faults)[:400], **row}


if __name__ == "__main__":
    campaign(__doc__, lambda: list(SCENARIOS), check, seconds=200)
