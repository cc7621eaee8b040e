"""`thunder repro`: the script that runs one fusion of a session alone."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from thunder_cli import session
from thunder_cli.commands.trace import NO_COLOR, SESSION
from thunder_cli.errors import CommandError
from thunder_cli.events import Fusion
from thunder_cli.render.printer import Printer
from thunder_cli.render.repro import repro_script, run_command
from thunder_cli.render.terminal import fusion_title
from thunder_cli.session import Session


def repro(
    fusion: Annotated[
        str | None, typer.Option(help="Its name, nvFusion0 or backward/nvFusion0; not needed if there is only one.")
    ] = None,
    name: SESSION = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write it to this file.")] = None,
    no_color: NO_COLOR = False,
) -> None:
    """Print a script that runs one fusion alone: python repro.py."""
    kept = session.read(session.find(name))
    found = kept.fusion(fusion) if fusion else only_fusion(kept)
    script = repro_script(found, kept.started)
    if script is None:
        raise CommandError(
            f"{found.path} has no repro: {found.missing}\nTrace the program again, so that the fusion runs."
        )
    if output is None:
        Printer(no_color).code(script, "python")
        return
    try:
        output.write_text(script, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}.\nGive another file with -o.") from None
    print(f"{output} runs {found.path} alone: {run_command(kept.started, str(output))}", file=sys.stderr)


def only_fusion(kept: Session) -> Fusion:
    """The fusion that is meant when none is named."""
    if len(kept.fusions) == 1:
        return kept.fusions[0]
    if not kept.fusions:
        raise CommandError("the session has no fusions.\nthunder show --stage 2 shows what runs each operation.")
    listing = "".join(f"  {fusion_title(fusion)}\n" for fusion in kept.fusions)
    raise CommandError(f"there are {len(kept.fusions)} fusions: say which with --fusion.\n{listing}".rstrip())
