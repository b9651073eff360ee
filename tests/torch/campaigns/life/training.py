"""Training loops: scaling, averaging, accumulating, several optimizers."""

from __future__ import annotations

import copy
import io
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .common import batch, mlp, scenario, state, trained


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


@scenario()
def clipping_by_every_norm() -> Any:
    model, x, norms = mlp(), batch(), []
    for kind in (1.0, 2.0, float("inf")):
        model.zero_grad()
        model(x).square().sum().backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm_type=kind, foreach=kind == 2.0))
    norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]))
    return norms, state(model)


@scenario()
def groups_of_parameters() -> Any:
    model = mlp()
    optimizer = torch.optim.AdamW(
        [
            {"params": model[0].parameters(), "lr": 0.1, "weight_decay": 0.0},
            {"params": [model[2].weight], "betas": (0.5, 0.9)},
        ]
    )
    optimizer.add_param_group({"params": [model[2].bias], "lr": 1.0})
    return trained(model, lambda: model(batch()).sum(), optimizer, 3)


@scenario()
def plateaus_and_restarts() -> Any:
    model, x = mlp(), batch()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
    one = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    other = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        one.step(loss)
        other.step()
    return loss, torch.tensor(optimizer.param_groups[0]["lr"]), state(model)


@scenario()
def a_scaler_that_skips_a_step() -> Any:
    model, x = mlp(), batch()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=1)
    for factor in (1.0, 1e38):
        optimizer.zero_grad()
        scaler.scale(model(x).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
    return state(model), torch.tensor(scaler.get_scale())


@scenario()
def differentiable_optimizers() -> Any:
    w = torch.randn(4, requires_grad=True)
    rate = torch.tensor(0.1, requires_grad=True)
    inner = w * 1
    inner.retain_grad()
    fast = inner - rate * torch.autograd.grad((inner**2).sum(), inner, create_graph=True)[0]
    (fast**2).sum().backward()
    held = torch.randn(3, requires_grad=True)
    optimizer = torch.optim.SGD([held], lr=torch.tensor(0.1), differentiable=False)
    held.sum().backward()
    optimizer.step()
    return w.grad, rate.grad, held


@scenario()
def an_optimizer_of_ones_own() -> Any:
    class Lion(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.01})

        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for p in group["params"]:
                    held = self.state[p].setdefault("m", torch.zeros_like(p))
                    p.add_((held * 0.9 + p.grad * 0.1).sign_(), alpha=-group["lr"])
                    held.lerp_(p.grad, 0.01)

    model = mlp()
    return trained(model, lambda: model(batch()).sum(), Lion(model.parameters()), 3)


@scenario()
def muon_and_adafactor() -> Any:
    found = []
    for name in ("Muon", "Adafactor"):
        kind = getattr(torch.optim, name, None)
        if kind is not None:
            model = nn.Linear(8, 8, bias=False)
            found += trained(model, lambda m=model: m(batch()).square().sum(), kind(model.parameters()))
    return found


@scenario()
def losses_of_every_kind() -> Any:
    x, y = torch.randn(4, 5, requires_grad=True), torch.tensor([1, 0, 4, 2])
    soft = torch.rand(4, 5)
    logs = x.log_softmax(-1)
    found = [
        F.cross_entropy(x, y, label_smoothing=0.1, weight=torch.rand(5), ignore_index=4),
        F.binary_cross_entropy_with_logits(x, soft, pos_weight=torch.ones(5)),
        F.nll_loss(logs, y),
        F.huber_loss(x, soft),
        F.triplet_margin_loss(x, soft, soft.flip(0)),
        F.cosine_embedding_loss(x, soft, torch.tensor([1, -1, 1, -1])),
        F.ctc_loss(
            torch.randn(6, 2, 5, requires_grad=True).log_softmax(-1),
            torch.tensor([[1, 2], [2, 3]]),
            torch.tensor([6, 5]),
            torch.tensor([2, 1]),
        ),
        F.multi_margin_loss(x, y),
        F.gaussian_nll_loss(x, soft, soft + 0.1),
    ]
    sum(found).backward()
    return found, x.grad


@scenario()
def validation_in_between() -> Any:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4))
    optimizer, best, found = torch.optim.Adam(model.parameters()), None, []
    for _ in range(2):
        model.train()
        optimizer.zero_grad()
        model(batch()).square().mean().backward()
        optimizer.step()
        model.eval()
        with torch.inference_mode():
            score = model(batch()).square().mean()
        if best is None or score < best[0]:
            best = score, {name: value.clone() for name, value in model.state_dict().items()}
        found.append(score.clone())
    model.load_state_dict(best[1])
    return found, state(model)


@scenario()
def truncated_backpropagation() -> Any:
    cell, hidden, found = nn.GRUCell(8, 6), torch.zeros(4, 6), []
    optimizer = torch.optim.SGD(cell.parameters(), 0.1)
    for _ in range(3):
        hidden = hidden.detach()
        for _ in range(2):
            hidden = cell(batch(), hidden)
        optimizer.zero_grad()
        hidden.square().sum().backward()
        optimizer.step()
        found.append(hidden.detach())
    return found, state(cell)


@scenario()
def diffusion_steps() -> Any:
    model, x = nn.Sequential(nn.Linear(9, 16), nn.SiLU(), nn.Linear(16, 8)), batch()
    levels = torch.linspace(0.99, 0.9, 5).cumprod(0)
    t = torch.randint(0, 5, (4,))
    noise = torch.randn_like(x)
    mixed = levels[t, None].sqrt() * x + (1 - levels[t, None]).sqrt() * noise
    found = trained(model, lambda: F.mse_loss(model(torch.cat([mixed, t[:, None] / 5], 1)), noise))
    sample = torch.randn_like(x)
    with torch.no_grad():
        for level in levels.flip(0):
            guess = model(torch.cat([sample, torch.zeros(4, 1)], 1))
            sample = (sample - (1 - level).sqrt() * guess) / level.sqrt()
    return found, sample
