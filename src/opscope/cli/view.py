"""opscope view X...: the interactive page."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from opscope.capture import Capture
from opscope.ir.ranks import is_one_rank
from opscope.opening import from_bytes
from opscope.server import Server, forward_line, over_ssh
from opscope.tables import as_csv

from .common import ONTO, PROFILE, SIZE, SOURCES, TABLES, WEIGHTS, add_tables, numbers, open_onto

BROWSER = click.option(
    "--browser/--no-browser", default=True, help="Open the browser (default), or only print the URL."
)
PORT = click.option(
    "--port", type=click.IntRange(1, 65535), metavar="N", help="Listen on this port (default: any free one)."
)


@click.command()
@click.argument("files", metavar="X...", nargs=-1, required=True, type=click.Path(path_type=Path))
@SOURCES
@PROFILE
@SIZE
@TABLES
@WEIGHTS
@ONTO
@BROWSER
@PORT
def command(
    files: tuple[Path, ...],
    sources: tuple[Path, ...],
    profile: Path | None,
    sizes: tuple[str, ...],
    tables: tuple[Path, ...],
    weights: bool,
    onto: Path | None,
    browser: bool,
    port: int | None,
) -> None:
    """Open files in the browser, each in its own tab; files of single ranks of one program together in one.

    The page is served on this machine only, at a URL that contains a secret; Ctrl-C stops it. Over SSH, the
    command to run on your own machine is printed instead.
    """
    given = numbers(sizes)
    captures = [
        (file.name, open_onto(file, onto, sources=sources, profile=profile, sizes=given, weights=weights))
        for file in files
    ]
    if len(captures) > 1 and all(is_one_rank(capture) for _, capture in captures):
        from opscope.worlds import as_one

        captures = [(f"{len(captures)} ranks", as_one([capture for _, capture in captures]))]
    for _, capture in captures[:1]:  # a table is about the first file
        add_tables(capture, tables)
    serve(captures, browser=browser, port=port)


def serve(captures: Sequence[tuple[str, Capture]], *, browser: bool, port: int | None) -> None:
    """Serve captures until Ctrl-C."""
    with Server(from_bytes, port or 0, as_csv) as server:
        for name, capture in captures:
            server.add(name, capture, local=True)
        try:
            _announce(server, browser)
            server.wait()
        except KeyboardInterrupt:
            click.echo("", err=True)


def _announce(server: Server, browser: bool) -> None:
    url = server.url()
    click.echo(url)
    if over_ssh():
        line = forward_line(server.port)
        click.echo(f"On the machine with the browser, run\n  {line}\nand open the URL there.", err=True)
    elif browser and not webbrowser.open(url):
        click.echo("Could not open a browser: open the URL yourself.", err=True)
    click.echo("Press Ctrl-C to stop.", err=True)
