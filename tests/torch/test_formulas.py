"""Formulas on what torch really ran: against its own counter where that is right, against arithmetic where not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from zoo import ZOO, ResNet

import opscope
from opscope.ir import Graph, Node
from opscope.ops import Argument, Cost, cost_of


def cost(node: Node) -> Cost:
    inputs = [Argument(use.arg, use.value.type if use.value else None) for use in node.uses]
    return cost_of("torch", node.op, inputs, [value.type for value in node.outputs], node.attrs)


def macs(graph: Graph) -> Counter[str]:
    """By phase. Nothing that ran may be unknown."""
    found = Counter[str]()
    for node in graph.nodes:
        each = cost(node)
        assert each.how != "unknown", f"{node.op} {[str(v.type) for v in node.outputs]} {json.dumps(node.attrs)}"
        found[node.phase] += each.macs
    return +found


def step(model: nn.Module, *args: Tensor) -> Graph:
    """Forward and backward, recorded."""

    def run() -> None:
        out = model(*args)
        (out[0] if isinstance(out, tuple) else out).sum().backward()

    with opscope.record(model) as cap:
        run()
    return cap.graph


def counted_by_torch(run: Callable[[], Any]) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    assert counter.get_total_flops() % 2 == 0
    return counter.get_total_flops() // 2


# What the optimizer, the data or the user's own operator decide.
UNKNOWN = {"opscope_tests.scaled"}


@pytest.mark.parametrize("name", sorted(ZOO))
def test_every_operator_of_the_zoo_is_known(name: str) -> None:
    model, loss = ZOO[name]()
    for optimizer in (torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), None):
        with opscope.record(model, optimizer=optimizer) as cap:
            loss(model).backward()
            if optimizer is not None:
                optimizer.step()
        unknown = {node.op for node in cap.graph.nodes if cost(node).how == "unknown"}
        assert unknown <= UNKNOWN


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 6, 3, stride=2, padding=1),
        nn.Conv2d(4, 6, (3, 2), dilation=2, bias=False),
        nn.Conv1d(4, 6, 3),
        nn.Conv3d(4, 2, 2),
        nn.ConvTranspose2d(4, 6, 3, stride=2),
        nn.Linear(8, 5),
        nn.Sequential(nn.Flatten(), nn.LazyLinear(3)),
        ResNet(4, 10),
    ],
    ids=str,
)
def test_agrees_with_torch_where_torch_is_right(layer: nn.Module) -> None:
    dims = {"Conv1d": 1, "Conv3d": 3}.get(type(layer).__name__, 2)
    x = torch.randn(2, 3 if isinstance(layer, ResNet) else 4, *[8] * dims)
    if isinstance(layer, ResNet):
        x = torch.randn(2, 3, 32, 32)
    x.requires_grad_()
    layer(x)
    assert sum(macs(step(layer, x)).values()) == counted_by_torch(lambda: layer(x).sum().backward())


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_weight_gradient_of_groups(groups: int, transposed: bool) -> None:
    """torch's counter has it too high by the number of groups."""
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    layer = kind(4, 8, 3, stride=2, padding=1, groups=groups)
    x = torch.randn(2, 4, 9, 9, requires_grad=True)
    out = layer(x)
    applied = x if transposed else out
    one = applied.numel() * layer.weight[0].numel()
    assert macs(step(layer, x)) == {"forward": one, "backward": 2 * one}
    # Without a gradient of the input there is one product less.
    assert macs(step(layer, x.detach())) == {"forward": one, "backward": one}


