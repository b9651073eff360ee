"""Captures to look at, as .opscope files: every model of step_models.py, some of them in every way of capturing.

python benchmarks/networks/make.py OUT [NAME…]
python benchmarks/networks/make.py OUT --files FOLDER…      every file there that can be opened
python benchmarks/networks/make.py --tests                  tests/data/networks: small, and naming no machine
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from step_models import CALLS, STEPS

import opscope
from opscope import wire
from opscope.ir import Capture

WAYS = ("record", "export", "fx", "jit-trace", "jit-script", "dynamo", "joint", "autograd")
TESTS = Path(__file__).parents[2] / "tests" / "data" / "networks"
IN_TESTS = (
    *("gpt2_train", "llama_train", "resnet50_train", "vit_train", "unet_train", "densenet_train", "gan_train"),
    *(
        "distilled_train",
        "clip_train",
        "checkpointed_train",
        "accumulated_train",
        "lstm_cells_train",
        "unrolled_train",
        "t5",
    ),
)
IN_EVERY_WAY = ("resnet50", "vit", "unet", "lstm_cells", "siamese")


def made(name: str) -> opscope.Capture:
    torch.manual_seed(0)
    if name in STEPS:
        model, optimizer, run = STEPS[name]()
        with opscope.record(model, optimizer=optimizer) as capture:
            run()
        return capture
    model, args, kwargs = CALLS[name]()
    return opscope.trace(model, *args, **kwargs)


def bare(capture: opscope.Capture) -> Capture:
    """Graphs and names, without sources and folders: costs are computed again when it is opened."""
    frames = capture.pools.frames.rows()
    frames[:] = [frame._replace(file=Path(frame.file).name) for frame in frames]
    return Capture(capture.pools, capture.stages, capture.stage_links, origin=capture.origin)


def record(out: Path, wanted: list[str]) -> None:
    for name in wanted or [*STEPS, *CALLS]:
        made(name).save(out / f"{name}.opscope")
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


def store() -> None:
    TESTS.mkdir(exist_ok=True)
    for name in IN_TESTS:
        with (TESTS / f"{name}.opscope").open("wb") as file:
            wire.write(bare(made(name)), file)


if sys.argv[1:] == ["--tests"]:
    store()
elif __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    if sys.argv[2:3] == ["--files"]:
        read(place, sys.argv[3:])
    else:
        record(place, sys.argv[2:])
