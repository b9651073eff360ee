"""opscope.diverge: where two runs stop agreeing; of programs that can run again, with the numbers there."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from opscope import ir
from opscope.analysis.divergence import Divergence, Numbers, Place
from opscope.analysis.divergence import diverge as compared
from opscope.capture import Capture
from opscope.errors import OpscopeError
from opscope.ir.facts import VALUES
from opscope.tracing import record

Run = ir.Capture | str | os.PathLike[str] | Callable[..., Any]


def diverge(a: Run, b: Run, *inputs: Any) -> Divergence:
    """The first operator of two runs of the same computation from which on their numbers differ, though what it reads
    does not; nothing is matched by name. `a` and `b` are recordings with `values="stats"`, or their files; or models or
    functions, which are called with `inputs`: both with the same random numbers, and each with floating-point inputs in
    the type of its parameters. Those run once more, to show the numbers where they diverge.

    >>> opscope.diverge("eager.opscope", "port.opscope").first             # doctest: +SKIP
    >>> opscope.diverge(model, torch.compile(model), x).first              # doctest: +SKIP
    """
    runs = [_run_of(target, inputs) for target in (a, b)]
    found = compared(*(capture for capture, _ in runs))
    if found.first is None or any(again is None for _, again in runs):
        return found
    sides = [
        _numbers(again, place) for (_, again), place in zip(runs, (found.first.a, found.first.b), strict=True) if again
    ]
    if len(sides) != 2 or sides[0] is None or sides[1] is None or sides[0].size != sides[1].size:
        return found
    return dataclasses.replace(found, first=dataclasses.replace(found.first, numbers=_apart(sides[0], sides[1])))


Again = Callable[[str], Capture]


def _run_of(target: Run, inputs: tuple[Any, ...]) -> tuple[ir.Capture, Again | None]:
    """A recording, and how to run it once more with all numbers of a part."""
    if isinstance(target, ir.Capture):
        return target, None
    if isinstance(target, str | os.PathLike):
        from opscope.opening import open

        return open(cast("str | os.PathLike[str]", target)), None
    if not callable(target):
        raise OpscopeError(f"{target!r} cannot be compared: pass a recording, its file, a model or a function")
    torch = sys.modules.get("torch")
    state = torch.get_rng_state() if torch is not None else None

    def run(part: str | None) -> Capture:
        if torch is not None:
            torch.set_rng_state(state)
        given = [_in_type_of(torch, target, one) for one in inputs]
        module = target if torch is not None and isinstance(target, torch.nn.Module) else None
        with record(module, values="stats" if part is None else "full", part=part) as capture:
            result = target(*given)
        del result  # it was held until the recording ended
        return capture

    capture = run(None)
    if torch is not None:
        torch.set_rng_state(state)
    return capture, run


def _in_type_of(torch: Any, target: Any, given: Any) -> Any:
    if (
        torch is None
        or not isinstance(target, torch.nn.Module)
        or not isinstance(given, torch.Tensor)
        or not given.is_floating_point()
    ):
        return given
    held: Any = next((one for one in target.parameters() if one.is_floating_point()), None)
    return given if held is None else given.to(held.dtype)


def _numbers(again: Again, place: Place | None) -> Any:
    """All numbers of what an operator makes, from a run of its own; None: it could not be found there."""
    if place is None or place.node < 0:
        return None
    capture = again(f'op:"{place.op}"')
    graph = capture.graph
    if place.node >= graph.n_nodes or graph.node(place.node).op != place.op:
        return None
    wanted = next((value.index for value in graph.node(place.node).outputs), -1)
    for table in capture.facts(VALUES.name, 0):
        whole = table.columns.get("values")
        if whole is None:
            continue
        values = cast("list[list[float]]", whole.values)
        rows: list[int] = np.flatnonzero((table.index == wanted) & whole.known).tolist()
        if rows:
            return np.array(values[rows[0]], dtype=np.float64)
    return None


def _apart(a: Any, b: Any) -> Numbers:
    off = np.abs(a - b)
    worst = int(np.argmax(np.nan_to_num(off, nan=np.inf)))
    scale = float(np.sqrt(np.mean(np.square(a)))) or 1.0  # pyright: ignore[reportUnknownArgumentType]
    return Numbers(int(a.size), int(np.count_nonzero(~(off <= 1e-3 * scale))), worst, float(a[worst]), float(b[worst]))
