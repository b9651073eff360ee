"""Sees every operator that Paddle runs, by replacing the functions that run them; nothing is called otherwise
than it would have been."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import wraps
from types import BuiltinFunctionType, ModuleType
from typing import Any, NamedTuple, cast

from opscope.ir.measurements import Figures, Measured, measured
from opscope.ir.tally import figures_of
from opscope.readers.paddle.names import forward_op, state_of
from opscope.tracers.contract import STATISTICS
from opscope.tracers.frames import frame_at

from . import private
from .layers import Layers
from .measuring import clock, numbers_of
from .passes import Pass
from .places import INIT, OPTIMIZER, RECOMPUTE, Places
from .words import VIEWS, attribute, words_of

_MOST_OWN = 64  # gradient nodes that one call makes; more means that the way back was missed


class Value(NamedTuple):
    dtype: str
    shape: tuple[int, ...] | None
    name: str
    role: str
    storage: int  # the value that owns the memory; -1: itself


class Call(NamedTuple):
    """One operator that ran."""

    tick: int
    op: str
    reads: list[tuple[str, int]]
    makes: list[int]
    attrs: dict[str, Any]
    scope: int
    place: int
    phase: str


class _Given(NamedTuple):
    """What an operator was called with."""

    reads: list[tuple[str, int]]
    tensors: list[tuple[str, Any]]
    attrs: dict[str, Any]
    boundary: set[int]  # the gradient nodes of its inputs


class Recorder:
    """The replacements, and what they saw."""

    def __init__(
        self,
        layers: Layers,
        places: Places,
        *,
        statistics: bool = False,
        values: bool | str = False,
        times: bool = False,
    ) -> None:
        paddle = private.the_paddle()
        self.layers = layers
        self.places = places
        self._statistics = statistics
        self._values = values
        self._clock = clock() if times else None
        self._spent = 0.0  # in calls that have ended
        self.seconds: list[float] = []  # by call, without the calls inside it
        self.measured: dict[int, Measured] = {}  # by value
        self.figures: dict[int, Figures] = {}  # by value, with values="stats"
        self.calls: list[Call] = []
        self.passes: list[Pass] = []
        self.values: list[Value] = []
        self.claims: dict[int, int] = {}  # pointer of a gradient node -> the call that made it
        self.steps: list[tuple[int, int]] = []  # by step of an optimizer: which one, and the tick at which it ended
        self._stepping: set[int] = set()  # the optimizers that are at it
        self.names: Callable[[Any], tuple[str, str] | None] = lambda tensor: None
        self.on = True
        self.failure = ""
        self.most_steps: int | None = None  # recording ends after so many steps of an optimizer
        self._tensor: type[Any] = paddle.Tensor
        self._parameter = private.parameter_type()
        self._ids: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._memories: dict[int, tuple[weakref.ref[Any], int]] = {}  # address of the numbers -> the newest value there
        self.gradients: dict[int, str] = {}  # value -> the parameter whose gradient an optimizer took it for
        self._undo: list[tuple[Any, str, Any]] = []
        self._ticks = 0
        self._backward = 0  # how many passes are under way, one inside the other
        self._thread = threading.get_ident()
        self._words: dict[Any, str] = {}

    def seen(self) -> Iterable[tuple[weakref.ref[Any], int]]:
        """The tensors that were read or made, and their values."""
        return self._ids.values()

    @property
    def is_timed(self) -> bool:
        return self._clock is not None

    def tick(self) -> int:
        self._ticks += 1
        return self._ticks

    # -- replacements ---------------------------------------------------------------------------

    def install(self) -> None:
        paddle = private.the_paddle()
        private.counts_one_too_many()
        try:
            self._install_operators()
            for name, op in private.METHODS.items():
                method = paddle.Tensor.__dict__.get(name)
                if method is not None:
                    self._replace(paddle.Tensor, name, self._operator(op, method))
            self._replace(paddle.nn.Layer, "__call__", self._layer_call(paddle.nn.Layer.__call__))
            self._install_py_layer(paddle)
            engine = private.engine()
            self._replace(engine, "run_backward", self._engine(engine.run_backward))
            self._replace(engine, "run_partial_grad", self._engine(engine.run_partial_grad))
            for cls in _optimizers(paddle):
                if "step" in cls.__dict__:
                    self._replace(cls, "step", self._step(cls.__dict__["step"]))
        except BaseException:
            self.remove()
            raise

    def _install_operators(self) -> None:
        operators = private.operators()
        stand_ins: dict[int, Any] = {}
        for name in dir(operators):
            function = getattr(operators, name)
            if _is_operator(function) and not name.startswith("__"):
                stand_ins[id(function)] = self._operator(name, function)
                self._replace(operators, name, stand_ins[id(function)])
        # Some of Paddle's modules have taken single functions out of there.
        for name, module in list(sys.modules.items()):
            if name.startswith("paddle.") and type(module) is ModuleType and not name.startswith(_NOT_IN):
                for key, held in list(vars(module).items()):
                    if id(held) in stand_ins and _is_operator(held):
                        self._replace(module, key, stand_ins[id(held)])

    def _install_py_layer(self, paddle: Any) -> None:
        recorder, cls = self, paddle.autograd.PyLayer
        apply = cls.__dict__.get("apply") or cls.__mro__[1].__dict__.get("apply")
        if apply is None:
            return

        def stand_in(kind: Any, *args: Any, **kwargs: Any) -> Any:
            run = apply.__get__(None, kind)
            if not recorder._is_ours():
                return run(*args, **kwargs)
            recorder.layers.inside(kind.__name__)
            try:
                outputs = recorder._call(kind.__name__, run, args, kwargs, is_custom=True)
            finally:
                recorder.layers.leave()
            return outputs

        self._undo.append((cls, "apply", cls.__dict__.get("apply")))
        cls.apply = classmethod(stand_in)

    def _replace(self, holder: Any, name: str, stand_in: Any) -> None:
        self._undo.append(
            (holder, name, holder.__dict__.get(name) if isinstance(holder, type) else getattr(holder, name))
        )
        setattr(holder, name, stand_in)

    def remove(self) -> None:
        self.on = False
        while self._undo:
            holder, name, original = self._undo.pop()
            if original is None:
                delattr(holder, name)
            else:
                setattr(holder, name, original)

    def _is_ours(self) -> bool:
        return self.on and threading.get_ident() == self._thread

    def _operator(self, name: str, function: Any) -> Any:
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            if not self.on or threading.get_ident() != self._thread:
                return function(*args, **kwargs)
            return self._call(name, function, args, kwargs)

        cast("Any", stand_in).opscope_stands_in = True
        return stand_in

    def _layer_call(self, call: Any) -> Any:
        @wraps(call)
        def __call__(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._is_ours():
                return call(layer, *args, **kwargs)
            self.layers.enter(layer, frame_at(1))
            try:
                return call(layer, *args, **kwargs)
            finally:
                self.layers.leave()

        return __call__

    def _step(self, step: Any) -> Any:
        @wraps(step)
        def stand_in(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if id(optimizer) in self._stepping:  # what a subclass leaves to the class above
                return step(optimizer, *args, **kwargs)
            if self._is_ours() and self._has_stepped(optimizer):
                self.on = False
            self._stepping.add(id(optimizer))
            try:
                return step(optimizer, *args, **kwargs)
            finally:
                self._stepping.discard(id(optimizer))
                if self._is_ours():
                    self.steps.append((id(optimizer), self.tick()))
                    # Where there are several optimizers, a step is over when each has made its own.
                    self.on = not (self._has_stepped(optimizer) and all(map(self._has_stepped, _living_optimizers())))

        return stand_in

    def _has_stepped(self, optimizer: Any) -> bool:
        """As often as it was asked for."""
        made = sum(number == id(optimizer) for number, _ in self.steps)
        return self.most_steps is not None and made >= self.most_steps

    # -- one operator -----------------------------------------------------------------------------

    def _call(
        self, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_custom: bool = False
    ) -> Any:
        try:
            given = self._given(name, args, kwargs)
        except Exception as error:
            self._stop(name, error)
            return function(*args, **kwargs)
        now, spent = self._clock, self._spent
        began = now() if now is not None else 0.0
        outputs = function(*args, **kwargs)
        own = now() - began - (self._spent - spent) if now is not None else 0.0
        try:
            # An assignment to a part of a tensor returns nothing: it makes a new tensor.
            made = [args[0]] if name == "setitem" else list(self._outputs(outputs))
            if made:
                self._record(name, given, made, is_custom)
                self.seconds.append(own)
        except Exception as error:
            self._stop(name, error)
        if now is not None:
            self._spent = spent + now() - began
        return outputs

    def _stop(self, name: str, error: Exception) -> None:
        """What we do wrong must not stop what the user does: better to see nothing from here on, and to say so."""
        self.on = False
        self.failure = f"recording ended early, at {name}: {type(error).__name__}: {error}"[:300]

    def _given(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Given:
        """Before the call: an operator that writes in place makes another value of the same tensor."""
        tensors: list[tuple[str, Any]] = []
        attrs: dict[str, Any] = {}
        words = words_of(name)
        for i, given in enumerate(args):
            self._argument(words[i] if i < len(words) else str(i), given, tensors, attrs)
        for key, given in kwargs.items():
            self._argument(key, given, tensors, attrs)
        nodes = [private.gradient_node(tensor) for _, tensor in tensors]
        boundary = {int(node.node_ptr()) for node in nodes if node is not None}
        reads: list[tuple[str, int]] = []
        for word, tensor in tensors:
            first = len(self.values)
            reads.append((word, value := self.value_of(tensor)))
            if value >= first and self._values == STATISTICS:  # it came from outside: what it is before anyone writes
                self._measure([tensor], [value])
        if name.endswith("_") and words[:1] == ("param",):
            self._optimized(reads)
        for word, index in reads:
            if word in state_of(name):
                self._is_state(index)
        return _Given(reads, tensors, attrs, boundary)

    def _argument(self, word: str, given: Any, tensors: list[tuple[str, Any]], attrs: dict[str, Any]) -> None:
        if isinstance(given, self._tensor):
            tensors.append((word, given))
        elif isinstance(given, list | tuple) and given and isinstance(given[0], self._tensor):
            items = cast("list[Any]", given)
            tensors.extend((f"{word}[{i}]", item) for i, item in enumerate(items) if isinstance(item, self._tensor))
        elif given is not None:
            attrs[word] = attribute(given)

    def _outputs(self, outputs: Any) -> Any:
        if isinstance(outputs, self._tensor):
            yield outputs
        elif isinstance(outputs, list | tuple):
            for item in cast("list[Any]", outputs):
                yield from self._outputs(item)

    def _record(self, name: str, given: _Given, made: list[Any], is_custom: bool) -> None:
        reads, tensors, attrs, boundary = given
        index = len(self.calls)
        own: list[Any] = []
        for tensor in made:
            node = private.gradient_node(tensor) if tensor._is_initialized() else None
            if node is not None and int(node.node_ptr()) not in boundary:
                own.append(node)
        op = name
        if own and name in _BY_GRADIENT:
            op = forward_op(str(own[0].name())) or name
        self._claim(index, own, boundary)
        makes = [self._made(tensor, name, reads, tensors) for tensor in made]
        if self._values:
            self._measure(made, makes)
        place = self.places.at(frame_at(3))
        flags = self.places.flags[place]
        if is_custom:
            attrs = {**attrs, "custom": True}
        self.calls.append(Call(self.tick(), op, reads, makes, attrs, self.layers.open[-1], place, self._phase(flags)))

    def _phase(self, flags: int) -> str:
        if flags & RECOMPUTE:
            return "recompute"
        if flags & OPTIMIZER:
            return "optimizer"
        if flags & INIT:
            return "init"
        return "backward" if self._backward else "forward"

    def _claim(self, index: int, own: list[Any], boundary: set[int]) -> None:
        """The gradient nodes that this call made: those between its outputs and its inputs."""
        seen: set[int] = set()
        todo = list(own)
        while todo and len(seen) < _MOST_OWN:
            node = todo.pop()
            pointer = int(node.node_ptr())
            if pointer in boundary or pointer in seen or private.is_leaf_node(node):
                continue
            seen.add(pointer)
            todo.extend(following for following in node.next_functions if following is not None)
        if len(seen) == _MOST_OWN:
            seen = {int(node.node_ptr()) for node in own}
        for pointer in seen:
            self.claims[pointer] = index

    def _optimized(self, reads: list[tuple[str, int]]) -> None:
        """What an optimizer reads beside a parameter is the parameter's gradient, or its own state."""
        name = self.values[reads[0][1]].name
        for word, index in reads[1:]:
            if word == "grad":
                self.gradients[index] = name
                self._rename(index, f"{name}.grad", "gradient")
            else:
                self._rename(index, word if word == "learning_rate" else f"{word} of {name}", "state")

    def _is_state(self, index: int) -> None:
        """A parameter that takes no gradient may be a weight that is frozen, or what an operator remembers."""
        for place in {index, self._owner(index)}:
            if self.values[place].role == "parameter":
                self.values[place] = self.values[place]._replace(role="buffer")

    def _rename(self, index: int, name: str, role: str) -> None:
        for place in {index, self._owner(index)}:
            if not self.values[place].name:
                self.values[place] = self.values[place]._replace(name=name, role=role)

    # -- values -----------------------------------------------------------------------------------

    def value_of(self, tensor: Any) -> int:
        known = self._ids.get(id(tensor))
        if known is not None and known[0]() is tensor:
            return known[1]
        memory = _memory(tensor)
        same = self._memories.get(memory) if memory and not isinstance(tensor, self._parameter) else None
        if same is not None:
            # Another object for the same numbers: detached, or handed through a PyLayer.
            other, index = same
            alive = other()
            if alive is not None and _memory(alive) == memory and self.values[index].shape == _shape(tensor):
                self._ids[id(tensor)] = weakref.ref(tensor), index
                return index
        named = self.names(tensor)
        role = named[1] if named else "parameter" if isinstance(tensor, self._parameter) else "input"
        return self._new(tensor, named[0] if named else "", role, -1)

    def known_value(self, tensor: Any) -> int | None:
        known = self._ids.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def _new(self, tensor: Any, name: str, role: str, storage: int) -> int:
        index = len(self.values)
        self.values.append(Value(self._word(tensor.dtype), _shape(tensor), name, role, storage))
        self._ids[id(tensor)] = reference = weakref.ref(tensor), index
        self._memories[_memory(tensor)] = reference
        return index

    def _made(self, tensor: Any, name: str, reads: list[tuple[str, int]], tensors: list[tuple[str, Any]]) -> int:
        storage, label, role = -1, "", "activation"
        if name.endswith("_") or name == "setitem" or name in VIEWS or any(t is tensor for _, t in tensors):
            memory = _memory(tensor)
            for (_, value), (_, given) in zip(reads, tensors, strict=True):
                if given is tensor or (memory and _memory(given) == memory):
                    storage = self._owner(value)
                    if name.endswith("_") or given is tensor:
                        if tensor.stop_gradient and self._in_layer():
                            self._is_state(value)
                        before = self.values[value]
                        label, role = before.name, before.role
                        index = self._new(tensor, label, role, storage)
                        self._ids[id(given)] = weakref.ref(given), index
                        return index
                    break
        return self._new(tensor, label, role, storage)

    def _in_layer(self) -> bool:
        """Is a layer's own forward at work? What it writes to is its state."""
        return len(self.layers.open) > 1 and not self._backward

    def _owner(self, value: int) -> int:
        storage = self.values[value].storage
        return value if storage < 0 else storage

    def _word(self, dtype: Any) -> str:
        found = self._words.get(dtype)
        if found is None:
            found = self._words[dtype] = str(dtype).removeprefix("paddle.")
        return found

    # -- backward passes --------------------------------------------------------------------------

    def _engine(self, run: Any) -> Any:
        def stand_in(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._is_ours():
                return run(tensors, *args, **kwargs)
            return self.backward(tensors, lambda: run(tensors, *args, **kwargs))

        return stand_in

    def backward(self, tensors: Any, run: Callable[[], Any]) -> Any:
        """Watch a backward pass from these tensors."""
        roots = [tensor for _, tensor in private.tensors_in(tensors)]
        watched = Pass(roots, statistics=self._statistics, values=self._values, clock=self._clock, tick=self.tick)
        watched.numbers_of = self._numbers_of
        watched.watch()
        self.passes.append(watched)
        watched.started = self.tick()
        self._backward += 1
        failed = True
        try:
            result = run()
            failed = False
            return result
        finally:
            self._backward -= 1
            self.read(watched)
            watched.close(failed)

    def read(self, watched: Pass) -> None:
        """What is known of its nodes now: later, their addresses may be others'."""
        for pointer, i in watched.index.items():
            call = self.claims.get(pointer)
            node = watched.nodes[i]
            if call is not None and not node.is_leaf and _fits(self.calls[call].op, node.name):
                node.call = call

    # -- numbers ----------------------------------------------------------------------------------

    def _measure(self, made: list[Any], makes: list[int]) -> None:
        for tensor, value in zip(made, makes, strict=True):
            numbers = self._numbers_of(tensor)
            if numbers is None:
                continue
            if self._values != STATISTICS:
                self.measured[value] = measured(numbers)
            elif (figures := figures_of([numbers], self.values[value].dtype)) is not None:
                self.figures[value] = figures

    def _numbers_of(self, tensor: Any) -> Any:
        """Reading them may run operators, which are not the user's."""
        before, self.on = self.on, False
        try:
            return numbers_of(tensor)
        finally:
            self.on = before


_NOT_IN = (
    "paddle._pir_ops",
    "paddle._C_ops",
    "paddle.base.libpaddle",
    "paddle.decomposition",
    "paddle.incubate.autograd",
)
_BY_GRADIENT = frozenset({*private.METHODS.values()})


def _is_operator(function: Any) -> bool:
    """One of Paddle's, or what a recording around this one put in its place."""
    return isinstance(function, BuiltinFunctionType) or hasattr(function, "opscope_stands_in")


def _optimizers(paddle: Any) -> list[Any]:
    found: dict[int, Any] = {}
    todo = [paddle.optimizer.Optimizer]
    while todo:
        cls = todo.pop()
        if id(cls) not in found:
            found[id(cls)] = cls
            todo.extend(cls.__subclasses__())
    return list(found.values())


def _living_optimizers() -> list[Any]:
    kind = private.the_paddle().optimizer.Optimizer  # Paddle keeps one that is nothing but this, and never steps
    return [found for found in gc.get_objects() if type(found) is not kind and issubclass(type(found), kind)]


def _fits(op: str, gradient: str) -> bool:
    """An address that was reused would give a gradient to the wrong operator: do the names agree?"""
    forward = forward_op(gradient).rstrip("_")
    return forward == op.rstrip("_") or op in _COMPOSED or forward in op or op.rstrip("_") in forward or op == forward


# Operators that run others inside, each of which has a gradient of its own.
_COMPOSED = frozenset({"linear", "getitem", "setitem", "run_program", "assign"})


def _shape(tensor: Any) -> tuple[int, ...] | None:
    try:
        return tuple(tensor.shape)
    except Exception:
        return None


def _memory(tensor: Any) -> int:
    try:
        return int(tensor.data_ptr()) if tensor._is_initialized() else 0
    except Exception:
        return 0
