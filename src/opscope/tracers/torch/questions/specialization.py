"""Does a traced function keep what only held for the input that it was traced with?

A tracer that runs the model once keeps the branch that this input took, and the numbers that Python read out of it,
without a word. So the model and the traced function are run on other inputs of the same shapes and types: where their
results differ, the recorder's account of both runs tells which line read the data.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from opscope.ir import Capture, Frame
from opscope.tracers.torch.graphs import fx
from opscope.tracers.torch.graphs.frames import is_users
from opscope.tracers.torch.private import the_torch, uncompiled

from .subject import Arguments, Subject, alone, copied, mapped, tensors_in

# Operators by which numbers get into Python, or decide how large a result is.
_READS = (
    "aten._local_scalar_dense",
    "aten.item",
    "aten.is_nonzero",
    "aten.equal",
    "aten.allclose",
    "aten.nonzero",
    "aten.masked_select",
    "aten._unique",
    "aten.unique",
    "aten.repeat_interleave",
    "aten.bincount",
)

_PLACE = re.compile(r"(.+?):(\d+): ")  # how a warning of jit-trace begins

Line = tuple[str, int]


class Finding(NamedTuple):
    """What a traced function has of its one input. The file is empty where the line is not known."""

    words: str
    file: str = ""
    line: int = 0


class Inputs:
    """Other inputs, and what the model does with them."""

    def __init__(self, subject: Subject, recorded: Capture | None) -> None:
        self.branch: Line | None = None  # where another input goes another way
        self.reads: list[Line] = []  # where Python reads numbers
        self.results: list[tuple[Arguments, Any]] = []
        if recorded is None or not subject.has_numbers():
            return
        first = _account(recorded)
        self.reads = list(dict.fromkeys(_line(row.frames) for row in first if row.is_read))
        for given in [subject.given, *_others(subject.given)]:
            try:
                other, result = (
                    first if given is subject.given else _account(subject.record(given)),
                    subject.run(given),
                )
            except Exception:  # not an input that the model can take
                if given is subject.given:
                    return
                continue
            self.results.append((given, result))
            self.branch = self.branch or _parting(first, other)


def check(subject: Subject, how: str, capture: Capture, inputs: Inputs) -> Finding | None:
    """What this way has baked in, if anything."""
    make = _TRACED.get(how)
    if make is None or not inputs.results:
        return None
    if how != "jit-trace" and not inputs.reads:
        return None  # the others fail on what leaves torch unseen, and to trace once more may take as long as at first
    try:
        with subject.trial() as (target, args, kwargs):
            traced = make(uncompiled(target), args, kwargs, strict=how == "export-strict")
            agrees = [_agrees(traced, given, result) for given, result in inputs.results]
    except Exception:
        agrees = [None]
    if agrees[0] is not True:  # by chance, or results of another form: only the recordings can be compared
        return _branch(inputs) if inputs.branch else None
    if all(answer is True for answer in agrees):
        return None
    if inputs.branch:
        return _branch(inputs)
    if inputs.reads:
        return Finding("bakes in a number that Python reads", *inputs.reads[0])
    line = _doubted(capture)
    return Finding("gives other results than the model on another input", *(line or ("", 0)))


def _branch(inputs: Inputs) -> Finding:
    assert inputs.branch is not None
    return Finding("bakes in a branch", *inputs.branch)


# -- the traced functions ------------------------------------------------------------------------------


def _jit_trace(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], strict: bool) -> Any:
    given: dict[str, Any] = {"example_inputs": args}
    if kwargs:
        bound = inspect.signature(getattr(target, "forward", target)).bind(*args, **kwargs)
        given = {"example_kwarg_inputs": dict(bound.arguments)}
    return the_torch().jit.trace(target, check_trace=False, strict=False, **given)


def _fx(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], strict: bool) -> Any:
    return fx.Traced(target, args, kwargs)


def _export(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], strict: bool) -> Any:
    torch = the_torch()

    class Function(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return target(*args, **kwargs)

    module: Any = target if isinstance(target, torch.nn.Module) else Function()
    return torch.export.export(module, args, kwargs, strict=strict).module()


_TRACED: dict[str, Callable[..., Any]] = {
    "jit-trace": _jit_trace,
    "fx": _fx,
    "export": _export,
    "export-strict": _export,
}


def _agrees(traced: Any, given: Arguments, expected: Any) -> bool | None:
    """Whether a traced function returns what the model returned. None: the two cannot be compared."""
    torch = the_torch()

    args, kwargs = copied(given)
    try:
        with alone(traced), torch.no_grad():
            found = list(tensors_in(traced(*args, **kwargs)))
    except Exception:
        return False
    wanted = list(tensors_in(expected))
    if len(found) != len(wanted) or not wanted:
        return None
    return all(map(_close, found, wanted))


def _close(a: Any, b: Any) -> bool:
    torch = the_torch()

    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        return bool(torch.equal(a, b))
    exact = 1e-4 if a.dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128) else 1e-2
    size = b.abs().nan_to_num(0, 0, 0).max().item() if b.numel() else 0.0
    return bool(torch.allclose(a, b, rtol=exact, atol=exact * max(size, 1e-6), equal_nan=True))


# -- other inputs --------------------------------------------------------------------------------------


def _others(given: Arguments) -> list[Arguments]:
    """Other numbers of the same shapes and types, whole numbers in the same range."""
    if not list(tensors_in(given)):
        return []
    torch = the_torch()

    generator = torch.Generator().manual_seed(1)

    def drawn(tensor: Any) -> Any:
        if not tensor.numel():
            return tensor
        if tensor.dtype.is_complex:
            return tensor.conj().resolve_conj().roll(1)
        if not tensor.dtype.is_floating_point:
            return tensor.flatten()[torch.randperm(tensor.numel(), generator=generator)].view(tensor.shape)
        low, high = tensor.min(), tensor.max()
        random = torch.rand(tensor.shape, generator=generator).to(tensor)
        return low + random * (high - low)

    def mirrored(tensor: Any) -> Any:
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            return -tensor
        if tensor.dtype == torch.bool or not tensor.numel():
            return tensor
        return tensor.min() + tensor.max() - tensor

    def scaled(by: float) -> Callable[[Any], Any]:
        return lambda tensor: tensor * by if tensor.dtype.is_floating_point or tensor.dtype.is_complex else tensor

    changes = (drawn, mirrored, scaled(10), scaled(0.01))
    return [mapped(lambda t, c=change: _leaf(c(t.detach()), t), given) for change in changes]


def _leaf(changed: Any, original: Any) -> Any:
    return changed.clone().requires_grad_(original.requires_grad)


# -- the recorder's account ------------------------------------------------------------------------------


class _Row(NamedTuple):
    op: str
    scope: str
    frames: tuple[Frame, ...]

    @property
    def is_read(self) -> bool:
        return self.op.startswith(_READS)


def _account(capture: Capture) -> list[_Row]:
    """Every operator with its module and its lines."""
    graph, pools = capture.graph, capture.graph.pools
    paths = {scope: pools.scope_path(scope) for scope in set(graph.node_scope.tolist())}
    stacks = {stack: tuple(pools.frames_of(stack)) for stack in set(graph.node_stack.tolist())}
    rows = zip(graph.node_op.tolist(), graph.node_scope.tolist(), graph.node_stack.tolist(), strict=True)
    return [_Row(pools.strings[op], paths[scope], stacks[stack]) for op, scope, stack in rows]


def _parting(first: list[_Row], other: list[_Row]) -> Line | None:
    """The last line before two runs part that read numbers; the line where they part if none did."""
    length = min(len(first), len(other))
    at = next((i for i in range(length) if first[i] != other[i]), length)
    if at == len(first) == len(other):
        return None
    reads = [row for row in first[:at] if row.is_read]
    parted = [*first[at : at + 1], *other[at : at + 1]]
    return _line((reads[-1] if reads else parted[0]).frames)


def _line(frames: tuple[Frame, ...]) -> Line:
    """The innermost line of the user's code."""
    users = [frame for frame in frames if is_users(frame.file)] or list(frames)
    return (users[-1].file, users[-1].line) if users else ("", 0)


def _doubted(capture: Capture) -> Line | None:
    """Where torch itself had a doubt when it traced."""
    places = [found for text in capture.warnings if (found := _PLACE.match(text))]
    return (places[0][1], int(places[0][2])) if places else None
