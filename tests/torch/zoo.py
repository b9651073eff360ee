"""Models of many kinds, each small enough to train one step of in a second, with random weights.

`ZOO[name]()` gives a model and a function that computes its loss. What is written here is written for the tests:
no weights, no downloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Loss = Callable[[Any], Tensor]
ZOO: dict[str, Callable[[], tuple[nn.Module, Loss]]] = {}


def model(make: Callable[[], tuple[nn.Module, Loss]]) -> Callable[[], tuple[nn.Module, Loss]]:
    ZOO[make.__name__] = make
    return make


# -- convolutions -------------------------------------------------------------------------------


class BasicBlock(nn.Module):
    def __init__(self, inside: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or inside != out:
            self.downsample = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """ResNet-18, narrower or wider."""

    def __init__(self, width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._layer(width, width, 1)
        self.layer2 = self._layer(width, 2 * width, 2)
        self.layer3 = self._layer(2 * width, 4 * width, 2)
        self.layer4 = self._layer(4 * width, 8 * width, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * width, classes)

    def _layer(self, inside: int, out: int, stride: int) -> nn.Sequential:
        return nn.Sequential(BasicBlock(inside, out, stride), BasicBlock(out, out))

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


@model
def resnet18() -> tuple[nn.Module, Loss]:
    x, y = torch.randn(2, 3, 32, 32), torch.tensor([1, 2])
    return ResNet(8, 10), lambda m: F.cross_entropy(m(x), y)


@model
def mobile_convolutions() -> tuple[nn.Module, Loss]:
    """Depthwise convolutions, hard activations, squeeze and excitation."""

    class Squeeze(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.down, self.up = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

        def forward(self, x: Tensor) -> Tensor:
            return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))

    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.Hardswish(inplace=True),
        nn.Conv2d(8, 8, 3, 1, 1, groups=8),
        Squeeze(8),
        nn.GroupNorm(2, 8),
        nn.SiLU(),
        nn.Dropout(0.1),
        nn.Flatten(),
        nn.LazyLinear(4),
    )
    x = torch.randn(2, 3, 16, 16)
    net(x)  # makes the lazy layer
    return net, lambda m: m(x).square().mean()


@model
def diffusion_unet() -> tuple[nn.Module, Loss]:
    class Block(nn.Module):
        def __init__(self, inside: int, out: int) -> None:
            super().__init__()
            self.norm, self.conv = nn.GroupNorm(1, inside), nn.Conv2d(inside, out, 3, padding=1)
            self.time = nn.Linear(8, out)

        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            return self.conv(F.silu(self.norm(x))) + self.time(t)[:, :, None, None]

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList([Block(3, 8), Block(8, 16)])
            self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
            self.up = nn.ModuleList([Block(32, 8), Block(16, 3)])

        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            angles = t[:, None] * torch.exp(-torch.arange(4) / 4)
            t = torch.cat([angles.sin(), angles.cos()], dim=1)
            skips = []
            for block in self.down:
                x = block(x, t)
                skips.append(x)
                x = F.avg_pool2d(x, 2)
            b, c, h, w = x.shape
            flat = x.flatten(2).transpose(1, 2)
            x = (flat + self.attention(flat, flat, flat, need_weights=False)[0]).transpose(1, 2).reshape(b, c, h, w)
            for block in self.up:
                x = block(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], dim=1), t)
            return x

    x, noise, t = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8), torch.tensor([3.0, 7.0])
    return UNet(), lambda m: F.mse_loss(m(x + noise, t), noise)


@model
def detector() -> tuple[nn.Module, Loss]:
    """As many proposals as the data say, and a loop over each image's own boxes."""

    class Detector(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Conv2d(3, 8, 3, 2, 1)
            self.score, self.box = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 4, 1)
            self.head = nn.Linear(8 * 4, 5)

        def forward(self, images: Tensor) -> list[Tensor]:
            features = F.relu(self.body(images))
            scores, boxes = self.score(features).flatten(1), self.box(features).flatten(2).transpose(1, 2)
            found = []
            for i in range(len(images)):
                keep = torch.nonzero(scores[i] > scores[i].median()).squeeze(1)
                order = scores[i][keep].argsort(descending=True)[:5]
                crops = []
                for box in boxes[i][keep][order].detach():
                    x, y = int(box[0].abs() * 3) % 4, int(box[1].abs() * 3) % 4
                    crops.append(F.adaptive_max_pool2d(features[i, :, y : y + 4, x : x + 4], 2).flatten())
                found.append(self.head(torch.stack(crops)) * torch.sigmoid(scores[i][keep][order])[:, None])
            return found

    images = torch.randn(2, 3, 16, 16)
    return Detector(), lambda m: sum(result.square().sum() for result in m(images))


