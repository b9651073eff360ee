"""Where NaN and infinite numbers are born: planted faults, each named right; and models that fail."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import opscope
from opscope.analysis.origins import Origin
from opscope.errors import OpscopeError
from opscope.ir.facts import VALUES
from opscope.tracers.torch.recorder.figures_device import _Plain
from opscope.tracers.torch.recorder.statistics import Statistics


def recorded(body: Callable[[], Any], model: Any = None, optimizer: Any = None) -> opscope.Capture:
    torch.manual_seed(0)
    with opscope.record(model, optimizer=optimizer, values="stats") as capture:
        body()
    return capture


class Layer(nn.Module):
    """A linear layer, then what the case does to its result."""

    def __init__(self, then: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.then = then

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.then(self.linear(x))


def forward_of(then: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], Origin]:
    def first() -> Origin:
        model = Layer(then)
        return recorded(lambda: model(torch.ones(2, 4)), model).origins()[0]

    return first


def backward_of(then: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], Origin]:
    def first() -> Origin:
        model = Layer(then)
        return recorded(lambda: model(torch.ones(2, 4)).sum().backward(), model).origins()[0]

    return first


def all_masked(y: torch.Tensor) -> torch.Tensor:
    mask = torch.zeros(2, 4, dtype=torch.bool)
    mask[1] = True
    return y.masked_fill(mask, -math.inf).softmax(-1)


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradients[0] / (x * 0)


FORWARD = {
    "division by zero": (lambda y: y / (y * 0), "aten.div", "inf"),
    "zero by zero": (lambda y: (y * 0) / (y * 0), "aten.div", "nan"),
    "log of zero": (lambda y: (y * 0).log(), "aten.log", "inf"),
    "log of a negative number": (lambda y: (-y.abs() - 1).log(), "aten.log", "nan"),
    "root of a negative number": (lambda y: (-y.abs() - 1).sqrt(), "aten.sqrt", "nan"),
    "overflow of exp": (lambda y: (y.abs() + 1000).exp(), "aten.exp", "inf"),
    "overflow in half precision": (lambda y: (y.abs() + 1e6).half(), "aten._to_copy", "inf"),
    "overflow of a product in half precision": (lambda y: (y.abs() + 300).half().square(), "aten.pow", "inf"),
    "a softmax that masks everything": (all_masked, "aten._softmax", "nan"),
    "inf minus inf": (lambda y: F.relu(y).exp().mul(1e38).mul(1e38), "aten.mul", "inf"),
    "power": (lambda y: (y.abs() * 0) ** -1.0, "aten.pow", "inf"),
    "reciprocal root": (lambda y: (y * 0).rsqrt(), "aten.rsqrt", "inf"),
    "arc cosine out of range": (lambda y: (y.abs() + 2).acos(), "aten.acos", "nan"),
    "variance of one": (lambda y: y[:, :1].std(dim=1), "aten.std", "nan"),
}
BACKWARD = {
    "root at zero": (lambda y: (y * 0).sqrt(), "aten.sqrt"),
    "arc cosine at one": (lambda y: torch.acos(y * 0 + 1), "aten.acos"),
    "inverse sine at one": (lambda y: torch.asin(y * 0 + 1), "aten.asin"),
    "where and log": (lambda y: torch.where(y * 0 > 0, (y * 0).log(), y), "aten.log"),
    "a gradient of one's own": (lambda y: Wrong.apply(y), "aten.mul"),
    "power at zero": (lambda y: (y * 0).abs() ** 0.5, "aten.pow"),
}


@pytest.mark.parametrize("case", FORWARD)
def test_forward(case: str) -> None:
    then, op, kind = FORWARD[case]
    origin = forward_of(then)()
    assert origin.op.startswith(op), origin
    assert (origin.kind, origin.phase) == (kind, "forward")
    assert Path(origin.file).name == Path(__file__).name
    assert all(seen.figures.get("nan", 0) == 0 for seen in origin.inputs)


@pytest.mark.parametrize("case", BACKWARD)
def test_backward(case: str) -> None:
    then, op = BACKWARD[case]
    model = Layer(then)
    found = recorded(lambda: model(torch.ones(2, 4)).sum().backward(), model).origins()
    origin = next(origin for origin in found if origin.phase == "backward")
    assert origin.forward is not None
    assert origin.forward.op.startswith(op), origin.forward
    assert origin.forward.phase == "forward"


def test_the_epsilon_of_an_optimizer() -> None:
    model = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(model.parameters(), eps=0.0)

    def step() -> None:
        model(torch.zeros(2, 3)).sum().backward()
        optimizer.step()

    (origin, *_) = recorded(step, model, optimizer).origins()
    assert (origin.op, origin.phase, origin.kind) == ("aten.addcdiv_", "optimizer", "nan")


def test_a_bad_parameter_is_the_origin_and_not_its_first_reader() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    with torch.no_grad():
        model[1].weight[0, 0] = math.nan
    (origin,) = recorded(lambda: model(torch.ones(2, 3)), model).origins()
    assert (origin.op, origin.name, origin.kind) == ("parameter", "1.weight", "nan")
    assert origin.path.endswith("/1")
    assert origin.spread >= 1


def test_a_bad_input_is_the_origin() -> None:
    model, x = nn.Linear(3, 3), torch.tensor([[1.0, math.nan, 2.0]])
    (origin,) = recorded(lambda: model(x), model).origins()
    assert (origin.op, origin.name, origin.kind) == ("input", "x", "nan")


def test_a_parameter_that_is_corrupted_in_place() -> None:
    model = nn.Linear(3, 3)

    def body() -> None:
        with torch.no_grad():
            model.weight[0].fill_(math.inf)
        model(torch.ones(2, 3))

    (origin, *_) = recorded(body, model).origins()
    assert origin.op.startswith("aten.fill_")


def test_masks_are_no_fault() -> None:
    model = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert recorded(lambda: model(torch.randn(2, 3, 8), src_mask=mask).sum().backward(), model).origins() == []
    scores = torch.randn(4, 4)
    body = lambda: scores.masked_fill(torch.ones(4, 4).triu(1) > 0, -math.inf).softmax(-1)  # noqa: E731
    assert recorded(body).origins() == []
    assert recorded(lambda: torch.full((3,), math.inf).minimum(torch.ones(3))).origins() == []


def test_what_goes_nowhere_is_told_on_request_alone() -> None:
    """The gradient of a norm at zero divides by zero, and masks the result."""
    x = torch.zeros(3, 4, requires_grad=True)
    capture = recorded(lambda: (x * 1).norm(dim=-1).sum().backward())
    assert capture.origins() == []
    (origin,) = capture.origins(absorbed=True)
    assert (origin.op, origin.absorbed) == ("aten.div.Tensor", True)
    # What a `where` hides is told where its gradient comes through: both ends of one story.
    model = Layer(lambda y: torch.where(y * 0 > 0, (y * 0).log(), y))
    first, *_, last = recorded(lambda: model(torch.ones(2, 4)).sum().backward(), model).origins()
    assert (first.op, first.phase, first.absorbed) == ("aten.log", "forward", True)
    assert (last.phase, last.absorbed) == ("backward", False)
    assert last.forward is not None
    assert last.forward.op == "aten.log"


def test_what_came_close_is_told() -> None:
    y = torch.linspace(-1, 1, 64)

    def body() -> list[torch.Tensor]:
        large = (y * 3e4).half()
        return [large * 1.5, (y * 1e-7).half(), (y * 1e4).to(torch.float8_e4m3fn)]

    capture = recorded(body)
    assert capture.origins() == []
    found = {miss.kind: miss for miss in capture.near_misses()}
    assert set(found) == {"overflow", "underflow", "saturation"}
    assert found["overflow"].figure == pytest.approx(math.log2(65504 / 3e4), abs=0.01)
    assert found["saturation"].figure == pytest.approx(1e4 / 448, rel=0.01)
    assert found["underflow"].figure > 0.9
    assert "powers of two from overflow" in str(found["overflow"])
    assert recorded(lambda: (y * 3).softmax(-1)).near_misses() == []


def test_exploding_gradients_are_told_by_layer() -> None:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(5)))

    def body() -> None:
        first = model[0](torch.ones(2, 4))
        first.register_hook(lambda gradient: gradient * 1e6)
        model[1:](first).sum().backward()

    found = recorded(body, model).near_misses()
    assert {miss.name for miss in found if miss.kind == "exploding"} == {"0.weight.grad", "0.bias.grad"}


def test_data_that_no_variable_holds_is_an_input() -> None:
    data = torch.randn(8, 3)
    data[5, 2] = math.nan
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=4)
    model = nn.Linear(3, 3)
    (origin,) = recorded(lambda: [model(x) for (x,) in loader], model).origins()
    assert (origin.op, origin.kind, origin.node) == ("input", "nan", -1)
    assert origin.line > 0


def test_memory_that_holds_no_numbers_yet_is_no_fault() -> None:
    def body() -> None:
        held = torch.empty(64, 64)
        held.fill_(1.0).sum()

    assert recorded(body).origins() == []


def test_without_statistics_it_says_what_to_do() -> None:
    with opscope.record() as capture:
        torch.ones(3).sum()
    with pytest.raises(OpscopeError, match="values='stats'"):
        capture.origins()


# -- the statistics themselves --------------------------------------------------------------------------

TENSORS = {
    "float32": torch.randn(1000),
    "wide": torch.randn(3, 40_000) * 1e20,
    "with holes": torch.tensor([1.0, math.nan, math.inf, -math.inf, -3.0, 0.0]),
    "subnormal": torch.tensor([1e-40, 1.0, 0.0, -1e-42]),
    "float64": torch.randn(10, 10, dtype=torch.float64),
    "float16": torch.randn(100).half(),
    "bfloat16": torch.randn(100).bfloat16(),
    "float8": torch.randn(64).to(torch.float8_e4m3fn),
    "int64": torch.arange(-5, 5),
    "bool": torch.tensor([True, False, True]),
    "complex": torch.randn(20, dtype=torch.complex64),
    "strided": torch.randn(20, 30).t()[::2],
    "empty": torch.zeros(0),
    "nan only": torch.full((4,), math.nan),
}


@pytest.mark.parametrize("name", TENSORS)
def test_both_ways_of_counting_agree_with_plain_torch(name: str) -> None:
    """On the CPU figures are taken at once, on devices without looking at a number: they are the same."""
    tensor = TENSORS[name]
    at_once, block = Statistics(torch), _Plain(torch, torch.device("cpu"))
    at_once.take(0, tensor, 0, is_write=False)
    found = at_once.finish()[0]
    plain = (tensor.abs() if tensor.is_complex() else tensor).double()
    finite = plain[torch.isfinite(plain)]
    assert found.size == tensor.numel()
    assert found.nan == int(plain.isnan().sum())
    assert found.inf == int(plain.isinf().sum())
    assert found.zeros == int((plain == 0).sum())
    if finite.numel():
        assert found.min == pytest.approx(float(finite.min()))
        assert found.max == pytest.approx(float(finite.max()))
        assert found.rms == pytest.approx(float(finite.square().mean().sqrt()), rel=1e-5)
        assert found.mean == pytest.approx(float(finite.mean()), rel=1e-4, abs=1e-6 * abs(float(finite.max())))
    if not tensor.numel():
        return
    block.take(0, tensor)
    later = block.finish({0: tensor.numel()})[0]
    for field in ("size", "nan", "inf", "neginf", "zeros") + (() if tensor.is_complex() else ("hash",)):
        assert getattr(later, field) == getattr(found, field), field
    if not found.sampled and not tensor.is_complex():
        assert later.subnormal == found.subnormal
    for field in ("min", "max", "rms"):
        assert getattr(later, field) == pytest.approx(getattr(found, field), rel=1e-5, nan_ok=True), field
    if tensor.is_floating_point() and not found.sampled:
        counted = tensor.numel() - found.nan - found.inf - found.zeros - found.subnormal
        assert sum(later.exponents) == sum(found.exponents) == counted


def test_equal_numbers_have_equal_hashes_whatever_their_layout() -> None:
    x = torch.randn(6, 8)
    capture = recorded(lambda: (x + 0, x.t().contiguous() + 0, x + 1))
    (table,) = [t for t in capture.tables.values() if t.fact == VALUES.name]
    hashes = dict(zip(table.index.tolist(), table.columns["hash"].values, strict=True))
    made = [int(node.outputs[0].index) for node in capture.graph.nodes if node.op == "aten.add.Tensor"]
    assert hashes[made[0]] == hashes[made[1]] != hashes[made[2]]


def test_results_are_the_same_with_and_without() -> None:
    def step(record: bool) -> list[torch.Tensor]:
        torch.manual_seed(1)
        model = nn.TransformerEncoderLayer(16, 2, batch_first=True)
        optimizer = torch.optim.AdamW(model.parameters())

        def body() -> None:
            model(torch.randn(2, 5, 16)).square().mean().backward()
            optimizer.step()

        if record:
            with opscope.record(model, optimizer=optimizer, values="stats"):
                body()
        else:
            body()
        return [parameter.detach().clone() for parameter in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(step(True), step(False), strict=True))


# -- the command line -----------------------------------------------------------------------------------

SCRIPT = """
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 1)
    def forward(self, x, k):
        return self.fc(x) / (3 - k)          # line 9
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for k in range(6):
    optimizer.zero_grad()
    loss = net(torch.randn(3, 4), k).square().mean()
    loss.backward()
    optimizer.step()
    print("step", k)
