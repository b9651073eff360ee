"""Modules: shared, parametrized, lazy, recurrent, quantized, scripted, exported, compiled."""

from __future__ import annotations

import contextlib
import copy
import pickle
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from .common import batch, mlp, scenario, state, trained


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


@scenario()
def exported_with_open_sizes() -> Any:
    model, x = mlp().eval(), batch()
    program = torch.export.export(model, (x,), dynamic_shapes={"input": {0: torch.export.Dim("n")}})
    run = program.module()
    done = program.run_decompositions()
    return run(x), run(torch.randn(7, 8)), done.module()(x)


@scenario()
def edited_by_fx() -> Any:
    model, x = mlp(), batch()
    graph = torch.fx.symbolic_trace(model)
    for node in graph.graph.nodes:
        if node.op == "call_module" and node.target == "1":
            with graph.graph.inserting_after(node):
                new = graph.graph.call_function(torch.mul, (node, 2))
            node.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
    graph.recompile()
    y = graph(x)
    return y, torch.fx.Interpreter(graph).run(x), trained(graph, lambda: graph(x).sum())


@scenario()
def compiled_with_breaks() -> Any:
    model, x, seen = mlp(), batch(), []

    @torch.compile(backend="eager")
    def run(x: Tensor) -> Tensor:
        y = model(x)
        seen.append(float(y.sum()))
        return y.relu() if y.sum() > 0 else y

    return run(x), run(x[:2]), torch.tensor(seen)


@scenario()
def a_compiled_module_in_place() -> Any:
    model, x = mlp(), batch()
    model.compile(backend="aot_eager")
    found = trained(model, lambda: model(x).sum())
    return found, torch.compiler.disable(model)(x)


@scenario()
def mixture_of_experts() -> Any:
    gate, experts, x = nn.Linear(8, 3), nn.ModuleList(nn.Linear(8, 8) for _ in range(3)), torch.randn(10, 8)
    weights, chosen = gate(x).softmax(-1).topk(2)
    out = torch.zeros_like(x)
    for place, expert in enumerate(experts):
        rows, slot = (chosen == place).nonzero(as_tuple=True)
        if len(rows):
            out = out.index_add(0, rows, expert(x[rows]) * weights[rows, slot, None])
    out.square().sum().backward()
    return out, state(gate, experts)


@scenario()
def a_cache_of_keys_and_values() -> Any:
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    keys, found = torch.zeros(1, 0, 8), []
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(1, 1, 8)
            keys = torch.cat([keys, x], 1)
            y, weights = layer(x, keys, keys)
            found += [y, weights]
    return found


@scenario()
def shared_and_repeated_layers() -> Any:
    block = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    model = nn.Sequential(block, block, nn.Sequential(block, nn.Linear(8, 8)))
    return trained(model, lambda: model(batch()).sum())


@scenario()
def every_convolution() -> Any:
    x = torch.randn(2, 4, 9, 9, requires_grad=True)
    layers = [
        nn.Conv2d(4, 8, 3, 2, 1, groups=2),
        nn.ConvTranspose2d(8, 4, 3, 2, output_padding=1),
        nn.Conv2d(4, 4, 3, padding="same", dilation=2, padding_mode="reflect"),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.PixelUnshuffle(2),
        nn.AdaptiveAvgPool2d(3),
        nn.Unfold(2),
    ]
    y = nn.Sequential(*layers)(x)
    y.sum().backward()
    return y, x.grad, state(*layers)


@scenario()
def every_normalization() -> Any:
    x = torch.randn(3, 4, 5, requires_grad=True)
    layers = [
        nn.BatchNorm1d(4, momentum=None),
        nn.GroupNorm(2, 4),
        nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
        nn.LayerNorm(5),
        nn.RMSNorm(5),
        nn.LocalResponseNorm(2),
    ]
    model = nn.Sequential(*layers)
    model(x).square().sum().backward()
    frozen = model.eval()(x.detach())
    return x.grad, frozen, state(model)


@scenario()
def adapters_by_hooks() -> Any:
    model, down, up = mlp().requires_grad_(False), nn.Linear(16, 2), nn.Linear(2, 16)
    handle = model[0].register_forward_hook(lambda m, args, out: out + up(down(out)))
    kwargs = model[2].register_forward_pre_hook(lambda m, args, kw: (args, kw), with_kwargs=True)
    found = trained(nn.Sequential(down, up), lambda: model(batch()).sum())
    handle.remove()
    kwargs.remove()
    return found, model(batch())


@scenario()
def state_hooks_and_strictness() -> Any:
    model, other, seen = mlp(), mlp(), []
    other.register_load_state_dict_pre_hook(lambda *args: seen.append(1))
    held = {name: value.half() for name, value in model.state_dict().items()}
    held["more"] = torch.zeros(1)
    found = other.load_state_dict(held, strict=False)
    nn.utils.parameters_to_vector(other.parameters())
    nn.utils.vector_to_parameters(torch.ones(16 * 8 + 16 + 16 * 4 + 4), model.parameters())
    return other(batch()), torch.tensor(len(found.unexpected_keys)), state(model)
