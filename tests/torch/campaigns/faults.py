"""Planted faults that are in no test: is the first origin the right operator, module, phase, line and kind?

    python tests/torch/campaigns/faults.py [NAME ...]

Each fault is a model whose line with `# here` makes the first number that is not finite (or whose gradient does), and
what must be said of it. Prints a line for each fault that is missed, and how many were found.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import opscope
from opscope.analysis.origins import Origin

LINES = Path(__file__).read_text().splitlines()


class Fault(NamedTuple):
    run: Callable[[], opscope.Capture]
    op: str  # how the operator's name begins; of gradients the forward operator's
    phase: str
    kind: str
    marks: tuple[int, int]  # the lines of the function that plants it


FAULTS: dict[str, Fault] = {}


def fault(op: str, phase: str, kind: str) -> Callable[[Callable[[], opscope.Capture]], Callable[[], opscope.Capture]]:
    def add(run: Callable[[], opscope.Capture]) -> Callable[[], opscope.Capture]:
        first = run.__code__.co_firstlineno
        last = next(
            (i for i in range(first, len(LINES)) if LINES[i].startswith(("@fault", "def ", "# --"))), len(LINES)
        )
        FAULTS[run.__name__] = Fault(run, op, phase, kind, (first, last))
        return run

    return add


class Inner(nn.Module):
    def __init__(self, then: Callable[..., Tensor]) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.then = then

    def forward(self, x: Tensor) -> Tensor:
        return self.then(self.linear(x))


class Model(nn.Module):
    """The fault lies in the module `inner`; before and after it all is well."""

    def __init__(self, then: Callable[..., Tensor]) -> None:
        super().__init__()
        self.before, self.inner, self.after = nn.Linear(4, 4), Inner(then), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(F.relu(self.before(x)))
        return self.after(y.float().expand(x.shape[0], 4) if y.shape != x.shape else y.float())


def step(
    model: nn.Module,
    optimizer: Any = None,
    x: Tensor | None = None,
    between: Callable[[], Any] = lambda: None,
    steps: int = 1,
    loss: Callable[[Tensor], Tensor] = lambda y: y.square().mean(),
) -> opscope.Capture:
    torch.manual_seed(1)
    with opscope.record(model, optimizer=optimizer, values="stats") as capture:
        for _ in range(steps):
            loss(model(torch.randn(3, 4) if x is None else x)).backward()
            between()
            if optimizer is not None:
                optimizer.step()
    return capture


def inner(then: Callable[..., Tensor], **options: Any) -> opscope.Capture:
    torch.manual_seed(0)
    return step(Model(then), **options)


# -- forward ------------------------------------------------------------------------------------------


@fault("aten.div", "forward", "nan")
def normalisation_of_zeros() -> opscope.Capture:
    return inner(lambda y: (z := y * 0) / z.norm(dim=-1, keepdim=True))  # here


@fault("aten.log", "forward", "inf")
def log_of_zero_in_kl() -> opscope.Capture:
    def kl(y: Tensor) -> Tensor:
        p = F.one_hot(y.argmax(-1), 4).float()
        q = y.softmax(-1)
        return p * (p.log() - q.log()) + y  # here

    return inner(kl)


@fault("aten.exp", "forward", "inf")
def own_softplus() -> opscope.Capture:
    def softplus(y: Tensor) -> Tensor:
        return torch.log(1 + torch.exp(y * 1e4))  # here

    return inner(softplus)


@fault("aten.mul", "forward", "inf")
def scaled_loss_in_half() -> opscope.Capture:
    return inner(lambda y: (y.abs() + 1).half() * 65536.0)  # here


@fault("aten._softmax", "forward", "nan")
def one_row_fully_masked() -> opscope.Capture:
    def attend(y: Tensor) -> Tensor:
        mask = torch.ones(3, 4).tril(-1).bool()
        scores = y.masked_fill(~mask, float("-inf"))
        return scores.softmax(-1)  # here

    return inner(attend)


@fault("aten.sub", "forward", "nan")
def logsumexp_by_hand_of_minus_inf() -> opscope.Capture:
    def lse(y: Tensor) -> Tensor:
        z = torch.full_like(y, -torch.inf)
        top = z.max(-1, keepdim=True).values
        return (z - top).exp().sum(-1, keepdim=True).log() + top + y  # here

    return inner(lse)


@fault("aten.var", "forward", "nan")
def variance_of_one_element() -> opscope.Capture:
    return inner(lambda y: y / (y[:1].var(0, keepdim=True) + 1e-5))  # here


@fault("aten.div", "forward", "nan")
def mean_over_an_empty_selection() -> opscope.Capture:
    def mean(y: Tensor) -> Tensor:
        mask = (y > 1e6).float()
        return y + (y * mask).sum() / mask.sum()  # here

    return inner(mean)


@fault("aten.mean", "forward", "nan")
def mean_of_nothing() -> opscope.Capture:
    return inner(lambda y: y + y[y > 1e6].mean())  # here


@fault("aten.reciprocal", "forward", "inf")
def one_over_epsilon_in_half() -> opscope.Capture:
    return inner(lambda y: y.half() * (y.half() * 0 + 1e-8).reciprocal())  # here


@fault("aten.cumprod", "forward", "inf")
def cumulative_product() -> opscope.Capture:
    return inner(lambda y: ((y.abs() + 10) * 1e12).cumprod(-1))  # here


@fault("aten.sum", "forward", "inf")
def sum_in_half_overflows() -> opscope.Capture:
    return inner(lambda y: (y.half() * 0 + 6e4).sum(-1, keepdim=True))  # here


@fault("aten.bmm", "forward", "inf")
def product_in_half_overflows() -> opscope.Capture:
    def attend(y: Tensor) -> Tensor:
        q = (y.abs() + 300).half()[None]
        return torch.bmm(q, q.transpose(1, 2))[0, :, :1]  # here

    return inner(attend)


@fault("aten.div", "forward", "inf")
def quantization_scale_of_zero() -> opscope.Capture:
    def quantized(y: Tensor) -> Tensor:
        z = y * 0
        scale = z.abs().amax(-1, keepdim=True) / 127
        return ((z + 1) / scale).round().clamp(-127, 127)  # here

    return inner(quantized)


@fault("aten.linalg_inv_ex", "forward", "nan")
def inverse_of_a_singular_matrix() -> opscope.Capture:
    def inverted(y: Tensor) -> Tensor:
        return torch.linalg.inv_ex(y[:3, :3] * 0).inverse.sum() + y  # here

    return inner(inverted)


@fault("aten.atanh", "forward", "inf")
def atanh_at_one() -> opscope.Capture:
    return inner(lambda y: torch.atanh(torch.tanh(y * 1e4)))  # here


@fault("aten.erfinv", "forward", "inf")
def quantile_at_the_end() -> opscope.Capture:
    return inner(lambda y: torch.erfinv(torch.sign(y)))  # here


@fault("aten.lgamma", "forward", "inf")
def lgamma_at_a_pole() -> opscope.Capture:
    return inner(lambda y: torch.lgamma(-torch.floor(y.abs())))  # here


@fault("aten.remainder", "forward", "nan")
def remainder_by_zero() -> opscope.Capture:
    return inner(lambda y: torch.remainder(y, y * 0))  # here


@fault("aten.logit", "forward", "inf")
def logit_of_a_saturated_sigmoid() -> opscope.Capture:
    return inner(lambda y: torch.logit(torch.sigmoid(y * 1e4)))  # here


@fault("aten.mul", "forward", "inf")
def bf16_accumulation() -> opscope.Capture:
    def powers(y: Tensor) -> Tensor:
        z = (y.abs() + 10).bfloat16()
        for _ in range(7):
            z = z * z  # here
        return z

    return inner(powers)


@fault("aten.div", "forward", "nan")
def count_of_none() -> opscope.Capture:
    def averaged(y: Tensor) -> Tensor:
        count = (y > 1e6).sum(-1, keepdim=True)
        return y * 0 / count  # here

    return inner(averaged)


# -- what comes with it -------------------------------------------------------------------------------


@fault("input", "forward", "nan")
def nan_in_the_data() -> opscope.Capture:
    x = torch.randn(3, 4)
    x[1, 2] = torch.nan
    return inner(lambda y: y, x=x)


@fault("input", "forward", "inf")
def inf_from_a_data_loader() -> opscope.Capture:
    torch.manual_seed(0)
    model = Model(lambda y: y)
    rows = torch.randn(6, 4)
    rows[4] = torch.inf
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), batch_size=3)
    with opscope.record(model, values="stats") as capture:
        for (x,) in loader:
            model(x).sum().backward()
    return capture


@fault("parameter", "forward", "nan")
def nan_in_a_parameter_at_the_start() -> opscope.Capture:
    torch.manual_seed(0)
    model = Model(lambda y: y)
    model.inner.linear.weight.data[2, 2] = torch.nan
    return step(model, torch.optim.SGD(model.parameters(), 0.1))


@fault("parameter", "forward", "inf")
def embedding_row_of_inf() -> opscope.Capture:
    torch.manual_seed(0)
    table = nn.Embedding(5, 4)
    table.weight.data[3] = torch.inf
    model = nn.Sequential(table, nn.Linear(4, 4))
    return step(model, x=torch.tensor([1, 3, 2]))


@fault("buffer", "forward", "inf")
def running_variance_in_a_buffer() -> opscope.Capture:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
    model[1].running_var[1] = torch.inf
    model[1].running_mean[1] = torch.inf
    return step(model)


# -- backward -----------------------------------------------------------------------------------------


@fault("aten.sqrt", "backward", "inf")
def deviation_of_equal_numbers() -> opscope.Capture:
    return inner(lambda y: y / ((y - y.detach()).square().mean(-1, keepdim=True).sqrt() + 1.0))  # here


@fault("aten.sqrt", "backward", "inf")
def distance_by_root() -> opscope.Capture:
    return inner(lambda y: (y - y.detach()).square().sum(-1, keepdim=True).sqrt())  # here


@fault("aten.acosh", "backward", "inf")
def hyperbolic_distance_of_equal_points() -> opscope.Capture:
    return inner(lambda y: torch.acosh((y - y.detach()) + 1.0))  # here


@fault("aten.pow", "backward", "inf")
def zero_to_the_zero() -> opscope.Capture:
    def raised(y: Tensor) -> Tensor:
        e = y * 0
        return (y.abs() * 0 - 0.0) ** (e - 1 + 1 + 0.25) + y  # here

    return inner(raised)


@fault("aten.log", "backward", "nan")
def where_lets_the_gradient_through() -> opscope.Capture:
    def safe(y: Tensor) -> Tensor:
        z = F.relu(y)
        return torch.where(z > 0, z.log(), torch.zeros_like(z))  # here

    return inner(safe)


@fault("aten.div", "backward", "nan")
def where_after_a_division() -> opscope.Capture:
    def safe(y: Tensor) -> Tensor:
        z = F.relu(y)
        return torch.where(z > 0, y / z, y)  # here

    return inner(safe)


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient / torch.zeros(())


@fault("", "backward", "")
def own_function() -> opscope.Capture:
    return inner(lambda y: Halved.apply(y))


@fault("aten.sqrt", "backward", "")
def checkpointed_root() -> opscope.Capture:
    def root(y: Tensor) -> Tensor:
        return F.relu(y - 100).sqrt()  # here

    return inner(lambda y: checkpoint(root, y, use_reentrant=False))


@fault("", "backward", "")
def second_order() -> opscope.Capture:
    torch.manual_seed(0)
    model = Model(lambda y: y)
    x = torch.zeros(3, 4, requires_grad=True)
    with opscope.record(model, values="stats") as capture:
        (g,) = torch.autograd.grad(model(x * 0).sum() + x.abs().pow(1.5).sum(), x, create_graph=True)
        (g.norm(dim=-1) - 1).square().mean().backward()  # here
    return capture


@fault("aten.sqrt", "backward", "inf")
def root_of_a_complex_magnitude() -> opscope.Capture:
    return inner(lambda y: torch.complex(y * 0, y * 0).abs().sqrt())  # here


@fault("", "backward", "inf")
def gradient_overflows_in_half() -> opscope.Capture:
    def small(y: Tensor) -> Tensor:
        return (y.half() * 100).float() * 1e4  # here

    return inner(small)


# -- optimizer ----------------------------------------------------------------------------------------


@fault("aten.mul_", "forward", "inf")
def clipping_with_an_infinite_norm() -> opscope.Capture:
    torch.manual_seed(0)
    model = Model(lambda y: y)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def clipped() -> None:
        for parameter in model.parameters():
            parameter.grad.mul_(1e30).mul_(1e30)  # here
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    return step(model, optimizer, between=clipped)


@fault("aten.addcdiv_", "optimizer", "nan")
def rmsprop_without_epsilon() -> opscope.Capture:
    torch.manual_seed(0)
    model = Model(lambda y: y * 0)
    return step(model, torch.optim.RMSprop(model.parameters(), eps=0.0), x=torch.zeros(3, 4))


@fault("", "optimizer", "")
def adam_with_beta_one() -> opscope.Capture:
    torch.manual_seed(0)
    model = Model(lambda y: y)
    optimizer = torch.optim.AdamW(model.parameters())
    for group in optimizer.param_groups:
        group["betas"] = (0.9, 0.9999999999999999999)
    return step(model, optimizer)


@fault("aten.add_", "optimizer", "inf")
def learning_rate_too_large() -> opscope.Capture:
    torch.manual_seed(0)
    model = Model(lambda y: y)
    return step(model, torch.optim.SGD(model.parameters(), 3e38), loss=lambda y: 100 * y.square().mean())


@fault("aten.mul_", "forward", "inf")
def written_in_place_between_steps() -> opscope.Capture:
    torch.manual_seed(0)
    model = Model(lambda y: y)

    def corrupt() -> None:
        with torch.no_grad():
            model.after.weight.mul_(torch.tensor(1e38)).mul_(torch.tensor(1e38))  # here

    return step(model, torch.optim.SGD(model.parameters(), 0.1), between=corrupt)


@fault("aten.div", "forward", "inf")
def in_a_compiled_model() -> opscope.Capture:
    torch.manual_seed(0)
    model = Model(lambda y: y / (y * 0))  # here
    compiled = torch.compile(model, backend="eager")
    return step(compiled)


# -- judging ------------------------------------------------------------------------------------------


def wrong(name: str, planted: Fault, found: list[Origin]) -> str:
    """Why the first origin is not the one that was planted; empty where it is."""
    if not found:
        return "nothing found"
    first = next((one for one in found if one.phase == planted.phase), found[0])
    if first is not found[0] and planted.phase != "backward":
        return f"first is {found[0]}"
    said = first.forward if planted.phase == "backward" and first.forward is not None else first
    if not said.op.startswith(planted.op) and not first.op.startswith(planted.op):
        return f"operator: {first} (forward: {first.forward})"
    if planted.kind and first.kind != planted.kind:
        return f"kind: {first}"
    if first.phase != planted.phase:
        return f"phase: {first}"
    begin, end = planted.marks
    marked = [i + 1 for i in range(begin - 1, end) if LINES[i].rstrip().endswith("# here")]
    if marked and said.line not in marked:
        return f"line: {said} (here: {marked})"
    is_inside = "inner" in planted.run.__code__.co_names and planted.op.startswith("aten.")
    return f"module: {said}" if is_inside and "inner" not in said.path else ""


def main(names: list[str]) -> int:
    warnings.simplefilter("ignore")
    right = 0
    chosen = {name: one for name, one in FAULTS.items() if not names or name in names}
    for name, planted in chosen.items():
        try:
            why = wrong(name, planted, planted.run().origins())
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            if names:
                traceback.print_exc()
        right += not why
        if why:
            print(f"missed {name}: {why}")
    print(f"{right} of {len(chosen)} origins right")
    return 0 if right == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
