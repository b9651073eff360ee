"""One recording: puts the recorder in place, takes names, and gives back everything as it was."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from opscope.ir import Capture, Pools
from opscope.ir.gaps import Gap, note
from opscope.sources import embed, exact
from opscope.tracers import session
from opscope.tracers.session import NothingRecorded

from . import private
from .assemble import Assembly, capture_of
from .layers import Layers, leaves, variables
from .places import Places
from .recorder import Recorder


class Session(session.Session):
    def __init__(
        self,
        caller: FrameType,
        *,
        layers: Sequence[tuple[str, Any]] = (),
        hidden: Any = None,
        arguments: Sequence[tuple[str, Any]] = (),
        statistics: bool = False,
        values: bool | str = False,
        times: bool = False,
        steps: int | None = None,
    ) -> None:
        self._caller: FrameType | None = caller
        self._layers = Layers(list(layers), hidden)
        self._names: dict[int, tuple[weakref.ref[Any], str, str]] = {}
        self._optimizers: list[Any] = []
        self._asked = 0
        self.recorder = Recorder(self._layers, Places(caller.f_back), statistics=statistics, values=values, times=times)
        self.recorder.names = self._name
        if steps is not None:
            self.recorder.most_steps = steps
        for name, value in arguments:
            for path, tensor in private.tensors_in(value, name):
                self._know(tensor, path, "input")
        self._take_names()
        self.recorder.install()
        self.open()

    @property
    def count(self) -> int:
        return len(self.recorder.calls)

    # -- names ------------------------------------------------------------------------------------

    def _know(self, tensor: Any, name: str, role: str) -> None:
        known = self._names.get(id(tensor))
        if known is None or known[0]() is not tensor:
            self._names[id(tensor)] = weakref.ref(tensor), name, role

    def _take_names(self) -> None:
        for name, tensor, role in self._layers.tensors():
            self._know(tensor, name, role)
        if self._caller is not None:
            for name, tensor in variables(self._caller):
                self._know(tensor, name, "input")

    def _name(self, tensor: Any) -> tuple[str, str] | None:
        known = self._names.get(id(tensor))
        if (known is None or known[0]() is not tensor) and isinstance(tensor, private.parameter_type()):
            if self._asked != len(self._layers.roots):  # layers were met since: their parameters have names now
                self._asked = len(self._layers.roots)
                for name, held, role in self._layers.tensors():
                    self._know(held, name, role)
                known = self._names.get(id(tensor))
            if known is None or known[0]() is not tensor:
                return str(tensor.name), "parameter"
        return (known[1], known[2]) if known is not None and known[0]() is tensor else None

    def leaves(self) -> dict[int, tuple[str, Any]]:
        """Pointer of an accumulation node -> name and tensor, for all tensors with a name and all that were read."""

        def named() -> Iterator[tuple[str, Any]]:
            for name, tensor, _ in self._layers.tensors():
                yield name, tensor
            for ref, name, _ in list(self._names.values()):
                if (tensor := ref()) is not None:
                    yield name, tensor
            for ref, _ in list(self.recorder.seen()):
                if (tensor := ref()) is not None and not tensor.stop_gradient and tensor.is_leaf:
                    yield str(tensor.name), tensor

        return leaves(named())

    # -- the end ----------------------------------------------------------------------------------

    def finish(
        self, result: Any = None, *, how: str = "record", forward: bool = True, stage: str = "record"
    ) -> Capture:
        self.close()
        recorder = self.recorder
        if not recorder.calls and not recorder.passes:
            raise NothingRecorded("Paddle ran no operator while it was recorded: there is no graph to show")
        self._take_names()
        known = self.leaves()
        for watched in recorder.passes:
            watched.name_leaves(known)
        self._caller = None
        assembly = Assembly(recorder, Pools())
        assembly.build(forward)
        if forward and result is not None:
            for _, tensor in private.tensors_in(result):
                value = recorder.known_value(tensor)
                if value is not None and value in assembly.values:
                    assembly.builder.outputs.insert(0, assembly.values[value])
        capture = capture_of(assembly, how, stage)
        if recorder.failure:
            note(capture, 0, [Gap(recorder.failure)])
        root = private.root()
        embed(capture, lambda path: None if path.startswith(root) else exact(path))
        return capture

    def restore(self) -> None:
        self.recorder.remove()
