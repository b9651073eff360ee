"""Arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

import opscope

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
    metavar="REPORT",
    help="A profile report of the same run (Jittor's jt.profile_scope, as JSON).",
)
STAGE = click.option("--stage", metavar="NAME", help="Only this stage (default: the first).")


def opened(command: Function) -> Function:
    """A command that reads one file: X, --sources and --profile become `capture`."""

    @wraps(command)
    def with_capture(file: Path, sources: tuple[Path, ...], profile: Path | None, **rest: Any) -> Any:
        return command(capture=opscope.open(file, sources=sources, profile=profile), **rest)

    return FILE(SOURCES(PROFILE(with_capture)))  # type: ignore[return-value]