# -- sequences ----------------------------------------------------------------------------------


class GPT(nn.Module):
    """A decoder with learned positions and tied embeddings."""

    def __init__(self, width: int = 32, layers: int = 2, heads: int = 4, words: int = 50, length: int = 16) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([GPTBlock(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


class GPTBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


def _next_word(x: Tensor) -> Loss:
    return lambda m: F.cross_entropy(m(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


@model
def gpt() -> tuple[nn.Module, Loss]:
    return GPT(), _next_word(torch.randint(0, 50, (2, 9)))


@model
def checkpointed_gpt() -> tuple[nn.Module, Loss]:
    """Half of the blocks recompute their activations, one of them the old, re-entrant way."""

    class Checkpointed(GPT):
        def forward(self, x: Tensor) -> Tensor:
            h = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
            for i, block in enumerate(self.blocks):
                h = checkpoint(block, h, use_reentrant=i == 1) if i < 2 else block(h)
            return self.head(self.norm(h))

    return Checkpointed(layers=4), _next_word(torch.randint(0, 50, (2, 9)))


@model
def autocast_gpt() -> tuple[nn.Module, Loss]:
    x = torch.randint(0, 50, (2, 9))

    def loss(m: nn.Module) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.cross_entropy(m(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())

    return GPT(), loss


@model
def lstm() -> tuple[nn.Module, Loss]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 12, num_layers=2, bidirectional=True, batch_first=True)
            self.head = nn.Linear(24, 3)

        def forward(self, x: Tensor) -> Tensor:
            out, (h, _) = self.lstm(x)
            return self.head(out) + h.sum()

    x = torch.randn(2, 5, 8)
    return Net(), lambda m: m(x).square().mean()


@model
def gru_cells() -> tuple[nn.Module, Loss]:
    """A cell called once for each step, so one module with many calls."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.rnn = nn.GRUCell(4, 6), nn.RNN(6, 6)

        def forward(self, x: Tensor) -> Tensor:
            h = x.new_zeros(x.shape[1], 6)
            states = []
            for step in x:
                h = self.cell(step, h)
                states.append(h)
            return self.rnn(torch.stack(states))[0]

    x = torch.randn(5, 2, 4)
    return Net(), lambda m: m(x).mean()


@model
def mamba_scan() -> tuple[nn.Module, Loss]:
    """A selective scan that writes its states into one tensor, step by step."""

    class Scan(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(6, 3 * 6)
            self.log_a = nn.Parameter(torch.zeros(6))

        def forward(self, x: Tensor) -> Tensor:
            gate, b, c = self.project(x).chunk(3, dim=-1)
            decay = torch.exp(-F.softplus(gate) * self.log_a.exp())
            out = torch.empty_like(x)
            h = torch.zeros_like(x[:, 0])
            for t in range(x.shape[1]):
                h = decay[:, t] * h + b[:, t] * x[:, t]
                out[:, t] = c[:, t] * h
            return out

    x = torch.randn(2, 6, 6)
    return Scan(), lambda m: m(x).square().sum()


@model
def mixture_of_experts() -> tuple[nn.Module, Loss]:
    """Routing: each expert gets as many tokens as chose it, perhaps none."""

    class MoE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.Linear(8, 4)
            self.experts = nn.ModuleList(
                [nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(4)]
            )

        def forward(self, x: Tensor) -> Tensor:
            weights, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
            out = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                token, slot = torch.where(chosen == i)
                if len(token):
                    out.index_add_(0, token, expert(x[token]) * weights[token, slot, None])
            return out

    x = torch.randn(10, 8)
    return MoE(), lambda m: m(x).square().mean()


# -- what is special about autograd and Python -----------------------------------------------------


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, limit: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.limit = limit
        return x.clamp(-limit, limit) * 1.0

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() <= ctx.limit).to(gradient.dtype), None


@model
def custom_function() -> tuple[nn.Module, Loss]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.b(Clamp.apply(self.a(x), 0.5))

    x = torch.randn(3, 4)
    return Net(), lambda m: m(x).sum()


@torch.library.custom_op("opscope_tests::scaled", mutates_args=(), schema="(Tensor x, float by) -> Tensor")
def scaled(x: Tensor, by: float) -> Tensor:
    return x * by


scaled.register_fake(lambda x, by: torch.empty_like(x))
scaled.register_autograd(
    lambda ctx, gradient: (gradient * ctx.by, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
)


@model
def custom_operator() -> tuple[nn.Module, Loss]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return scaled(self.a(x), 0.5)

    x = torch.randn(3, 4)
    return Net(), lambda m: m(x).sum()


@model
def graph_network() -> tuple[nn.Module, Loss]:
    """Messages along edges: gather, scatter, segment maximum."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.message, self.update = nn.Linear(8, 4), nn.Linear(8, 4)

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            source, target = edges
            m = F.relu(self.message(torch.cat([x[source], x[target]], dim=1)))
            total = torch.zeros_like(x).scatter_add(0, target[:, None].expand_as(m), m)
            most = torch.zeros_like(x).scatter_reduce(0, target[:, None].expand_as(m), m, "amax")
            return self.update(torch.cat([total, most], dim=1))

    x, edges = torch.randn(5, 4), torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
    return Net(), lambda m: m(x, edges).square().sum()


@model
def shared_and_nested() -> tuple[nn.Module, Loss]:
    """One layer under two names, called from two places; keyword arguments; dictionaries."""

    class Inner(nn.Module):
        def __init__(self, layer: nn.Module) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, *, x: Tensor) -> dict[str, Tensor]:
            return {"y": self.layer(x).tanh()}

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.inner = nn.ModuleDict({"a": Inner(self.layer), "b": Inner(self.layer)})

        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            x = batch["x"]
            for inner in self.inner.values():
                x = inner(x=x)["y"]
            return self.layer(x)

    x = torch.randn(3, 4)
    return Outer(), lambda m: m({"x": x}).sum()


@model
def data_dependent() -> tuple[nn.Module, Loss]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x) if x.sum() > 0 else self.b(x)
            while x.norm() > 1:
                x = x / 2
            return x

    x = torch.randn(3, 4)
    return Net(), lambda m: m(x).sum()


@model
def generator_of_layers() -> tuple[nn.Module, Loss]:
    """forward() is a generator: its operators run after the call has returned."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

        def forward(self, x: Tensor) -> Iterator[Tensor]:
            for layer in self.layers:
                x = layer(x) * 2
                yield x

    x = torch.randn(3, 4)
    return Net(), lambda m: sum(y.sum() for y in m(x))


@model
def views_and_writes() -> tuple[nn.Module, Loss]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(6, 6)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            y = self.a(x)
            left, right = y[:, :3], y[:, 3:]
            left.mul_(2)
            right.add_(left.detach())
            self.count += 1
            y.t()[0].zero_()
            return y.view(-1).unfold(0, 3, 3) * self.count

    x = torch.randn(3, 6)
    return Net(), lambda m: m(x).sum()


@model
def second_order() -> tuple[nn.Module, Loss]:
    """A gradient penalty: the gradient of a gradient."""
    x = torch.randn(3, 4)

    def loss(m: nn.Module) -> Tensor:
        given = x.clone().requires_grad_()
        y = m(given).sum()
        (gradient,) = torch.autograd.grad(y, given, create_graph=True)
        return y + gradient.square().sum()

    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), loss


@model
def functional_transforms() -> tuple[nn.Module, Loss]:
    """torch.func: a vmap and a jacobian inside a model."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            rows = torch.func.vmap(lambda row: self.a(row).tanh())(x)
            return rows + torch.func.jacrev(lambda v: (v * v).sum())(x)

    x = torch.randn(3, 4)
    return Net(), lambda m: m(x).sum()


@model
def complex_and_sparse() -> tuple[nn.Module, Loss]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.filter = nn.Parameter(torch.randn(3, dtype=torch.complex64))
            self.words = nn.EmbeddingBag(10, 4, mode="sum", sparse=True)

        def forward(self, x: Tensor, words: Tensor) -> Tensor:
            spectrum = torch.fft.rfft(x) * self.filter
            return torch.fft.irfft(spectrum, n=4) + self.words(words)

    x, words = torch.randn(2, 4), torch.tensor([[1, 2], [3, 3]])
    return Net(), lambda m: m(x, words).square().sum()


@model
def scripted() -> tuple[nn.Module, Loss]:
    """A TorchScript module inside an ordinary one."""
    import warnings

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.a = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
            self.b = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.b(self.a(x))

    x = torch.randn(3, 4)
    return Net(), lambda m: m(x).sum()


# -- Hugging Face, with random weights --------------------------------------------------------------


def _ids(length: int = 8, words: int = 50) -> Tensor:
    return torch.randint(1, words, (2, length))


@model
def bert() -> tuple[nn.Module, Loss]:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    ids = _ids()
    return BertForMaskedLM(config), lambda m: m(input_ids=ids, labels=ids).loss


@model
def gpt2() -> tuple[nn.Module, Loss]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=32)
    ids = _ids()
    return GPT2LMHeadModel(config), lambda m: m(input_ids=ids, labels=ids).loss


def _llama(**more: Any) -> dict[str, Any]:
    return {
        "vocab_size": 50,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        **more,
    }


@model
def llama() -> tuple[nn.Module, Loss]:
    from transformers import LlamaConfig, LlamaForCausalLM

    ids = _ids()
    return LlamaForCausalLM(LlamaConfig(**_llama())), lambda m: m(input_ids=ids, labels=ids).loss


@model
def mixtral() -> tuple[nn.Module, Loss]:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(**_llama(num_local_experts=4, num_experts_per_tok=2))
    ids = _ids()
    return MixtralForCausalLM(config), lambda m: m(input_ids=ids, labels=ids).loss


@model
def t5() -> tuple[nn.Module, Loss]:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0)
    ids = _ids()
    return T5ForConditionalGeneration(config), lambda m: m(input_ids=ids, labels=ids).loss


@model
def vit() -> tuple[nn.Module, Loss]:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=4
    )
    pixels, labels = torch.randn(2, 3, 16, 16), torch.tensor([0, 1])
    return ViTForImageClassification(config), lambda m: m(pixel_values=pixels, labels=labels).loss


@model
def whisper() -> tuple[nn.Module, Loss]:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=60,
        num_mel_bins=8,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_source_positions=16,
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    sound, ids = torch.randn(2, 8, 32), _ids(6)
    return WhisperForConditionalGeneration(config), lambda m: m(input_features=sound, labels=ids).loss


@model
def clip() -> tuple[nn.Module, Loss]:
    from transformers import CLIPConfig, CLIPModel

    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = CLIPConfig(
        text_config={**small, "vocab_size": 50, "max_position_embeddings": 16, "eos_token_id": 49},
        vision_config={**small, "image_size": 16, "patch_size": 8},
        projection_dim=8,
    )
    ids, pixels = _ids(), torch.randn(2, 3, 16, 16)
    return CLIPModel(config), lambda m: m(input_ids=ids, pixel_values=pixels, return_loss=True).loss
