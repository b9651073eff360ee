"""What people do with PyTorch besides calling a model: each with and without the recorder.

    python tests/torch/campaigns/scenarios.py --results scenarios.jsonl [--only lora ddp]

A scenario returns whatever must be the same to the bit. Where the products are known by hand, it says how many there
are: the recorder counts as many, or says that it counted a part.
"""

from __future__ import annotations

import warnings
from typing import Any

from fidelity import campaign, difference, said, seed, tensors
from life import SCENARIOS
from torch import Tensor

import opscope


def check(name: str) -> dict[str, Any]:
    run, macs = SCENARIOS[name]

    def fresh() -> list[Tensor | None]:
        seed()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tensors(run())

    plain, again = fresh(), fresh()
    with opscope.record() as cap:
        recorded = fresh()
    after = fresh()
    faults: list[str] = []
    if not difference(plain, again) and (where := difference(recorded, plain)):
        faults.append(f"not the same to the bit: {where}")
    if not difference(plain, again) and (where := difference(after, plain)):
        faults.append(f"not the same afterwards: {where}")
    told = said(cap)
    faults += [f"{key}: {told[key]}" for key in ("silent", "misled", "problems", "before") if told[key]]
    stats = cap.stats()
    if macs is not None and stats.total.macs != macs and not stats.total.at_least:
        faults.append(f"{stats.total.macs} products instead of {macs}")
    cap.stats().to_dict()
    str(stats)
    row = {
        **{key: told[key] for key in ("nodes", "backward", "linked", "unnamed", "gaps")},
        "compared": int(not difference(plain, again)),
        "marks": told["warnings"],
        "macs": stats.total.macs,
        "at least": int(stats.total.at_least),
        "unknown": stats.unknown_ops,
    }
    return {"verdict": "faithful" if not faults else "; ".join(faults)[:400], **row}


if __name__ == "__main__":
    campaign(__doc__, lambda: list(SCENARIOS), check, seconds=200)
