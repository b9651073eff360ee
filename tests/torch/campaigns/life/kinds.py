"""Kinds of tensors, and modes around them."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from .common import batch, mlp, scenario, state


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


@scenario()
def sparse_of_every_layout() -> Any:
    dense = torch.eye(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [dense.to_sparse_csc(), dense.to_sparse_bsr((2, 2)), dense.to_sparse_bsc((2, 2))]
        semi = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).coalesce()
        return [f.to_dense() for f in found], semi @ torch.ones(2, 3), (semi * 2).to_dense(), semi.t().to_dense()


@scenario()
def small_floats_and_integers() -> Any:
    x = torch.randn(4, 8)
    f8 = x.to(torch.float8_e4m3fn).to(torch.float32)
    half = (x.half() @ x.half().T).float()
    whole = torch.arange(8, dtype=torch.uint8).view(torch.int8) << 1
    return f8, half, whole, (x > 0).sum(), torch.bitwise_xor(whole, whole + 1), x.to(torch.bfloat16).cumsum(0)


@scenario()
def quantized_tensors() -> Any:
    x = batch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
        fake = torch.fake_quantize_per_tensor_affine(x.requires_grad_(), 0.1, 0, -128, 127)
        fake.sum().backward()
        return q.dequantize(), q.int_repr(), fake, x.grad


@scenario()
def views_of_views() -> Any:
    x = torch.arange(24.0)
    y = x.view(2, 3, 4).transpose(0, 2)[1:, ::2].unfold(0, 2, 1)
    y.zero_()
    z = x.view(4, 6)
    z.diagonal().add_(1)
    z.unsqueeze(0).expand(3, 4, 6).sum(0)
    torch.as_strided(x, (5,), (4,), 1).copy_(torch.arange(5.0))
    a, b = x.chunk(2)
    a.swapaxes(0, 0).add_(b)
    torch.movedim(z, 0, 1)[0].mul_(2)
    return x, y, z


@scenario()
def results_given_by_out() -> Any:
    x, out, empty = batch(), torch.empty(4, 8), torch.empty(0)
    torch.add(x, x, out=out)
    torch.matmul(x, x.T, out=empty)
    values, places = torch.empty(4, 2), torch.empty(4, 2, dtype=torch.long)
    torch.topk(x, 2, out=(values, places))
    torch.cat([x, x], out=(joined := torch.empty(8, 8)))
    return out, empty, values, places, joined


class Tagged(torch.Tensor):
    tag = "none"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(found, Tagged):
            found.tag = next((a.tag for a in args if isinstance(a, Tagged)), "none")
        return found


@scenario()
def a_subclass_that_keeps_a_tag() -> Any:
    model, x = mlp(), batch().as_subclass(Tagged)
    x.tag = "mine"
    y = model(x)
    assert y.tag == "mine" or y.tag == "none"
    return torch.Tensor(y.detach()), torch.tensor(len(y.tag))


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner: Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = torch.utils._pytree.tree_map_only(Wrapped, lambda t: t.inner, (args, kwargs or {}))
        out = func(*plain[0], **plain[1])
        return torch.utils._pytree.tree_map_only(Tensor, Wrapped, out)


@scenario()
def a_wrapper_of_ones_own() -> Any:
    x = Wrapped(batch())
    y = (x @ x.T).relu() * 2
    y.add_(1)
    return y.inner, x.inner


@scenario()
def complex_networks() -> Any:
    w = torch.randn(8, 8, dtype=torch.complex64, requires_grad=True)
    x = torch.randn(4, 8, dtype=torch.complex64)
    y = torch.polar(x.abs(), x.angle()) @ w.conj().T
    z = torch.einsum("bi,ij->bj", y, w) + torch.linalg.inv(w + 9 * torch.eye(8))[0]
    (z.real.square() + z.imag.square()).sum().backward()
    return z, w.grad, torch.stft(torch.randn(64), 16, return_complex=True, window=torch.hann_window(16))


@scenario()
def symbolic_shapes() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    model = mlp()
    x = mode.from_tensor(torch.randn(4, 8))
    with mode:
        y = model(x)
    return torch.tensor([int(size) for size in y.shape])


@scenario()
def deferred_and_empty() -> Any:
    with torch.device("meta"):
        model = mlp()
    model.to_empty(device="cpu")
    for p in model.parameters():
        nn.init.constant_(p, 0.1)
    none = torch.empty(0, 8)
    y = model(none)
    y.sum().backward()
    return y, state(model), torch.zeros(3, 0) @ torch.zeros(0, 2), model(torch.ones(1, 8))
