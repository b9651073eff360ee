"""opscope demo: a real sample, described and shown."""

from __future__ import annotations

import sys
from importlib.resources import as_file, files

import click

import opscope
from opscope.errors import OpscopeError

from .view import BROWSER, PORT, serve

SAMPLE = "resnet18_train.opscope"
TITLE = "ResNet-18, one training step"


@click.command()
@click.option("--describe", "only_describe", is_flag=True, help="Only print a description, as when output is piped.")
@BROWSER
@PORT
def command(only_describe: bool, browser: bool, port: int | None) -> None:
    """Explore a real training graph: ResNet-18 in Jittor, one SGD step, with its fused kernels."""
    from .describe import console, describe

    sample = files("opscope") / "_samples" / SAMPLE
    if not sample.is_file():
        raise OpscopeError(f"the sample {SAMPLE} is missing from this installation: reinstall opscope")
    with as_file(sample) as path:
        capture = opscope.open(path)
    console().print(describe(capture, TITLE))
    if not only_describe and sys.stdin.isatty() and sys.stdout.isatty():
        click.echo()
        serve([(TITLE, capture)], browser=browser, port=port)
