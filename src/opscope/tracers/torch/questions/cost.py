"""A PyTorch model run once for its cost: for real, or on fake tensors, which have shapes but no numbers."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, MethodType
from typing import Any

from opscope.errors import OpscopeError
from opscope.tracers.arguments import is_a
from opscope.tracers.contract import Count, Held
from opscope.tracers.frames import OWN, frame_at
from opscope.tracers.torch.graphs.guard import unchanged
from opscope.tracers.torch.kept import free_memory, modules_in
from opscope.tracers.torch.parts import parts, stored
from opscope.tracers.torch.private import attributes_taken, fake_maker, find, the_torch
from opscope.tracers.torch.recorder import record_call
from opscope.tracers.torch.recorder.wrapped import plain

from .copies import copied
from .subject import mapped, tensors_in

_SPARE = 1.5  # a forward pass needs the parameters and something for the activations
_TRAINED = 4.0  # parameters, their gradients, activations


def count(
    target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, train: bool, fake: bool | None, caller: FrameType
) -> Count:
    torch = the_torch()
    if train and not isinstance(target, torch.nn.Module):
        raise OpscopeError(f"train=True needs a torch.nn.Module, not {type(target).__qualname__}")
    with attributes_taken(torch) as taken:
        return _count(target, args, kwargs, train=train, fake=fake, caller=caller, taken=taken)


def _count(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    train: bool,
    fake: bool | None,
    caller: FrameType,
    taken: set[int],
) -> Count:
    torch = the_torch()
    modules = modules_in((target,))
    if any(map(_is_lazy, _tensors(modules))):
        target = _made_whole(target, args, kwargs)
        modules = modules_in((target,))
    tensors = [*tensors_in((args, kwargs)), *_tensors(modules)]
    has_numbers = all(map(_is_real, tensors))
    if fake is None:
        fake = not has_numbers or not _fits(tensors, train)
    if not fake:
        return Count(_on_real(target, args, kwargs, train, caller, tensors), tuple(_held(modules, taken)))
    if not isinstance(target, torch.nn.Module):
        if has_numbers:
            return Count(_on_real(target, args, kwargs, train, caller, tensors), tuple(_held(modules, taken)))
        raise OpscopeError("only a torch.nn.Module can be counted without numbers")
    guesses: list[str] = []
    try:
        capture = _on_fake(target, args, kwargs, train, caller, None, taken)
    except Exception as error:
        # Whatever fake tensors stumble over, real ones may not: shapes that depend on data, kernels that torch has no
        # shapes for. If the model itself is at fault, it says so there.
        if has_numbers and _fits(tensors, train):
            return Count(_on_real(target, args, kwargs, train, caller, tensors), tuple(_held(modules, taken)))
        if not _depends_on_data(error):
            raise
        capture = _on_fake(target, args, kwargs, train, caller, guesses, taken)
    return Count(capture, tuple(_held(modules, taken)), tuple(dict.fromkeys(guesses)))


class _CannotCopy(OpscopeError):
    """Some models hold what cannot be without numbers: packed weights, handles."""


# -- on real tensors -----------------------------------------------------------------------------------


def _on_real(
    target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], train: bool, caller: FrameType, tensors: list[Any]
) -> Any:
    with ExitStack() as stack:
        # The model's own arguments too: some models write to them, or fill a cache that they are given.
        before_write = stack.enter_context(unchanged(target, args, kwargs, numbers=False)).kept.before_write
        stack.enter_context(_gradients_kept(tensors))
        return record_call(_called(target, train), args, kwargs, caller=caller, lean=True, before_write=before_write)


@contextmanager
def _gradients_kept(tensors: list[Any]) -> Generator[None, None, None]:
    leaves = [t for t in tensors if t.is_leaf and t.requires_grad]
    before = [(t, t.grad) for t in leaves]
    for tensor in leaves:
        tensor.grad = None
    try:
        yield
    finally:
        for tensor, gradient in before:
            tensor.grad = gradient


def _called(target: Any, train: bool) -> Any:
    """What is called: the model, or the model and its backward pass."""
    if not train:
        return target
    torch = the_torch()

    def forward_and_backward(model: Any, *args: Any, **kwargs: Any) -> Any:
        model.train()
        with torch.enable_grad():
            result = model(*args, **kwargs)
            loss: Any = getattr(result, "loss", None)
            if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
                parts = [tensor.sum() for tensor in tensors_in(result) if tensor.requires_grad]
                if not parts:
                    raise OpscopeError("train=True: nothing that the model returns requires a gradient")
                loss = sum(parts[1:], parts[0])
            loss.sum().backward() if loss.dim() else loss.backward()
        return result

    own = [inspect.Parameter("model", inspect.Parameter.POSITIONAL_ONLY)]
    try:
        given = list(inspect.signature(target.forward).parameters.values())
        forward_and_backward.__signature__ = inspect.Signature([*own, *given])  # pyright: ignore[reportFunctionMemberAccess]
    except (TypeError, ValueError):
        pass
    return MethodType(forward_and_backward, target)


# -- on fake tensors -----------------------------------------------------------------------------------


def _on_fake(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    train: bool,
    caller: FrameType,
    guesses: list[str] | None,
    taken: set[int],
) -> Any:
    """On a copy of the model whose tensors have no numbers. With `guesses`, what Python wants to read is made up."""
    torch = the_torch()
    fakes: Any = find("torch._subclasses.fake_tensor", "FakeTensorMode")
    if fakes is None:
        raise OpscopeError(f"torch {torch.__version__} has no fake tensors: count with fake=False")
    held = _tensors([target])
    mode = _mode_of([*tensors_in((args, kwargs)), *held]) or fakes(allow_non_fake_inputs=True)
    memo: dict[int, Any] = {}
    memory = Counter(_place(tensor) for tensor in {id(tensor): tensor for tensor in held}.values())
    make = fake_maker(torch, mode)
    for tensor in held:
        if id(tensor) not in memo and memory[_place(tensor)] == 1 and _is_plain(tensor):
            memo[id(tensor)] = _quickly_faked(make, tensor)
    with unchanged(), mode:  # what runs is the copy
        for tensor in held:
            if id(tensor) not in memo:
                memo[id(tensor)] = _faked(mode, tensor)
        given, named = mapped(lambda tensor: _faked(mode, tensor), (args, kwargs))
        try:
            model = copied(target, memo)
        except Exception as error:
            raise _CannotCopy(
                f"the model cannot be copied without its numbers ({type(error).__name__}: {error}): "
                "it can only be counted with numbers"
            ) from error
        with ExitStack() as stack:
            if guesses is not None:
                stack.enter_context(guessing(guesses))
            # Symbolic sizes are torch's to work out.
            fakes = mode if getattr(mode, "shape_env", None) is None else None
            try:
                return record_call(_called(model, train), given, named, caller=caller, lean=True, fakes=fakes)
            finally:
                taken.update([own for own, fake in memo.items() if id(fake) in taken])


def _mode_of(tensors: list[Any]) -> Any:
    """The mode that the user's own fake tensors belong to."""
    return next((t.fake_mode for t in tensors if type(t).__name__ == "FakeTensor"), None)


