"""Arguments that several commands share."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import click

import opscope
from opscope.capture import Capture
from opscope.errors import OpscopeError

Function = TypeVar("Function", bound=Callable[..., Any])

FILE = click.argument("file", metavar="X", type=click.Path(path_type=Path))
SOURCES = click.option(
    "--sources",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Search DIR for the Python files and generated code that X refers to, and embed them (repeatable).",
)
PROFILE = click.option(
    "--profile",
    type=click.Path(path_type=Path),
    metavar="PROFILE",
    help="A measured profile of the same program: a Chrome trace of torch.profiler (also .gz), or a report of Jittor's "
    "jt.profile_scope as JSON.",
)
TABLES = click.option(
    "--table",
    "tables",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Figures of your own (CSV, Parquet, JSON) by a column node, path or name (repeatable).",
)
_MOST_DIGITS = 18
_OPEN = "A number for an open size of X: a symbol (s77=4), an axis of an input (x[0]=4), or ?=4 for all without a name "
SIZE = click.option("--size", "sizes", multiple=True, metavar="NAME=N", help=f"{_OPEN}(repeatable).")
_SIZE_TOO = click.option(  # the same word has two meanings, which look different
    "--size",
    "sizes",
    multiple=True,
    metavar="NAME=N|W|WxH",
    help=f"{_OPEN}(repeatable). Of pictures: the width, or a box to fit into, in pixels.",
)
WEIGHTS = click.option(
    "--weights", is_flag=True, help="Read the weights in X and keep statistics of each (NaN, min, max, rms, …)."
)
ONTO = click.option(
    "--onto",
    type=click.Path(path_type=Path),
    metavar="CAPTURE",
    help="X is a checkpoint: show its weights on the graph of CAPTURE, by name and shape.",
)
STAGE = click.option("--stage", metavar="NAME", help="Only this stage (default: the first).")


def opened(command: Function) -> Function:
    """A command that reads one file: X and the options of how to read it become `capture`. A command that has a `size`
    of its own gets what is no size of X."""
    has_own = "size" in signature(command).parameters

    @wraps(command)
    def with_capture(
        file: Path,
        sources: tuple[Path, ...],
        profile: Path | None,
        sizes: tuple[str, ...],
        tables: tuple[Path, ...],
        weights: bool,
        onto: Path | None,
        **rest: Any,
    ) -> Any:
        if has_own:
            own = [text for text in sizes if "=" not in text]
            rest["size"], sizes = own[-1] if own else None, tuple(text for text in sizes if "=" in text)
        capture = open_onto(file, onto, sources=sources, profile=profile, sizes=numbers(sizes), weights=weights)
        add_tables(capture, tables)
        gc.freeze()  # all of it is there until the command ends: garbage need not be looked for in it
        return command(capture=capture, **rest)

    return FILE(SOURCES(PROFILE((_SIZE_TOO if has_own else SIZE)(TABLES(WEIGHTS(ONTO(with_capture)))))))  # type: ignore[return-value]


def open_onto(file: Path, onto: Path | None, *, weights: bool, **how: Any) -> Capture:
    """The file; or, if it is a checkpoint that belongs onto a graph, that graph with its weights."""
    if onto is None:
        return opscope.open(file, weights=weights, **how)
    from opscope.analysis.onto import onto as put

    held = opscope.open(file, weights=True)
    if held.origin.framework != "weights":
        raise OpscopeError(f"--onto: {file} is no checkpoint ({held.origin.format}): it has a graph of its own")
    return put(opscope.open(onto, **how), held, str(file))


def add_tables(capture: Capture, tables: Sequence[Path]) -> None:
    """Join the user's tables, and say what of them found no place."""
    for table in tables:
        joined = capture.add_table(table)
        if joined.unmatched:
            click.echo(str(joined), err=True)


def numbers(sizes: Sequence[str]) -> dict[str, int]:
    """`s77=4` as the commands take it."""
    found: dict[str, int] = {}
    for text in sizes:
        name, equals, number = text.rpartition("=")
        if not equals or not name.strip() or not number.strip().isdecimal() or len(number) > _MOST_DIGITS:
            raise OpscopeError(f"--size {text}: not NAME=N, such as s77=4 or x[0]=4")
        found[name.strip()] = int(number)
    return found
