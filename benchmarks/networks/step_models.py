"""Training steps and inference of the kinds of network that people look at: random weights, full depth, small width.

`STEPS[name]()` gives a model, its optimizers and a function that runs one step; `CALLS[name]()` a model and its
arguments. What they compute is what counts for a picture, not how well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Step = tuple[nn.Module, Any, Callable[[], None]]
Call = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]
STEPS: dict[str, Callable[[], Step]] = {}
CALLS: dict[str, Callable[[], Call]] = {}


def step(make: Callable[[], Step]) -> Callable[[], Step]:
    STEPS[make.__name__] = make
    return make


def call(make: Callable[[], Call]) -> Callable[[], Call]:
    CALLS[make.__name__] = make
    return make


def trained(model: nn.Module, loss: Callable[[], Tensor], optimizer: Any = None) -> Step:
    opt = optimizer or torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, foreach=False)

    def run() -> None:
        opt.zero_grad()
        loss().backward()
        opt.step()

    return model, opt, run


# -- transformers ---------------------------------------------------------------------------------------

IDS = torch.randint(1, 200, (2, 24))


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(vocab_size=200, n_embd=48, n_layer=12, n_head=4, n_positions=64))


@step
def gpt2_train() -> Step:
    model = _gpt2()
    return trained(model, lambda: model(input_ids=IDS, labels=IDS).loss)


@call
def gpt2() -> Call:
    return _gpt2().eval(), (), {"input_ids": IDS}


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=200,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=16,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config)


@step
def llama_train() -> Step:
    model = _llama()
    return trained(model, lambda: model(input_ids=IDS, labels=IDS).loss)


@call
def llama() -> Call:
    return _llama().eval(), (), {"input_ids": IDS}


@step
def bert_train() -> Step:
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(
        BertConfig(vocab_size=200, hidden_size=32, num_hidden_layers=6, num_attention_heads=4, intermediate_size=64)
    )
    return trained(model, lambda: model(input_ids=IDS, labels=IDS).loss)


def _t5() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=200, d_model=32, d_kv=8, d_ff=64, num_layers=6, num_heads=4, decoder_start_token_id=0)
    return T5ForConditionalGeneration(config)


@step
def t5_train() -> Step:
    model = _t5()
    return trained(model, lambda: model(input_ids=IDS, labels=IDS).loss)


@call
def t5() -> Call:
    return _t5().eval(), (), {"input_ids": IDS, "decoder_input_ids": IDS}


def _vit() -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=12, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8
    )
    return ViTForImageClassification(config)


@step
def vit_train() -> Step:
    model, pixels, labels = _vit(), torch.randn(2, 3, 32, 32), torch.tensor([0, 1])
    return trained(model, lambda: model(pixel_values=pixels, labels=labels).loss)


@call
def vit() -> Call:
    return _vit().eval(), (), {"pixel_values": torch.randn(2, 3, 32, 32)}


class Router(nn.Module):
    """A mixture of experts that sends each token to two of eight."""

    def __init__(self, width: int, experts: int = 8) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        weights, chosen = torch.topk(torch.softmax(self.gate(flat), -1), 2)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            out = out.index_add(0, token, expert(flat[token]) * weights[token, place, None])
        return out.view_as(x)


class MoeLayer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.moe = Router(width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.moe(self.norm2(x))


class Moe(nn.Module):
    def __init__(self, width: int = 32, layers: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(200, width)
        self.layers = nn.ModuleList(MoeLayer(width) for _ in range(layers))
        self.head = nn.Linear(width, 200)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@step
def moe_train() -> Step:
    model = Moe()
    return trained(model, lambda: F.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten()))


@call
def moe() -> Call:
    return Moe().eval(), (IDS,), {}


# -- convolutions ---------------------------------------------------------------------------------------

IMAGES = torch.randn(2, 3, 64, 64)
LABELS = torch.tensor([1, 3])


def classified(model: nn.Module) -> Step:
    return trained(model, lambda: F.cross_entropy(model(IMAGES), LABELS), torch.optim.SGD(model.parameters(), 0.1))


def conv(inside: int, out: int, kernel: int = 3, stride: int = 1, padding: int | None = None) -> nn.Sequential:
    pad = kernel // 2 if padding is None else padding
    return nn.Sequential(nn.Conv2d(inside, out, kernel, stride, pad, bias=False), nn.BatchNorm2d(out), nn.ReLU())


class Bottleneck(nn.Module):
    def __init__(self, inside: int, mid: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv2, self.bn2 = nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv3, self.bn3 = nn.Conv2d(mid, 4 * mid, 1, bias=False), nn.BatchNorm2d(4 * mid)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inside != 4 * mid:
            self.downsample = nn.Sequential(nn.Conv2d(inside, 4 * mid, 1, stride, bias=False), nn.BatchNorm2d(4 * mid))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        inside = width
        for i, depth in enumerate((3, 4, 6, 3)):
            mid = width << i
            blocks = [Bottleneck(inside if b == 0 else 4 * mid, mid, 2 if i and b == 0 else 1) for b in range(depth)]
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
            inside = 4 * mid
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(inside, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


@step
def resnet50_train() -> Step:
    return classified(ResNet50())


@call
def resnet50() -> Call:
    return ResNet50().eval(), (IMAGES,), {}


class DenseLayer(nn.Module):
    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.norm1, self.relu1 = nn.BatchNorm2d(inside), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(inside, 4 * growth, 1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(4 * growth), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, features: list[Tensor]) -> Tensor:
        x = torch.cat(features, 1)
        return self.conv2(self.relu2(self.norm2(self.conv1(self.relu1(self.norm1(x))))))


class DenseBlock(nn.ModuleDict):
    def __init__(self, inside: int, growth: int, layers: int) -> None:
        super().__init__()
        for i in range(layers):
            self.add_module(f"denselayer{i + 1}", DenseLayer(inside + i * growth, growth))

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, 1)


class DenseNet(nn.Module):
    """DenseNet-121 with a small growth."""

    def __init__(self, growth: int = 4) -> None:
        super().__init__()
        width = 2 * growth
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, width, 7, 2, 3, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(width))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(3, 2, 1))
        for i, layers in enumerate((6, 12, 24, 16)):
            self.features.add_module(f"denseblock{i + 1}", DenseBlock(width, growth, layers))
            width += layers * growth
            if i < 3:
                between = nn.Sequential()
                between.add_module("norm", nn.BatchNorm2d(width))
                between.add_module("relu", nn.ReLU(inplace=True))
                between.add_module("conv", nn.Conv2d(width, width // 2, 1, bias=False))
                between.add_module("pool", nn.AvgPool2d(2, 2))
                self.features.add_module(f"transition{i + 1}", between)
                width //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(width))
        self.classifier = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.features(x))
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


@step
def densenet_train() -> Step:
    return classified(DenseNet())


@call
def densenet() -> Call:
    return DenseNet().eval(), (IMAGES,), {}


class Inception(nn.Module):
    def __init__(self, inside: int, a: int, b: tuple[int, int], c: tuple[int, int], d: int) -> None:
        super().__init__()
        self.branch1 = conv(inside, a, 1)
        self.branch2 = nn.Sequential(conv(inside, b[0], 1), conv(b[0], b[1]))
        self.branch3 = nn.Sequential(conv(inside, c[0], 1), conv(c[0], c[1], 5))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(inside, d, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class GoogLeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2, self.conv3 = conv(3, 8, 7, 2), conv(8, 8, 1), conv(8, 16)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.inception3a = Inception(16, 4, (4, 8), (2, 4), 4)
        self.inception3b = Inception(20, 8, (8, 12), (2, 6), 4)
        self.inception4a = Inception(30, 8, (8, 12), (2, 4), 4)
        self.inception4b = Inception(28, 8, (8, 12), (2, 4), 4)
        self.inception4c = Inception(28, 8, (8, 12), (2, 4), 4)
        self.inception4d = Inception(28, 8, (8, 12), (2, 4), 4)
        self.inception5a = Inception(28, 12, (8, 16), (4, 8), 8)
        self.inception5b = Inception(44, 12, (8, 16), (4, 8), 8)
        self.dropout, self.fc = nn.Dropout(0.2), nn.Linear(44, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.conv3(self.conv2(self.conv1(x))))
        x = self.maxpool(self.inception3b(self.inception3a(x)))
        x = self.inception4d(self.inception4c(self.inception4b(self.inception4a(x))))
        x = self.inception5b(self.inception5a(self.maxpool(x)))
        return self.fc(self.dropout(x.mean((2, 3))))


@step
def inception_train() -> Step:
    return classified(GoogLeNet())


@call
def inception() -> Call:
    return GoogLeNet().eval(), (IMAGES,), {}


class Res(nn.Module):
    def __init__(self, inside: int, out: int, time: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inside), nn.Conv2d(inside, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.norm2, self.conv2 = nn.GroupNorm(4, out), nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(inside, out, 1) if inside != out else nn.Identity()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Attend(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = (
            nn.GroupNorm(4, width),
            nn.Conv2d(width, 3 * width, 1),
            nn.Conv2d(width, width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(1, 2).reshape_as(x))


class Stage(nn.Module):
    """A level of the U-Net, without a forward of its own: the network runs its children."""

    def __init__(self, res: list[nn.Module], att: list[nn.Module], end: nn.Module) -> None:
        super().__init__()
        self.res, self.att, self.end = nn.ModuleList(res), nn.ModuleList(att), end


class UNet(nn.Module):
    def __init__(self, width: int = 16, mults: tuple[int, ...] = (1, 2, 2, 4)) -> None:
        super().__init__()
        time = 4 * width
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.conv_in = nn.Conv2d(3, width, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        inside, skips = width, [width]
        for i, mult in enumerate(mults):
            res, att = [], []
            for _ in range(2):
                res.append(Res(inside, mult * width, time))
                inside = mult * width
                att.append(Attend(inside) if i > 1 else nn.Identity())
                skips.append(inside)
            last = i + 1 == len(mults)
            end = nn.Identity() if last else nn.Conv2d(inside, inside, 3, 2, 1)
            if not last:
                skips.append(inside)
            self.down.append(Stage(res, att, end))
        self.mid1, self.mid_attention, self.mid2 = Res(inside, inside, time), Attend(inside), Res(inside, inside, time)
        for i, mult in reversed(list(enumerate(mults))):
            res, att = [], []
            for _ in range(3):
                res.append(Res(inside + skips.pop(), mult * width, time))
                inside = mult * width
                att.append(Attend(inside) if i > 1 else nn.Identity())
            self.up.append(Stage(res, att, nn.Identity() if i == 0 else nn.Conv2d(inside, inside, 3, padding=1)))
        self.norm_out, self.conv_out = nn.GroupNorm(4, inside), nn.Conv2d(inside, 3, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        half = self.width // 2
        waves = torch.exp(-torch.arange(half) * (9.2 / half))
        angle = t[:, None].float() * waves[None]
        e = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        x = self.conv_in(x)
        kept = [x]
        for i, stage in enumerate(self.down):
            for res, att in zip(stage.res, stage.att, strict=True):
                x = att(res(x, e))
                kept.append(x)
            if i + 1 < len(self.down):
                x = stage.end(x)
                kept.append(x)
        x = self.mid2(self.mid_attention(self.mid1(x, e)), e)
        for i, stage in enumerate(self.up):
            for res, att in zip(stage.res, stage.att, strict=True):
                x = att(res(torch.cat([x, kept.pop()], 1), e))
            if i + 1 < len(self.up):
                x = stage.end(F.interpolate(x, scale_factor=2.0))
        return self.conv_out(F.silu(self.norm_out(x)))


@step
def unet_train() -> Step:
    model, t, noise = UNet(), torch.tensor([3, 40]), torch.randn(2, 3, 32, 32)
    return trained(model, lambda: F.mse_loss(model(noise, t), noise))


@call
def unet() -> Call:
    return UNet().eval(), (torch.randn(2, 3, 32, 32), torch.tensor([3, 40])), {}


# -- loops, several losses, several optimizers ----------------------------------------------------------------


class Cells(nn.Module):
    def __init__(self, cell: str, width: int = 24, steps: int = 20) -> None:
        super().__init__()
        self.embed = nn.Embedding(200, width)
        self.cell = getattr(nn, cell)(width, width)
        self.head = nn.Linear(width, 200)
        self.steps = steps

    def forward(self, ids: Tensor) -> Tensor:
        x, state, out = self.embed(ids), None, []
        for i in range(self.steps):
            state = self.cell(x[:, i], state)
            out.append(state[0] if isinstance(state, tuple) else state)
        return self.head(torch.stack(out, 1))


def _cells(name: str) -> Step:
    model = Cells(name)
    return trained(model, lambda: F.cross_entropy(model(IDS).flatten(0, 1), IDS[:, :20].flatten()))


@step
def lstm_cells_train() -> Step:
    return _cells("LSTMCell")


@step
def gru_cells_train() -> Step:
    return _cells("GRUCell")


@call
def lstm_cells() -> Call:
    return Cells("LSTMCell").eval(), (IDS,), {}


@call
def gru_cells() -> Call:
    return Cells("GRUCell").eval(), (IDS,), {}


class Mlp(nn.Module):
    def __init__(self, inside: int = 16, width: int = 32, out: int = 8, depth: int = 3) -> None:
        super().__init__()
        self.first = nn.Linear(inside, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth)
        )
        self.last = nn.Linear(width, out)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


def sgd(model: nn.Module) -> Any:
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1)


def generator() -> nn.Sequential:
    layers: list[nn.Module] = []
    for inside, out in ((16, 32), (32, 16), (16, 8)):
        layers += [nn.ConvTranspose2d(inside, out, 4, 2, 1), nn.BatchNorm2d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(8, 3, 3, padding=1), nn.Tanh())


def critic() -> nn.Sequential:
    layers: list[nn.Module] = []
    for inside, out in ((3, 8), (8, 16), (16, 32)):
        layers += [nn.Conv2d(inside, out, 4, 2, 1), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 16, 1))


class Gan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator, self.critic = generator(), critic()


@step
def gan_train() -> Step:
    gan = Gan()
    first, second = sgd(gan.critic), sgd(gan.generator)
    real, noise = torch.randn(4, 3, 32, 32), torch.randn(4, 16, 4, 4)

    def run() -> None:
        fake = gan.generator(noise)
        ones, zeros = torch.ones(4, 1), torch.zeros(4, 1)
        loss = F.binary_cross_entropy_with_logits(gan.critic(real), ones)
        loss = loss + F.binary_cross_entropy_with_logits(gan.critic(fake.detach()), zeros)
        first.zero_grad()
        loss.backward()
        first.step()
        second.zero_grad()
        F.binary_cross_entropy_with_logits(gan.critic(fake), ones).backward()
        second.step()

    return gan, [first, second], run


@step
def accumulated_train() -> Step:
    model = Mlp()
    opt = sgd(model)
    batches = [torch.randn(4, 16) for _ in range(4)]

    def run() -> None:
        opt.zero_grad()
        for x in batches:
            (F.mse_loss(model(x), torch.zeros(4, 8)) / 4).backward()
        opt.step()

    return model, opt, run


class Checkpointed(Mlp):
    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.last(x)


@step
def checkpointed_train() -> Step:
    model, x = Checkpointed(depth=4), torch.randn(4, 16)
    return trained(model, lambda: F.mse_loss(model(x), torch.zeros(4, 8)), sgd(model))


@step
def checkpointed_llama_train() -> Step:
    model = _llama()
    model.gradient_checkpointing_enable()
    model.train()
    return trained(model, lambda: model(input_ids=IDS, labels=IDS, use_cache=False).loss)


class Tied(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(200, width)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 64, batch_first=True), 3)
        self.head = nn.Linear(width, 200, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.layers(self.embed(ids)))


@step
def tied_train() -> Step:
    model = Tied()
    return trained(model, lambda: F.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten()), sgd(model))


@step
def frozen_train() -> Step:
    model = ResNet50()
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith(("layer4", "fc"))
    return trained(model, lambda: F.cross_entropy(model(IMAGES), LABELS), sgd(model))


class Lora(nn.Module):
    def __init__(self, inner: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.inner = inner.requires_grad_(False)
        self.a, self.b = nn.Linear(inner.in_features, rank, False), nn.Linear(rank, inner.out_features, False)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + self.b(self.a(x))


@step
def lora_train() -> Step:
    model = _llama().requires_grad_(False)
    for layer in model.model.layers:
        layer.self_attn.q_proj = Lora(layer.self_attn.q_proj)
        layer.self_attn.v_proj = Lora(layer.self_attn.v_proj)
    return trained(model, lambda: model(input_ids=IDS, labels=IDS).loss)


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.boxes, self.classes = Mlp(16, 32, 32), nn.Linear(32, 4), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.trunk(x)
        return self.boxes(y), self.classes(y)


@step
def two_losses_train() -> Step:
    model, x, y = TwoHeads(), torch.randn(4, 16), torch.tensor([0, 1, 2, 3])
    opt = sgd(model)

    def run() -> None:
        opt.zero_grad()
        boxes, classes = model(x)
        F.l1_loss(boxes, torch.zeros(4, 4)).backward(retain_graph=True)
        F.cross_entropy(classes, y).backward()
        opt.step()

    return model, opt, run


@step
def summed_losses_train() -> Step:
    model, x, y = TwoHeads(), torch.randn(4, 16), torch.tensor([0, 1, 2, 3])

    def loss() -> Tensor:
        boxes, classes = model(x)
        return F.l1_loss(boxes, torch.zeros(4, 4)) + 0.5 * F.cross_entropy(classes, y)

    return trained(model, loss, sgd(model))


@step
def two_optimizers_train() -> Step:
    model, x = TwoHeads(), torch.randn(4, 16)
    first = torch.optim.SGD(model.trunk.parameters(), 0.1)
    second = torch.optim.Adam([*model.boxes.parameters(), *model.classes.parameters()], 1e-3, foreach=False)

    def run() -> None:
        boxes, classes = model(x)
        (boxes.square().mean() + classes.square().mean()).backward()
        first.step()
        second.step()

    return model, [first, second], run


@step
def second_order_train() -> Step:
    model, x = Mlp(), torch.randn(4, 16, requires_grad=True)
    opt = sgd(model)

    def run() -> None:
        opt.zero_grad()
        y = model(x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (y + 10 * (g.norm(2, -1) - 1).square().mean()).backward()
        opt.step()

    return model, opt, run


@step
def two_steps_train() -> Step:
    model, x = Mlp(), torch.randn(4, 16)
    opt = sgd(model)

    def run() -> None:
        for _ in range(2):
            opt.zero_grad()
            F.mse_loss(model(x), torch.zeros(4, 8)).backward()
            opt.step()

    return model, opt, run


class Siamese(nn.Module):
    """The same module three times, on three inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Mlp(16, 32, 16)

    def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        x, y, z = self.net(a), self.net(b), self.net(c)
        return F.triplet_margin_loss(x, y, z)


