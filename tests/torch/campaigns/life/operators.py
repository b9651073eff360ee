"""Operators of libraries, control flow, attention, distributions, linear algebra."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .common import batch, scenario


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


@functools.cache
def _older_library() -> Any:
    library = torch.library.Library("campaign_old", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.define("bump_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")
    library.impl("bump_", lambda x: x.add_(1), "CPU")
    return library


@scenario()
def an_older_library() -> Any:
    _older_library()
    x = batch()
    y = torch.ops.campaign_old.twice(x)
    torch.ops.campaign_old.bump_(y)
    return y


@scenario()
def lists_of_tensors() -> Any:
    xs = [torch.randn(3, requires_grad=True), torch.randn(5, requires_grad=True)]
    ys = torch._foreach_mul(torch._foreach_add(xs, 1.0), 2.0)
    held = [x.detach().clone() for x in xs]
    torch._foreach_addcmul_(held, held, held, value=0.5)
    sum(y.sum() for y in ys).backward()
    return ys, held, [x.grad for x in xs], torch._foreach_norm(held)


@scenario()
def everything_random() -> Any:
    torch.manual_seed(5)
    x = torch.rand(4, 5)
    found = [torch.bernoulli(x), torch.multinomial(x, 2), torch.normal(x, 0.1), x.clone().exponential_()]
    found += [torch.poisson(x * 4), F.gumbel_softmax(x), F.alpha_dropout(x, 0.3, True), F.rrelu(x - 0.5, training=True)]
    found += [x.clone().random_(0, 9), x.clone().cauchy_(), x.clone().log_normal_(), x.clone().geometric_(0.4)]
    return found, torch.get_rng_state()


@scenario()
def sorted_searched_and_counted() -> Any:
    x = torch.tensor([[3, 1, 2, 3], [0, 0, 9, 1]])
    found: list[Any] = [*x.sort(stable=True), x.argsort(), *x.unique(return_inverse=True, return_counts=True)]
    found += [torch.bincount(x.flatten()), torch.histc(x.float(), 4), torch.searchsorted(torch.arange(5), x)]
    found += [*torch.mode(x), *torch.kthvalue(x, 2), torch.isin(x, torch.tensor([1, 3])), *x.float().quantile(0.5, 0)]
    found += [torch.combinations(torch.arange(4)), torch.cartesian_prod(torch.arange(2), torch.arange(2))]
    return found


@scenario()
def indices_of_every_kind() -> Any:
    x = torch.arange(24.0).reshape(4, 6).requires_grad_()
    rows, mask = torch.tensor([0, 2]), torch.tensor([True, False, True, False])
    found = [x[rows], x[mask], x[rows, rows], x[..., None, 1:3], x[rows[:, None], rows], x[-1], x[:, [1, 2]], x[None]]
    found += [x.take(rows), x.gather(1, rows[None].expand(4, 2)), x.index_select(1, rows), x.masked_select(x > 5)]
    sum(f.sum() for f in found).backward()
    y = x.detach().clone()
    y[mask] = 0
    y[rows, 1] += 5
    y[:, 3] = torch.arange(4.0)
    y.scatter_(1, rows[None].expand(4, 2), 7.0)
    y.put_(rows, torch.ones(2), accumulate=True)
    return found, x.grad, y


@scenario()
def scans_and_maps() -> Any:
    from torch._higher_order_ops.associative_scan import associative_scan

    x = torch.arange(1.0, 6.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        total = associative_scan(lambda a, b: a + b, x, dim=0, combine_mode="generic")
    return total, torch.cumsum(x, 0), torch.logcumsumexp(x, 0), torch.cummax(x, 0)
