"""Operators on fake tensors: what one gave for arguments of the same shapes, it gives again.

Working out the result of an operator on fake tensors takes torch longer than many a real operator takes to run. A model
calls the same operators on the same shapes again and again, so the first answer is kept: as shapes, strides, and which
argument a result is a view of. Only what those decide is kept; all else goes to torch every time.

Views are made without asking torch's fake tensors at all: they are the same on every device, and its kernels for
tensors without memory (`meta`) give them in a hundredth of the time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from opscope.tracers.torch.private import fake_maker, find
from opscope.tracers.torch.ranks.mode import are_real

from .memory import WINDOW_BITS, Memory

_WINDOW = (1 << WINDOW_BITS) - 1
_NOT_ALWAYS_THE_SAME = ("data_dependent_output", "dynamic_output_shape", "inplace_view")


class _Result(NamedTuple):
    """One tensor of an answer. `of` is the place among the arguments of the tensor that it is a view of, or -1."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: Any
    device: Any
    of: int


class FakeResults:
    """Runs operators for one recording on the fake tensors of one mode."""

    def __init__(self, torch: Any, mode: Any, memory: Memory) -> None:
        self._torch = torch
        self._mode = mode
        self._make = fake_maker(torch, mode)
        self._place_of = memory.place_of
        self._fake: type[Any] = find("torch._subclasses.fake_tensor", "FakeTensor")
        self._answers: dict[Any, Any] = {}  # by operator and arguments; None where an answer cannot be kept
        self._keeps: dict[Any, bool] = {}  # by operator
        self._device = torch.ops.prim.device.default
        self._below: Any = torch._C._DisableTorchDispatch
        self._dtype, self._inference = torch.get_default_dtype, torch.is_inference_mode_enabled

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func is self._device and type(args[0]) is self._fake:
            return args[0].fake_device  # torch's kernels ask for it all the time
        keeps = self._keeps.get(func)
        if keeps is None:
            keeps = self._keeps[func] = self._is_kept(func)
        if not keeps or self._inference() or are_real():
            return func(*args, **kwargs)
        tensors: list[Any] = []
        try:
            key: Any = (func, self._dtype(), self._key(args, tensors), self._key(kwargs.items(), tensors))
            answer = self._answers.get(key, self)
        except (TypeError, RuntimeError, NotImplementedError):  # what has no hash, no strides, or is not fake
            return func(*args, **kwargs)
        if answer is self:
            if getattr(func, "is_view", False) and len(tensors) == 1 and self._is_plain(tensors[0]):
                out, kind = self._view(func, args, kwargs), self._torch.Tensor
            else:
                out, kind = func(*args, **kwargs), self._fake
            answer = self._answers[key] = self._kept(out, kind, tensors)
            if kind is self._fake:
                return out
        if answer is None:
            return func(*args, **kwargs)
        if isinstance(answer, _Result):
            return self._made(answer, tensors)
        kind, results = answer
        return kind(result and self._made(result, tensors) for result in results)

    def _is_kept(self, func: Any) -> bool:
        """Whether the shapes of its arguments say all about the shapes of its results, and it writes to nothing."""
        schema = getattr(func, "_schema", None)
        if schema is None or getattr(func, "namespace", "") not in ("aten", "prims"):
            return False
        tags = {str(tag).rpartition(".")[2] for tag in getattr(func, "tags", ())}
        return not schema.is_mutable and not tags.intersection(_NOT_ALWAYS_THE_SAME)

    def _key(self, arguments: Any, tensors: list[Any]) -> tuple[Any, ...]:
        found: list[Any] = []
        for value in arguments:
            if isinstance(value, self._torch.Tensor):
                # Other tensors have more to them than a window; one with a constant has its numbers.
                if type(value) is not self._fake or value.constant is not None or value.fake_mode is not self._mode:
                    raise TypeError
                found.append(self._place_of(value) & _WINDOW)
                found.append(value.fake_device)
                tensors.append(value)
            elif type(value) in (list, tuple):
                found.append(self._key(value, tensors))
            else:
                found.append(value)
                found.append(type(value))  # 1, 1.0 and True are equal
        return tuple(found)

    def _view(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a view of a tensor without memory is."""

        def plain(value: Any) -> Any:
            return self._shown(value) if isinstance(value, self._fake) else value

        with self._below():
            return func(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})

    def _is_plain(self, tensor: Any) -> bool:
        return tensor.layout is self._torch.strided and not tensor.is_conj() and not tensor.is_neg()

    def _kept(self, out: Any, kind: type[Any], tensors: list[Any]) -> Any:
        if not all(map(self._is_plain, tensors)):
            return None
        owners = {t.untyped_storage()._cdata: place for place, t in reversed(list(enumerate(tensors)))}
        if type(out) is kind:
            return self._result(out, owners, tensors)
        if type(out) not in (list, tuple):
            return None
        results: list[_Result | None] = []
        for item in out:
            result = self._result(item, owners, tensors) if type(item) is kind else None
            if result is None and item is not None:
                return None
            results.append(result)
        fresh = [t.untyped_storage()._cdata for t in out if t is not None]
        fresh = [address for address in fresh if address not in owners]
        return (type(out), results) if len(set(fresh)) == len(fresh) else None

    def _result(self, out: Any, owners: dict[int, int], tensors: list[Any]) -> _Result | None:
        """None where a tensor made from this would be another one."""
        is_fake = type(out) is self._fake
        if not self._is_plain(out) or any(out is t for t in tensors) or (is_fake and out.constant is not None):
            return None
        storage = out.untyped_storage()
        of = owners.get(storage._cdata, -1)
        device = out.fake_device if is_fake else tensors[0].fake_device
        found = _Result(tuple(out.shape), tuple(out.stride()), out.storage_offset(), out.dtype, device, of)
        if not all(type(size) is int for size in (*found.shape, *found.stride, found.offset)):
            return None  # symbols
        if of < 0 and (found.offset or self._made(found, tensors).untyped_storage().nbytes() != storage.nbytes()):
            return None
        return found

    def _made(self, result: _Result, tensors: list[Any]) -> Any:
        shape, stride, offset, dtype, device, of = result
        with self._below():
            if of < 0:
                plain = self._torch.empty_strided(shape, stride, dtype=dtype, device="meta")
            else:
                plain = self._window(tensors[of].untyped_storage(), offset, shape, stride, dtype)
        return self._make(plain, device)

    def _shown(self, fake: Any) -> Any:
        """The meta tensor that shows the same memory as a fake one."""
        return self._window(fake.untyped_storage(), fake.storage_offset(), fake.shape, fake.stride(), fake.dtype)

    def _window(self, storage: Any, offset: int, shape: Any, stride: Any, dtype: Any) -> Any:
        return self._torch.empty_strided((0,), (1,), dtype=dtype, device="meta").set_(storage, offset, shape, stride)
