"""opscope demo: a real sample, described."""

from __future__ import annotations

from importlib.resources import as_file, files

import click

import opscope
from opscope.errors import OpscopeError

SAMPLE = "resnet18_train.opscope"


@click.command()
def command() -> None:
    """Describe a real training graph: ResNet-18 in Jittor, one step of SGD, with its fused kernels."""
    from .describe import console, describe

    sample = files("opscope") / "_samples" / SAMPLE
    if not sample.is_file():
        raise OpscopeError(f"the sample {SAMPLE} is not in this installation: install opscope again")
    with as_file(sample) as path:
        capture = opscope.open(path)
    console().print(describe(capture, "ResNet-18, one training step"))
