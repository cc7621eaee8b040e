"""The `thunder` command: its subcommands, and how errors of any of them end it."""

import sys
from typing import Annotated

import typer

import thunder
from thunder_cli.commands.ci import ci
from thunder_cli.commands.diff import diff
from thunder_cli.commands.doctor import doctor
from thunder_cli.commands.repro import repro
from thunder_cli.commands.sessions import sessions
from thunder_cli.commands.show import show
from thunder_cli.commands.targets import targets
from thunder_cli.commands.trace import trace
from thunder_cli.commands.why import why
from thunder_cli.errors import CommandError, Exit
from thunder_cli.render.terminal import print_error

app = typer.Typer(
    name="thunder",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # importing rich takes longer than everything else that --help does
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (trace, show, why, diff, ci, repro, sessions, targets, doctor):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"thunder {thunder.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """See what the thunder compiler makes of a PyTorch program, stage by stage."""


def main() -> None:
    """Run the command that the arguments say, and exit with its code."""
    try:
        app(prog_name="thunder")
    except CommandError as error:
        print_error(str(error))
        sys.exit(error.code)
    except Exception as error:
        print_error(f"failed: {type(error).__name__}: {error}\nThis is a bug in thunder; -v prints where.")
        if "-v" in sys.argv or "--verbose" in sys.argv:
            raise
        sys.exit(Exit.OURS)