@pytest.mark.parametrize("causal", [False, True])
def test_attention_on_the_cpu(causal: bool) -> None:
    b, h, q, k, d = 2, 3, 5, 7, 4

    class Attention(nn.Module):
        def forward(self, *qkv: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(*qkv, is_causal=causal)

    shapes = [(b, h, q, d), (b, h, k, d), (b, h, k, d)]
    qkv = [torch.randn(*shape, requires_grad=True) for shape in shapes]
    one = b * h * q * k * d
    graph = step(Attention(), *qkv)
    assert any("flash_attention_for_cpu" in node.op for node in graph.nodes)
    assert macs(graph) == {"forward": 2 * one, "backward": 5 * one}  # the scores are made again
    with sdpa_kernel(SDPBackend.MATH):
        assert macs(step(Attention(), *qkv)) == {"forward": 2 * one, "backward": 4 * one}


@pytest.mark.parametrize("training", [False, True])
def test_an_encoder_layer_with_and_without_its_fast_path(training: bool) -> None:
    b, length, width, hidden = 2, 6, 8, 16
    layer = nn.TransformerEncoderLayer(width, 2, hidden, batch_first=True, dropout=0.0).train(training)
    with torch.no_grad():
        graph = opscope.trace(layer, torch.randn(b, length, width)).graph
    fast = any("_transformer_encoder_layer_fwd" in node.op for node in graph.nodes)
    assert fast is not training
    expected = b * length * (4 * width * width + 2 * length * width + 2 * width * hidden)
    assert macs(graph) == {"forward": expected}


@pytest.mark.parametrize(("cell", "gates"), [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers(cell: Any, gates: int, bidirectional: bool) -> None:
    time, batch, width, hidden, layers = 5, 3, 4, 6, 2
    model = cell(width, hidden, layers, bidirectional=bidirectional)
    ways = 2 if bidirectional else 1
    per_step = sum(gates * hidden * (inside + hidden) * ways for inside in (width, ways * hidden))
    x = torch.randn(time, batch, width, requires_grad=True)
    found = macs(step(model, x))
    assert found["forward"] == time * batch * per_step
    # The first hidden state is no parameter: its product has one gradient less where torch sees each step.
    first = 0 if cell is nn.LSTM else layers * ways * gates * hidden * hidden * batch
    assert found["backward"] in (2 * time * batch * per_step, 2 * time * batch * per_step - first)


@pytest.mark.parametrize("how", ["record", "export", "fx", "jit-trace", "dynamo", "joint"])
def test_every_way_of_capturing_counts_the_same(how: str) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.up = nn.Conv2d(3, 4, 3, padding=1, groups=1), nn.ConvTranspose2d(4, 4, 2, 2, groups=2)
            self.norm, self.pool = nn.BatchNorm2d(4), nn.MaxPool2d(2)
            self.head = nn.Linear(4, 5)

        def forward(self, x: Tensor) -> Tensor:
            x = self.up(self.pool(F.relu(self.norm(self.conv(x)))))
            x = x.flatten(2).transpose(1, 2)
            x = F.scaled_dot_product_attention(x, x, x)
            return self.head(x) @ torch.ones(5, 2)

    model = Net().eval()
    x = torch.randn(2, 3, 8, 8)
    graph = opscope.trace(model, x, how=how).stages[-1 if how == "jit-trace" else 0].graph
    expected = 2 * (64 * 4 * 27 + 16 * 4 * 2 * 4 + 2 * 64 * 64 * 4 + 64 * 4 * 5 + 64 * 5 * 2)
    assert macs(graph)["forward"] == expected


def function(run: Callable[..., Any], *args: Tensor) -> int:
    return sum(macs(opscope.trace(run, *args).graph).values())


def test_operators_that_counters_forget() -> None:
    a, b = torch.randn(3, 4), torch.randn(4)
    assert function(torch.mv, a, b) == 12
    assert function(torch.dot, b, b) == 4
    assert function(lambda x, y: torch.matmul(x, y), torch.randn(5, 3, 4), torch.randn(4, 2)) == 5 * 3 * 4 * 2
    assert function(lambda x, y: torch.einsum("bij,bkj->bik", x, y), torch.randn(2, 3, 4), torch.randn(2, 5, 4)) == 120
    assert function(torch.baddbmm, torch.randn(2, 3, 5), torch.randn(2, 3, 4), torch.randn(2, 4, 5)) == 120
    layer = nn.Bilinear(3, 4, 5)
    assert function(layer, torch.randn(2, 3), torch.randn(2, 4)) == 2 * 5 * (3 * 4 + 4)
    quantized = torch.ao.nn.quantized.dynamic.Linear(4, 5)
    assert function(quantized, a) == 3 * 4 * 5


def test_many_operators_are_known() -> None:
    """One line for each family; each is run for real, with its gradient where it has one."""
    image = torch.randn(2, 4, 8, 8, requires_grad=True)
    rows = torch.randn(6, 5, requires_grad=True)
    grid = torch.rand(2, 3, 3, 2, requires_grad=True)
    runs: list[Callable[[], Tensor]] = [
        lambda: F.grid_sample(image, grid, align_corners=False),
        lambda: F.interpolate(image, scale_factor=2, mode="bilinear"),
        lambda: F.interpolate(image, scale_factor=2, mode="bicubic"),
        lambda: F.interpolate(image, size=5),
        lambda: F.adaptive_avg_pool2d(image, 3),
        lambda: F.avg_pool2d(image, 3, 2, 1),
        lambda: F.unfold(image, 3),
        lambda: F.fold(F.unfold(image, 3), (8, 8), 3),
        lambda: F.pixel_shuffle(image, 2),
        lambda: F.pad(image, (1, 1, 1, 1), mode="reflect"),
        lambda: F.instance_norm(image),
        lambda: F.group_norm(image, 2),
        lambda: F.rms_norm(rows, (5,)),
        lambda: F.local_response_norm(image, 3),
        lambda: F.cosine_similarity(rows, rows + 1),
        lambda: torch.cdist(rows, rows + 1),
        lambda: F.pdist(rows),
        lambda: F.cross_entropy(rows, torch.tensor([0, 1, 2, 3, 4, 0])),
        lambda: F.binary_cross_entropy_with_logits(rows, torch.rand(6, 5)),
        lambda: F.smooth_l1_loss(rows, torch.zeros(6, 5)),
        lambda: F.kl_div(rows.log_softmax(1), torch.rand(6, 5)),
        lambda: F.huber_loss(rows, torch.zeros(6, 5)),
        lambda: F.gelu(rows, approximate="tanh") + F.elu(rows) + F.mish(rows) + F.softplus(rows) + F.hardtanh(rows),
        lambda: F.glu(image, 1) + F.leaky_relu(image[:, :2]) + F.logsigmoid(image[:, 2:]) + F.celu(image[:, 2:]),
        lambda: F.prelu(rows, torch.ones(1)),
        lambda: rows.cumsum(0) + rows.cumprod(0) + rows.logcumsumexp(0),
        lambda: rows.var() + rows.std() + rows.norm() + rows.logsumexp(0).sum() + rows.prod() + rows.amax(),
        lambda: rows.sort(0).values + rows.flip(0) + rows.roll(1) + rows.tril(),
        lambda: rows.kthvalue(2, 0).values + rows.median(0).values + rows.topk(2, 0).values.sum(),
        lambda: rows.gather(0, torch.zeros(6, 5, dtype=torch.long)) + rows.index_select(0, torch.arange(6)),
        lambda: rows.masked_fill(rows > 0, 0) + torch.where(rows > 0, rows, rows * 2),
        lambda: rows.index_put((torch.tensor([1]),), torch.zeros(5)) + rows.index_add(0, torch.tensor([0]), rows[:1]),
        lambda: rows.scatter_reduce(0, torch.zeros(6, 5, dtype=torch.long), rows, "sum"),
        lambda: torch.fft.fft2(image).abs() + torch.linalg.svdvals(rows).sum(),
        lambda: torch.linalg.inv(rows[:5] @ rows[:5].T + torch.eye(5)) + torch.linalg.det(rows[:5]),
        lambda: F.embedding_bag(torch.tensor([[0, 1]]), rows, mode="mean"),
        lambda: F.scaled_dot_product_attention(image, image, image, attn_mask=torch.zeros(8, 8)),
        lambda: rows.clamp(-1, 1) + rows.atan2(rows) + rows.lerp(rows, 0.5) + rows.addcmul(rows, rows, value=2),
        lambda: F.ctc_loss(
            torch.randn(9, 2, 5).log_softmax(2).requires_grad_(), torch.ones(2, 3).long(), [9, 9], [3, 3]
        ),
        lambda: torch.searchsorted(torch.arange(5.0), rows) + rows,
        lambda: torch.histc(rows.detach(), 4).sum() + rows,
        lambda: F.dropout(rows, 0.5) + F.alpha_dropout(rows, 0.5) + torch.bernoulli(rows.sigmoid()),
    ]
    unknown = Counter[str]()
    for run in runs:
        with opscope.record() as cap:
            run().sum().backward()
        unknown.update({node.op for node in cap.graph.nodes if cost(node).how == "unknown"})
    assert unknown == {}


def test_optimizers_of_one_operator() -> None:
    model = nn.Linear(4, 3)
    for optimizer in (
        torch.optim.AdamW(model.parameters(), fused=True),
        torch.optim.SGD(model.parameters(), lr=0.1, fused=True),
        torch.optim.Adam(model.parameters(), foreach=True),
        torch.optim.Adagrad(model.parameters(), fused=True),
        torch.optim.RMSprop(model.parameters(), foreach=True),
    ):
        with opscope.record(model, optimizer=optimizer) as cap:
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
        assert macs(cap.graph)["forward"] == 24
        costs = [cost(node) for node in cap.graph.nodes if node.phase == "optimizer"]
        assert sum(each.other for each in costs) >= 15 * 2


def test_resnet18() -> None:
    """The architecture says 1.814 GMACs for an image of 224 × 224; the gradient of the image is not computed."""
    model = ResNet()
    first = 64 * 112 * 112 * 3 * 49
    assert macs(step(model, torch.randn(1, 3, 224, 224))) == {
        "forward": 1_814_073_344,
        "backward": 2 * 1_814_073_344 - first,
    }


def test_gpt2() -> None:
    """Four projections and the MLP for each token and layer, the scores, and the head."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=32)
    model, batch, length, width = GPT2LMHeadModel(config), 2, 8, 16
    ids = torch.randint(1, 50, (batch, length))
    products = batch * length * (2 * 12 * width * width + 50 * width)
    scores = 2 * batch * length * length * width  # of each of the two products of attention, in both layers
    # In training its dropout needs the scores, so nothing is made again.
    for training, gradients in ((False, 5), (True, 4)):
        model.train(training)
        with opscope.record(model) as cap:
            model(input_ids=ids).logits.sum().backward()
        assert macs(cap.graph) == {"forward": products + 2 * scores, "backward": 2 * products + gradients * scores}
