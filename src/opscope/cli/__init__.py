"""The command line: `opscope COMMAND …`. One module per command, imported when it is called."""

from __future__ import annotations

import importlib
import os
import sys
import traceback

import click

from opscope import __version__
from opscope.errors import OpscopeError

COMMANDS = {
    "demo": "explore a real training graph that ships with opscope",
    "view": "open files in the browser",
    "info": "describe a file",
    "stats": "cost: parameters, FLOPs, activations, memory, bytes",
    "ir": "print the graph as text or as a table",
    "find": "search for operators and paths of operators",
    "diff": "show what changed between two graphs, or from stage to stage",
    "export": "convert to another format",
    "trace": "run a script and capture what it computes",
}


class Commands(click.Group):
    """Knows the names of the commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"opscope.cli.{cmd_name}").command

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
    """Exit codes: 0 success, 1 a --fail-on condition holds, 2 bad usage or bad input."""
    arguments = sys.argv[1:] if args is None else args
    debug = "--debug" in arguments[:1]
    try:
        sys.exit(cli.main(arguments, prog_name="opscope", standalone_mode=False) or 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        _fail("stopped", debug, 130)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "opscope"
        _fail(f"{error.format_message()} (see `{command} --help`)", debug)
    except click.ClickException as error:
        _fail(error.format_message(), debug)
    except OpscopeError as error:
        _fail(str(error), debug, getattr(error, "code", 2))
    except BrokenPipeError:
        # The reader of our output closed the pipe (`opscope ir X | head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        _fail("stopped", debug, 130)


def _fail(message: str, debug: bool, code: int = 2) -> None:
    if debug:
        traceback.print_exc()
    one_line = " ".join(message.split())
    # Names in a file may contain anything, including terminal escape sequences.
    safe = "".join(c if c.isprintable() else "�" for c in one_line)
    print(f"opscope: {safe}", file=sys.stderr)
    sys.exit(code)
