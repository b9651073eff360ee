"""The command line: `opscope COMMAND …`. One module per command, imported when it is called."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from opscope import __version__
from opscope.errors import OpscopeError, lacks_memory, one_line

from . import streams

COMMANDS = {
    "demo": "explore a real training graph that ships with opscope",
    "view": "open files in the browser",
    "info": "describe a file",
    "stats": "cost: parameters, FLOPs, activations, memory, bytes",
    "ir": "print the graph as text or as a table",
    "find": "search for operators and paths of operators",
    "sql": "ask the tables of captures in SQL",
    "diff": "show what changed between two graphs, or from stage to stage",
    "export": "convert to another format",
    "trace": "run a script and capture what it computes",
    "nan": "run a script and find where NaN and infinite numbers were born",
}


@contextmanager
def _own_endings() -> Generator[None]:
    """Click would end with 1 after a closed pipe, and print an empty line after Ctrl-C."""
    try:
        yield
    except BrokenPipeError:
        raise streams.OutputClosed from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None


class Commands(click.Group):
    """Knows the names of the commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"opscope.cli.{cmd_name}").command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _own_endings():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _own_endings():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="opscope")
@click.option("--debug", is_flag=True, help="Show the Python traceback of an error.")
def cli(debug: bool) -> None:
    """opscope shows what a neural network really computes.

    \b
    opscope demo                                   explore an example
    opscope view resnet_train.pkl                  open a file in the browser
    opscope info resnet_train.pkl                  describe a file
    opscope export resnet_train.pkl -o graph.mmd   a diagram of its modules
    """


def main(args: list[str] | None = None) -> None:
    """Exit codes: 0 success, 1 a --fail-on condition holds, 2 bad usage or bad input; 130 after Ctrl-C, and 141 where
    nobody reads the output any more."""
    arguments = sys.argv[1:] if args is None else args
    debug = "--debug" in arguments[:1]
    try:
        if "trace" not in arguments[:2]:  # there, standard output belongs to the script
            streams.prepare()
        code = cli.main(arguments, prog_name="opscope", standalone_mode=False) or 0
        streams.flush()
        sys.exit(code)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _leave(130, debug)
    except (streams.OutputClosed, BrokenPipeError):
        streams.give_up()
        _leave(141, debug)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "opscope"
        _fail(f"{error.format_message()} (see `{command} --help`)", debug)
    except click.ClickException as error:
        _fail(error.format_message(), debug)
    except OpscopeError as error:
        _fail(str(error), debug, getattr(error, "code", 2))
    except OSError as error:
        streams.give_up()
        where = f"{error.filename}: " if error.filename else "the output cannot be written: "
        _fail(f"{where}{error.strerror or error}", debug)
    except Exception as error:
        if lacks_memory(error):
            _fail("this takes more memory than there is", debug)
        _fail(
            f"this should not happen ({type(error).__name__}: {error}). Please report it, with what "
            "`opscope --debug` shows",
            debug,
        )


def _fail(message: str, debug: bool, code: int = 2) -> NoReturn:
    """One line; names in a file may contain anything, including terminal escape sequences."""
    if debug:
        traceback.print_exc()
    else:
        print(f"opscope: {one_line(message, 2000)}", file=sys.stderr)
    _leave(code, debug=False)


def _leave(code: int, debug: bool) -> NoReturn:
    if debug:
        traceback.print_exc()
    sys.exit(code)
