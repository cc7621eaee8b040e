"""`thunder why`: what became of a value, an operation or a line of the program, and why."""

import json as json_module
from typing import Annotated

import typer

from thunder_cli import session
from thunder_cli.commands.trace import JSON, NO_COLOR, SESSION
from thunder_cli.life import Life, Lives
from thunder_cli.render.printer import Printer

LISTED = 8  # lives that are told in full


def why(
    subject: Annotated[
        str,
        typer.Argument(metavar="VALUE|OP|LINE", help="As in the traces: f, ltorch.add, nvFusion0, model.py:7 or 7."),
    ],
    name: SESSION = None,
    json: JSON = False,
    no_color: NO_COLOR = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tell of all that are meant.")] = False,
) -> None:
    """Tell the life of a value: its line, what it is made of, what each pass did to it and why, and where it runs."""
    path = session.find(name)
    kept = session.read(path)
    try:
        lives = Lives(kept).called(subject)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise session.broken(path, f"{type(error).__name__}: {error}") from None
    if json:
        for life in lives:
            print(json_module.dumps(life.to_json(), ensure_ascii=False))
        return
    printer = Printer(no_color)
    told = lives if verbose else lives[:LISTED]
    for i, life in enumerate(told):
        if i:
            printer.line()
        show(life, printer)
    if len(lives) > len(told):
        printer.line(
            f"\n... and {len(lives) - len(told)} more (-v): {', '.join(x.name for x in lives[len(told) :][:12])}"
        )


def show(life: Life, printer: Printer) -> None:
    kind = f'  "{life.type}"' if life.type else ""
    printer.line(f"{life.name}{kind}  {life.source}".rstrip(), "bold")
    printer.line()
    widths = [max((len(getattr(step, part)) for step in life.steps), default=0) for part in ("where", "what")]
    previous = None
    for step in life.steps:
        where = step.where if step.where != previous else ""
        previous = step.where
        printer.line(f"{where:{widths[0]}}  {step.what:{widths[1]}}  {step.why}".rstrip())