def _faked(mode: Any, tensor: Any) -> Any:
    torch = the_torch()

    if type(tensor).__name__ == "FakeTensor" or hasattr(tensor, "fake_mode"):
        return tensor
    if tensor.is_meta:  # on a device: `meta` takes other ways than any real one
        plain = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    else:
        plain = mode.from_tensor(tensor.detach())
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(plain, requires_grad=tensor.requires_grad)
    return plain.requires_grad_(tensor.requires_grad) if tensor.requires_grad else plain


def _is_plain(tensor: Any) -> bool:
    torch = the_torch()

    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided and _is_real(tensor)


def _quickly_faked(make: Any, tensor: Any) -> Any:
    """What `from_tensor` gives for a tensor that shares its memory with no other, at a tenth of the time."""
    torch = the_torch()

    fake = make(torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"), tensor.device)
    if isinstance(tensor, torch.nn.Parameter):
        fake._is_param = True  # what makes a tensor of another class a parameter
    return fake.requires_grad_(tensor.requires_grad)


def _depends_on_data(error: BaseException) -> bool:
    names = ("DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode")
    seen: BaseException | None = error
    while seen is not None:
        if (
            type(seen).__name__ in names
            or "data-dependent" in str(seen).lower()
            or "data dependent" in str(seen).lower()
        ):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


@contextmanager
def guessing(guesses: list[str]) -> Generator[None, None, None]:
    """Answers every number that Python reads out of a fake tensor: True, 1 or 1.0; and says where."""
    torch = the_torch()
    base: Any = find("torch.utils._python_dispatch", "TorchDispatchMode")

    item = torch.ops.aten._local_scalar_dense.default
    root = os.path.dirname(torch.__file__) + os.sep

    class Guess(base):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is not item or type(args[0]).__name__ != "FakeTensor":
                return func(*args, **(kwargs or {}))
            dtype = args[0].dtype
            guess = True if dtype == torch.bool else 1.0 if dtype.is_floating_point else 1
            frame: FrameType | None = frame_at(1)
            while frame is not None and frame.f_code.co_filename.startswith((root, OWN)):
                frame = frame.f_back
            where = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "somewhere"
            guesses.append(f"{where} reads a number that fake tensors do not have: taken as {guess}")
            return guess

    with Guess():
        yield


# -- what there is -------------------------------------------------------------------------------------


def _tensors(modules: list[Any]) -> list[Any]:
    """Parameters and buffers, each once."""
    held = [t for part in parts(*modules) for where in ("_parameters", "_buffers") for _, t in stored(part, where)]
    return list({id(tensor): tensor for tensor in held if is_a(tensor, the_torch().Tensor)}.values())


def _is_lazy(tensor: Any) -> bool:
    is_lazy: Any = find("torch.nn.parameter", "is_lazy")
    return is_lazy is not None and bool(is_lazy(tensor))


def _made_whole(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A copy of a model with lazy modules, whose parameters have the sizes that a first call gives them."""
    lazy = [tensor for tensor in _tensors([target]) if _is_lazy(tensor)]
    with unchanged(args, kwargs):
        # torch cannot copy those that are buffers.
        memo = {id(t): type(t)(t.requires_grad, device=t.data.device, dtype=t.data.dtype) for t in lazy}
        model = copied(target, memo)
        with the_torch().no_grad():
            model(*args, **kwargs)
    return model


def _is_real(tensor: Any) -> bool:
    return not tensor.is_meta and type(tensor).__name__ != "FakeTensor" and not hasattr(tensor, "fake_mode")


def _held(modules: list[Any], taken: set[int]) -> Iterator[Held]:
    """Parameters, unique by their memory: two parts of one flat buffer are two. Of those that are spread over several
    processes (DTensor), the part that is here."""
    by_place: dict[Any, tuple[list[str], Any, list[Any]]] = {}
    for module in modules[:1]:
        for path, outer in module.named_parameters(remove_duplicate=False):
            for name, tensor in plain(outer, path):
                names, _, outers = by_place.setdefault(_window(tensor), ([], tensor, []))
                names.append(name)
                outers.append(outer)
    for names, tensor, outers in by_place.values():
        yield Held(
            tuple(names),
            str(tensor.dtype).removeprefix("torch."),
            tensor.numel(),
            tensor.numel() * tensor.element_size(),
            bool(outers[0].requires_grad),
            any(id(outer) in taken for outer in outers),
        )


def _place(tensor: Any) -> Any:
    try:
        storage = tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):  # sparse
        return id(tensor)
    return storage._cdata


def _window(tensor: Any) -> Any:
    try:
        return _place(tensor), tensor.storage_offset(), tensor.numel()
    except (RuntimeError, NotImplementedError):
        return _place(tensor)


def _fits(tensors: list[Any], train: bool) -> bool:
    """Whether the memory that is free will do, by a rough measure."""
    needed = sum(t.numel() * t.element_size() for t in tensors if t.is_meta)
    there = sum(t.numel() * t.element_size() for t in tensors if _is_real(t))
    free = free_memory()
    return free is None or needed + there * ((_TRAINED if train else _SPARE) - 1) < free
