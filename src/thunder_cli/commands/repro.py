"""`thunder repro`: the script that runs one fusion of a session alone."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from thunder_cli import session
from thunder_cli.commands.trace import NO_COLOR
from thunder_cli.errors import CommandError
from thunder_cli.render.printer import Printer
from thunder_cli.render.repro import repro_script, run_command


def repro(
    fusion: Annotated[str, typer.Option(help="Its name: nvFusion0, backward/nvFusion0.")],
    name: Annotated[str | None, typer.Option("--session", help="Its name or directory; the last one.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write it to this file.")] = None,
    no_color: NO_COLOR = False,
) -> None:
    """Print a script that runs one fusion alone: python repro.py."""
    kept = session.read(session.find(name))
    found = kept.fusion(fusion)
    script = repro_script(found, kept.started)
    if script is None:
        raise CommandError(f"{fusion} has no repro: {found.missing}\nTrace the program again, so that the fusion runs.")
    if output is None:
        Printer(no_color).code(script, "python")
        return
    try:
        output.write_text(script, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}.\nGive another file with -o.") from None
    print(f"{output} runs {found.path} alone: {run_command(kept.started, str(output))}", file=sys.stderr)
