"""PyTorch's own database of operators, each with and without the recorder, forward and backward.

    python tests/torch/campaigns/operators.py --results operators.jsonl [--only add mul]

An operator is faithful if its results, the gradients and what it wrote are the same to the bit with and without the
recorder; every operator that an independent log sees is in the graph; every backward operator has a link, to an
operator of its function's name where one ran, or a reason; every edge leads to the numbers that its reader read.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import types
import unittest
from typing import Any

import torch
from fidelity import Numbers, campaign, difference, said, seed, tensors, wrong_edges

import opscope

SAMPLES = 3
UNINITIALIZED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")


@functools.cache
def database() -> dict[str, Any]:
    with contextlib.suppress(ModuleNotFoundError):
        return _database()
    # A package that PyTorch's own tests need, and its database does not.
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    vars(sys.modules["expecttest"])["TestCase"] = unittest.TestCase
    return _database()


def _database() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return {f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name: op for op in op_db}


def samples(op: Any) -> tuple[torch.dtype, bool, list[Any]]:
    wanted = (torch.float32, torch.float64, torch.complex64, torch.bfloat16, torch.int64, torch.bool)
    supported = op.supported_dtypes("cpu")
    dtype = next(dtype for dtype in (*wanted, *supported) if dtype in supported)
    has_gradients = op.supports_autograd and dtype.is_floating_point
    seed()
    found = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=has_gradients), SAMPLES))
    return dtype, has_gradients, found


def copied(held: Any) -> Any:
    if isinstance(held, torch.Tensor):
        copy = held.detach().clone()
        is_dense = held.layout == torch.strided and not held.is_meta
        if is_dense and held.untyped_storage().nbytes() > held.numel() * held.itemsize:
            copy = torch.empty(0, dtype=held.dtype)  # it shows a part of its memory, all of which the sample needs
            copy.set_(held.untyped_storage().clone(), held.storage_offset(), held.shape, held.stride())
        return copy.requires_grad_(held.requires_grad) if held.requires_grad else copy
    if isinstance(held, dict):
        return {key: copied(item) for key, item in held.items()}
    if isinstance(held, list | tuple):
        items = [copied(item) for item in held]
        return items if isinstance(held, list) else type(held)(*items) if hasattr(held, "_fields") else tuple(items)
    return held


def run(op: Any, sample: Any, around: Any, *, is_trained: bool = True) -> list[torch.Tensor | None]:
    """Forward and backward, or forward alone. Returns results, gradients and the arguments as they are afterwards."""
    given = copied([sample.input, list(sample.args), sample.kwargs])
    leaves = [tensor for tensor in tensors(given) if tensor is not None]
    wanted = [tensor for tensor in leaves if tensor.requires_grad]
    seed()
    with around, torch.set_grad_enabled(is_trained):
        out = op(given[0], *given[1], **given[2])
        seeds = [t for t in tensors(sample.output_process_fn_grad(out)) if t is not None and t.requires_grad]
        gradients: Any = ()
        if seeds and wanted and is_trained:
            gradients = torch.autograd.grad(
                seeds, wanted, [torch.ones_like(t) for t in seeds], allow_unused=True, retain_graph=True
            )
    return [*tensors(out), *gradients, *leaves]


class Both:
    """The recorder and an independent log of what ran."""

    def __init__(self) -> None:
        self.log = Numbers()
        self.recording: Any = opscope.record()

    def __enter__(self) -> None:
        self.capture = self.recording.__enter__()
        self.log.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.log.__exit__(*error)
        self.recording.__exit__(*error)


def check(name: str) -> dict[str, Any]:
    op = database()[name]
    try:
        _, _, found = samples(op)
    except Exception as error:
        return {"verdict": f"not run: {type(error).__name__}: {error}"[:200]}
    faults: list[str] = []
    row: dict[str, Any] = {"samples": len(found), "nodes": 0, "backward": 0, "linked": 0, "differs": 0}
    marks: list[str] = []
    for sample in found:
        try:
            plain, again = (run(op, sample, contextlib.nullcontext()) for _ in range(2))
        except Exception as error:
            return {"verdict": f"not run: {type(error).__name__}: {error}"[:200]}
        with Numbers() as log:
            run(op, sample, contextlib.nullcontext())
        if not log.rows:
            continue  # it computes with numbers alone: there is nothing to record
        with opscope.record() as cap:
            recorded = run(op, sample, contextlib.nullcontext())
        if op.name not in UNINITIALIZED and not difference(plain, again) and (where := difference(recorded, plain)):
            row["differs"] += 1
            faults.append(f"not the same to the bit: {where}")
        told = said(cap)
        for key in ("nodes", "backward", "linked"):
            row[key] += told[key]
        faults += [f"{key}: {told[key]}" for key in ("silent", "misled", "problems", "gaps", "before") if told[key]]
        marks += told["warnings"]
        alone = functools.partial(run, op, sample, contextlib.nullcontext(), is_trained=False)
        plain, again = alone(), alone()
        with opscope.record() as cap:
            recorded = alone()
        if op.name not in UNINITIALIZED and not difference(plain, again) and (where := difference(recorded, plain)):
            row["differs"] += 1
            faults.append(f"not the same to the bit: {where} without gradients")
            marks += cap.all_warnings() or ["-"]
        both = Both()
        run(op, sample, both)
        faults += [f"edge {edge}" for edge in wrong_edges(both.capture, both.log)]
    row["marks"] = sorted(set(marks))
    unmarked = [fault for fault in faults if not fault.startswith("not the same") or not marks or "-" in marks]
    row["faults"] = sorted(set(faults))
    return {"verdict": "faithful" if not unmarked else "; ".join(sorted(set(unmarked)))[:300], **row}


if __name__ == "__main__":
    campaign(__doc__, lambda: list(database()), check, seconds=120)
