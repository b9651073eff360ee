"""Only some phases of a capture: a training step without its backward pass, or nothing but the optimizer."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

import numpy as np

from opscope.errors import OpscopeError
from opscope.ir import PHASE_ID, PHASES, Capture
from opscope.ir.cut import cut_capture

from .summary import phase_counts

Kind = TypeVar("Kind", bound=Capture)


def only_phases(capture: Kind, phases: Collection[str]) -> Kind:
    """A capture with the operators of these phases. What they read from others comes from outside."""
    unknown = [phase for phase in phases if phase not in PHASES]
    if unknown:
        raise OpscopeError(f"{unknown[0]!r} is not a phase (there are: {', '.join(PHASES)})")
    wanted = np.array([PHASE_ID[phase] for phase in phases], dtype=np.int8)
    part = cut_capture(capture, lambda graph: np.isin(graph.node_phase, wanted))
    if not part.stages:
        there = sorted({phase for stage in capture.stages for phase in phase_counts(stage.graph)}, key=PHASES.index)
        raise OpscopeError(
            f"no operator is in the phase {' or '.join(phases)} (there are: {', '.join(there) or 'no operators'})"
        )
    before, after = (sum(stage.graph.n_nodes for stage in found.stages) for found in (capture, part))
    words = f"only {', '.join(phases)}: {before - after:,} of {before:,} operators, of other phases, were left out"
    part.warnings = [*capture.warnings, words]
    return part