@step
def siamese_train() -> Step:
    model, inputs = Siamese(), [torch.randn(4, 16) for _ in range(3)]
    return trained(model, lambda: model(*inputs), sgd(model))


@call
def siamese() -> Call:
    return Siamese().eval(), tuple(torch.randn(4, 16) for _ in range(3)), {}


@call
def gan() -> Call:
    gan = Gan().eval()
    gan.forward = lambda z: gan.critic(gan.generator(z))  # type: ignore[method-assign]
    return gan, (torch.randn(4, 16, 4, 4),), {}


@step
def clip_train() -> Step:
    from transformers import CLIPConfig, CLIPModel

    tower: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
    }
    text = {**tower, "vocab_size": 200, "bos_token_id": 1, "eos_token_id": 2}
    vision = {**tower, "image_size": 32, "patch_size": 8}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))
    pixels = torch.randn(2, 3, 32, 32)
    return trained(model, lambda: model(input_ids=IDS, pixel_values=pixels, return_loss=True).loss)


@step
def distilled_train() -> Step:
    """A teacher that nothing is learned by, beside a student."""
    teacher = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10))
    student = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 10))
    x = torch.randn(4, 16)

    def loss() -> Tensor:
        with torch.no_grad():
            wanted = teacher(x)
        return F.kl_div(F.log_softmax(student(x), -1), F.softmax(wanted, -1), reduction="batchmean")

    return trained(nn.ModuleDict({"teacher": teacher, "student": student}), loss, sgd(student))


@step
def unrolled_train() -> Step:
    """An embedding, a cell and a head that are called in turns, at every step of a sequence."""
    model = nn.ModuleDict({"embed": nn.Embedding(50, 16), "cell": nn.LSTMCell(16, 32), "head": nn.Linear(32, 50)})
    ids = IDS[:, :20] % 50

    class Unrolled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = model

        def forward(self, ids: Tensor) -> Tensor:
            h = c = torch.zeros(ids.shape[0], 32)
            out: list[Tensor] = []
            for at in range(ids.shape[1]):
                h, c = self.parts["cell"](self.parts["embed"](ids[:, at]), (h, c))
                out.append(self.parts["head"](h))
            return torch.stack(out, 1)

    unrolled = Unrolled()
    return trained(unrolled, lambda: F.cross_entropy(unrolled(ids).flatten(0, 1), ids.flatten()))
