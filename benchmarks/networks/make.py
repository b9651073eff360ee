"""Captures to look at, as .opscope files: every model of step_models.py, some of them in every way of capturing.

python benchmarks/networks/make.py OUT [NAME…]
python benchmarks/networks/make.py OUT --files FOLDER…      every file there that can be opened
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from step_models import CALLS, STEPS

import opscope

WAYS = ("record", "export", "fx", "jit-trace", "jit-script", "dynamo", "joint", "autograd")
IN_EVERY_WAY = ("resnet50", "vit", "unet", "lstm_cells", "siamese")


def record(out: Path, wanted: list[str]) -> None:
    for name in wanted or [*STEPS, *CALLS]:
        torch.manual_seed(0)
        if name in STEPS:
            model, optimizer, run = STEPS[name]()
            with opscope.record(model, optimizer=optimizer) as capture:
                run()
        else:
            model, args, kwargs = CALLS[name]()
            capture = opscope.trace(model, *args, **kwargs)
        capture.save(out / f"{name}.opscope")
    for name in IN_EVERY_WAY if not wanted else []:
        for how in WAYS:
            torch.manual_seed(0)
            model, args, kwargs = CALLS[name]()
            try:
                opscope.trace(model, *args, how=how, **kwargs).save(out / f"{name}.{how}.opscope")
            except opscope.OpscopeError as error:
                print(f"{name} {how}: {str(error).splitlines()[0][:120]}")


def read(out: Path, folders: list[str]) -> None:
    for folder in map(Path, folders):
        for path in sorted(folder.rglob("*")):
            try:
                opened = opscope.open(path)
            except (opscope.OpscopeError, OSError):
                continue
            opened.save(out / f"{folder.name}.{'.'.join(path.relative_to(folder).parts)}.opscope")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    if sys.argv[2:3] == ["--files"]:
        read(place, sys.argv[3:])
    else:
        record(place, sys.argv[2:])
