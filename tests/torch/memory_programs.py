"""Random programs of views and writes, with the truth about every byte: which operator wrote it last?

    python tests/torch/memory_programs.py --runs 3000 [--seed 1]

The number of a step is that of its node.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import opscope
from opscope.ir import Graph
from opscope.tracers import operators_so_far

_OUTSIDE = -1  # the last writer of what was there before
_ATEN: Any = torch.ops.aten


class Missing(NamedTuple):
    """A step whose edges do not lead to all that wrote what it read."""

    step: int
    writers: set[int]
    program: dict[int, str]


class _Bytes:
    """The last writer of every byte of every storage."""

    def __init__(self) -> None:
        self._by_storage: dict[int, tuple[Tensor, Any]] = {}  # with a tensor, so that no address is used twice

    def _shown(self, tensor: Tensor) -> tuple[Any, Any]:
        """The writers of the storage, and the indices of the bytes that the tensor shows."""
        storage = tensor.untyped_storage()
        fresh = tensor, np.full(storage.nbytes(), _OUTSIDE)
        _, writers = self._by_storage.setdefault(storage._cdata, fresh)
        size = tensor.element_size()
        place = np.array(tensor.storage_offset() * size)
        for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
            place = place[..., None] + np.arange(length) * stride * size
        return writers, (place[..., None] + np.arange(size)).ravel()

    def write(self, tensor: Tensor, step: int) -> None:
        writers, place = self._shown(tensor)
        writers[place] = step

    def read(self, *tensors: Tensor) -> set[int]:
        found: set[int] = set()
        for tensor in tensors:
            writers, place = self._shown(tensor)
            found.update(writers[place].tolist())
        return found - {_OUTSIDE}


class Program:
    """Runs random steps under the recorder."""

    def __init__(self, seed: int, steps: int = 14) -> None:
        self._random = random.Random(seed)
        self._bytes = _Bytes()
        self.lines: dict[int, str] = {}
        self._reads: dict[int, set[int]] = {}  # step -> the last writers of what it read
        self._views: set[int] = set()
        outside = torch.arange(24.0).reshape(4, 6)
        self._tensors = [outside, outside[:, ::2], torch.zeros(12)]
        with torch.no_grad(), opscope.record() as capture:
            while len(self.lines) < steps:
                kind = self._random.choice([self._view, self._view, self._write, self._write, self._read])
                kind(self._random.randrange(len(self._tensors)))
        self._graph: Graph = capture.graph

    # -- steps ----------------------------------------------------------------------------------

    def _view(self, number: int) -> None:
        tensor, draw = self._tensors[number], self._random
        kinds: list[Callable[[], Tensor]] = [lambda: _ATEN.detach(tensor)]
        if tensor.dim():
            dim = draw.randrange(tensor.dim())
            begin = draw.randrange(tensor.shape[dim])
            end = draw.randint(begin + 1, tensor.shape[dim])
            kinds += [
                lambda: _ATEN.slice(tensor, dim, begin, end, draw.randint(1, 2)),
                lambda: _ATEN.select(tensor, dim, begin),
                lambda: _ATEN.transpose(tensor, 0, dim),
                lambda: _ATEN.unsqueeze(tensor, dim),
            ]
        if tensor.is_contiguous():
            kinds.append(lambda: _ATEN.view(tensor, [tensor.numel()]))
            kinds.append(lambda: _ATEN.view.dtype(tensor, torch.int32 if tensor.is_floating_point() else torch.float32))
        shape, strides = [draw.randint(1, 3) for _ in range(2)], [draw.randint(1, 4) for _ in range(2)]
        last = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
        there = tensor.untyped_storage().nbytes() // tensor.element_size()
        if last < there:  # also bytes that `tensor` does not show
            kinds.append(lambda: _ATEN.as_strided(tensor, shape, strides, draw.randrange(there - last)))
        step = operators_so_far()
        view = draw.choice(kinds)()
        self._views.update(range(step, operators_so_far()))  # some are two operators
        shown = f"{tuple(view.shape)} {view.stride()} +{view.storage_offset()} {view.dtype}"
        self.lines[step] = f"t{len(self._tensors)} = view of t{number}: {shown}"
        self._tensors.append(view)

    def _write(self, number: int) -> None:
        tensor, draw = self._tensors[number], self._random
        step = operators_so_far()
        if _overlaps(tensor):
            return
        match draw.choice(["mul_", "fill_", "copy_"]):
            case "mul_":
                self._reads[step] = self._bytes.read(tensor)
                self.lines[step] = f"t{number}.mul_(2)"
                _ATEN.mul_(tensor, 2)
            case "fill_":
                self.lines[step] = f"t{number}.fill_(5)"
                _ATEN.fill_(tensor, 5)
            case _:
                source = draw.randrange(len(self._tensors))
                other = self._tensors[source]
                if other.shape != tensor.shape or _share(tensor, other):
                    return
                self._reads[step] = self._bytes.read(other)
                self.lines[step] = f"t{number}.copy_(t{source})"
                _ATEN.copy_(tensor, other)
        self._bytes.write(tensor, step)

    def _read(self, number: int) -> None:
        step = operators_so_far()
        self._reads[step] = self._bytes.read(self._tensors[number])
        self.lines[step] = f"t{len(self._tensors)} = t{number} + 1"
        result = _ATEN.add(self._tensors[number], 1)
        self._tensors.append(result)
        self._bytes.write(result, step)

    # -- the check --------------------------------------------------------------------------------

    def missing(self) -> list[Missing]:
        found: list[Missing] = []
        for step, writers in self._reads.items():
            lost = writers - self._reached(step)
            if lost:
                found.append(Missing(step, lost, self.lines))
        return found

    def edges(self) -> int:
        return sum(map(len, self._reads.values()))

    def _reached(self, step: int) -> set[int]:
        """The writers that the edges of a step lead to, through the views between."""
        found: set[int] = set()
        for use in self._graph.node(step).uses:
            maker = use.value.producer.index if use.value is not None and use.value.producer is not None else None
            if maker is None:
                continue
            if maker not in self._views:
                found.add(maker)
            # A write that takes in many before it stands for them.
            if maker in self._views or any(u.arg == "written before" for u in self._graph.node(maker).uses):
                found |= self._reached(maker)
        return found


def _overlaps(tensor: Tensor) -> bool:
    """Whether two of its elements are one, so that torch refuses to write to it."""
    places = np.array(0)
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        places = places[..., None] + np.arange(length) * stride
    return len(set(places.ravel().tolist())) < places.size or torch._debug_has_internal_overlap(tensor) == 1


def _share(a: Tensor, b: Tensor) -> bool:
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    edges = bad = 0
    for run in range(options.runs):
        program = Program(options.seed + run, options.steps)
        edges += program.edges()
        missing = program.missing()
        bad += bool(missing)
        for found in missing[:1]:
            print(f"seed {options.seed + run}: step {found.step} misses {sorted(found.writers)}")
            for number, line in found.program.items():
                print(f"  {number:3} {line}")
    print(f"{options.runs} programs, {edges} edges, {bad} programs with a missing edge")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