"""


def run(*args: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "opscope", *args], cwd=folder, capture_output=True, text=True)


def test_nan_finds_the_line_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = run("nan", "--json", "train.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (first, *_) = json.loads(done.stdout)
    assert (first["op"], first["line"], first["kind"]) == ("aten.div.Tensor", 9, "inf")
    assert "step 5" in done.stderr  # what the script prints is not lost
    until = run("nan", "--until", "nan", "train.py", folder=tmp_path)
    assert "step 2" in until.stdout
    assert "step 4" not in until.stdout
    assert "train.py:9" in until.stdout


def test_a_recording_can_be_asked_later(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    assert run("trace", "--values", "stats", "-o", "t.opscope", "train.py", folder=tmp_path).returncode == 0
    assert "train.py:9" in run("nan", "t.opscope", folder=tmp_path).stdout
    assert run("find", "t.opscope", "inf:>0", folder=tmp_path).returncode == 0


# -- models that fail -----------------------------------------------------------------------------------


class Odd(nn.Module):
    """Fails as it is told."""

    def __init__(self, how: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.first, self.how = nn.Linear(4, 4), how

    def forward(self, x: torch.Tensor) -> Any:
        return self.how(self.first(x))


def asserts(y: torch.Tensor) -> None:
    assert y.shape == (1, 1), "a wrong shape"


def divides(y: torch.Tensor) -> float:
    return 1 / 0


FAILURES: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "shapes of a product": (lambda y: y @ torch.ones(5, 5), "aten.mm"),
    "shapes of a sum": (lambda y: y + torch.ones(3), "aten.add.Tensor"),
    "shapes of a convolution": (lambda y: F.conv1d(y[None], torch.ones(3, 5, 1)), "aten.convolution"),
    "a view": (lambda y: y.view(3, 5), "aten.view"),
    "cat": (lambda y: torch.cat([y, torch.ones(3, 3)]), "aten.cat"),
    "an index": (lambda y: y[torch.tensor([9])], "aten.index.Tensor"),
    "embedding": (lambda y: F.embedding(torch.tensor([99]), torch.ones(3, 3)), "aten.embedding"),
    "memory": (lambda y: torch.empty(1 << 60), "aten.empty.memory_format"),
    "assertion": (asserts, ""),
    "Python": (divides, ""),
    "attribute": (lambda y: y.no_such_thing, ""),
    "key": (lambda y: {}["k"], ""),
    "dtype": (lambda y: torch.mm(y, y.double().t()), "aten.mm"),
    "not implemented": (lambda y: (_ for _ in ()).throw(NotImplementedError("later")), ""),
    "inverse": (lambda y: torch.linalg.inv(torch.zeros(2, 2)), "aten.linalg_inv_ex"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_model_that_fails_leaves_what_it_did(case: str, tmp_path: Path) -> None:
    how, op = FAILURES[case]
    model = Odd(how)
    with pytest.raises(Exception) as raised, opscope.record(model) as capture:
        model(torch.ones(2, 4))
    assert capture.graph.n_nodes >= 2
    assert any(node.op == "aten.addmm" for node in capture.graph.nodes)
    warning = capture.all_warnings()[0]
    assert type(raised.value).__name__ in warning
    assert Path(__file__).name in warning or case == "inverse"
    failed = [node for node in capture.graph.nodes if "failed" in node.attrs]
    if op and case != "inverse":
        assert [node.op for node in failed] == [op]
        assert failed[0].index == capture.graph.n_nodes - 1
        assert str(raised.value)[:30] in failed[0].attrs["failed"]
    path = tmp_path / "failed.opscope"
    capture.save(path)
    assert opscope.open(path).graph.n_nodes == capture.graph.n_nodes


def test_a_program_that_goes_on_after_an_exception_has_no_failed_operator() -> None:
    with opscope.record() as capture:
        try:
            torch.ones(2, 3) @ torch.ones(2, 3)
        except RuntimeError:
            torch.ones(2) + 1
    assert not any("failed" in node.attrs for node in capture.graph.nodes)


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_leaves_what_ran(ending: type[BaseException]) -> None:
    def stop(y: torch.Tensor) -> torch.Tensor:
        raise ending("enough")

    model = Layer(stop)
    with pytest.raises(ending), opscope.record(model, values="stats") as capture:
        model(torch.ones(2, 4))
    assert capture.graph.n_nodes >= 2
    assert ending.__name__ in capture.all_warnings()[0]
    assert not capture.origins()
