"""Functions of torch that are wrapped while a compilation is watched, and put back.

Everything that is private to torch's compiler is named here and in `opscope.tracers.torch.private`. What a release does
not have is left out; `Hooks.missing` says so.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from opscope.tracers.arguments import is_a
from opscope.tracers.imports import AfterImport

Make = Callable[[Callable[..., Any]], Callable[..., Any]]

# module, owner in it ("" for the module itself), attribute
GRAPH_TEXT = ("torch.fx.graph_module", "GraphModule", "print_readable")
PASS_BEGINS = ("torch.fx.passes.graph_transform_observer", "GraphTransformObserver", "__enter__")
PASS_ENDS = ("torch.fx.passes.graph_transform_observer", "GraphTransformObserver", "__exit__")
NOT_FUSED = ("torch._inductor.scheduler", "WhyNoFuse", "__call__")
LAUNCHES = tuple(  # where a kernel is launched; two modules hold the function under their own name
    (module, "", "set_kernel_post_grad_provenance_tracing")
    for module in ("torch._inductor.debug", "torch._inductor.codegen.cpp", "torch._inductor.codegen.triton")
)
LOWERING = ("torch._inductor.graph", "GraphLowering", "codegen")
TEMPLATES = ("torch._inductor.select_algorithm", "AlgorithmSelectorCache", "log_results")
LOOK_UP = ("torch._inductor.codecache", "GuardedCache", "find_guarded_entry")
SAVES = (
    ("torch._inductor.codecache", "FxGraphCache", "_write_to_local_cache"),
    ("torch._functorch._aot_autograd.autograd_cache", "AOTAutogradCache", "_write_to_local_cache"),
)
RUNS = ("torch._inductor.output_code", "CompiledFxGraph", "__call__")
COMPILES = ("torch._inductor.compile_fx", "", "_compile_fx_inner")
WRAPS = ("torch._dynamo.eval_frame", "_TorchDynamoContext", "__call__")
ENTERS = ("torch._dynamo.eval_frame", "", "_maybe_set_eval_frame")


class Hooks:
    """What is wrapped at the moment. A module of torch that nobody has imported is wrapped when it is."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any, Any]] = []
        self._ours: dict[int, tuple[Any, Any]] = {}  # id of a wrapper -> it, and what it wraps
        self._places: list[tuple[str, str, str]] = []
        self._waiting: dict[str, list[tuple[tuple[str, str, str], Make]]] = {}
        self._finder: Any = None
        self.missing: list[str] = []

    def wrap(self, place: tuple[str, str, str], make: Make) -> None:
        module = place[0]
        self._places.append(place)
        if module in sys.modules and not _is_being_imported(module):
            self._wrap(place, make)
        else:
            self._waiting.setdefault(module, []).append((place, make))

    def open(self) -> None:
        if self._waiting:
            self._finder = AfterImport(list(self._waiting), self._imported)
            sys.meta_path.insert(0, self._finder)

    def close(self) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        while self._undo:
            owner, name, held, ours = self._undo.pop()
            if vars(owner).get(name) is ours:  # else somebody has wrapped it once more: then ours does nothing
                setattr(owner, name, held)
        for module, holder, name in self._places:  # a module that was imported meanwhile took ours from another
            owner = None if holder else sys.modules.get(module)
            known = self._ours.get(id(getattr(owner, name, None)))
            if known is not None:
                setattr(owner, name, known[1])

    def _imported(self, module: str) -> None:
        for place, make in self._waiting.pop(module, ()):
            self._wrap(place, make)

    def _wrap(self, place: tuple[str, str, str], make: Make) -> None:
        module, holder, name = place
        owner: Any = cast("Any", sys.modules[module])
        owner = getattr(owner, holder, None) if holder else owner
        held: Any = cast("dict[str, Any]", vars(owner)).get(name) if owner is not None else None
        if held is None:
            self.missing.append(".".join(filter(None, place)))
            return
        if id(held) in self._ours:  # taken from a module where it is wrapped already
            return
        kind: Any = cast("Any", type(held)) if is_a(held, (staticmethod, classmethod)) else None
        function: Any = held.__func__ if kind is not None else held
        wrapped: Any = make(function)
        if inspect.isfunction(function):
            wrapped = functools.wraps(function)(wrapped)
        ours: Any = kind(wrapped) if kind is not None else wrapped
        setattr(owner, name, ours)
        self._ours[id(ours)] = ours, held
        self._undo.append((owner, name, held, ours))


def _is_being_imported(module: str) -> bool:
    return bool(getattr(getattr(sys.modules[module], "__spec__", None), "_initializing", False))


def trace_log() -> Any:
    """The logger that TORCH_TRACE's files are written from, or None."""
    with contextlib.suppress(ImportError):
        return getattr(importlib.import_module("torch._logging._internal"), "trace_log", None)
    return None


def interned_strings() -> list[tuple[str, int]]:
    """The file names that stacks in the log refer to by a number."""
    with contextlib.suppress(Exception):
        table = importlib.import_module("torch._logging.structured").INTERN_TABLE
        return [(text, number) for text, number in table.items() if type(text) is str and type(number) is int]
    return []


def compile_id() -> dict[str, int]:
    """Which compilation is under way on this thread, in the words of the log."""
    found: dict[str, int] = {}
    with contextlib.suppress(Exception):
        trace = importlib.import_module("torch._guards").CompileContext.current_trace_id()
        if trace is not None:
            for name in ("compiled_autograd_id", "frame_id", "frame_compile_id"):
                number = getattr(trace.compile_id, name, None)
                if number is not None:
                    found[name] = number
            found["attempt"] = trace.attempt
    return found


def _is(one: object, other: object) -> bool:
    return one is other


def own_wrapper(base: type[Any]) -> type[Any]:
    """A backend that is equal to no other: what somebody else compiled with the same settings is not taken for it."""

    class Own(base):
        # False, not NotImplemented: then Python would ask the other one.
        __eq__ = _is
        __hash__ = object.__hash__

    return Own


def separate(function: Callable[..., Any]) -> dict[str, Any]:
    """Options of torch.compile that keep what it compiles apart from what others compiled of the same code."""
    known: Sequence[str] = list(inspect.signature(function).parameters)
    return {"isolate_recompiles": True} if "isolate_recompiles" in known else {}


def direction(graph: Any) -> str:
    """Whether a compiled graph is of a forward or a backward pass."""
    known: Any = getattr(graph, "fx_kwargs", None) or {}
    if known.get("is_backward"):
        return "backward"
    return "inference" if known.get("is_inference") else "forward"
