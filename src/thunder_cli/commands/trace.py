"""`thunder trace`: run a program's entry with thunder, and show and record what became of it."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from thunder_cli import device, inputs, process, session, target
from thunder_cli.errors import Exit
from thunder_cli.events import Event, Failure, Operation, Progress, Recorded
from thunder_cli.job import Job
from thunder_cli.render.json_lines import JsonView
from thunder_cli.render.part import ONLY, Part
from thunder_cli.render.printer import Printer, reader_may_leave
from thunder_cli.render.progress import ProgressLine
from thunder_cli.render.terminal import TerminalView, print_error
from thunder_cli.session import Session

CODE_OF = {
    "usage": Exit.USAGE,
    "program": Exit.PROGRAM,
    "interrupted": Exit.INTERRUPTED,
    "ours": Exit.OURS,
}

STAGE = Annotated[str | None, typer.Option(help="Print one stage: its number or name, prologue/0, backward/2.")]
ONLY_PART = Annotated[str | None, typer.Option("--only", help=f"Print one part: {', '.join(ONLY)}.")]
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
NO_COLOR = Annotated[bool, typer.Option("--no-color", help="Print without colours, also on a terminal.")]
SESSION = Annotated[str | None, typer.Option("--session", "-s", help="The session's name or directory; the last one.")]
VERBOSE = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print whole stages, also on a terminal, and prologue and epilogue.")
]
CHANGES = Annotated[
    bool, typer.Option("--changes", help="Print what each pass changed, not whole stages; so it is on a terminal.")
]


def trace(
    program: Annotated[str, typer.Argument(metavar="TARGET", help="script.py:entry or package.module:entry.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="The script's own arguments.")
    ] = None,
    on: Annotated[str, typer.Option("--target", help="auto, cuda, cpu, or a chip: see thunder targets.")] = "auto",
    input: Annotated[
        list[str] | None,
        typer.Option(help="One input of the entry: an expression, or a type such as 'f32[2, 2]@cuda'. Repeatable."),
    ] = None,
    stage: STAGE = None,
    only: ONLY_PART = None,
    json: JSON = False,
    no_color: NO_COLOR = False,
    executors: Annotated[str | None, typer.Option(help="Executors by priority, with commas between.")] = None,
    grad: Annotated[bool, typer.Option("--grad/--no-grad", help="Trace gradients too.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the session to this directory, not to .thunder/sessions.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Stop the program after so many seconds.")] = None,
    changes: CHANGES = False,
    verbose: VERBOSE = False,
) -> None:
    """Show what thunder makes of a function or module.

    That is the stages, the fusions, their kernels, and the result.

    Inputs come from --input, from a function example_inputs() in the script, or from the script's own first call.
    """
    part = Part(stage, only)
    found = target.parse(program)
    for text in input or []:
        inputs.check(text)
    if out is not None:
        session.check_out(out)
    chosen, virtual = device.choose(on)
    job = Job(
        script=found.script,
        module=found.module,
        entry=found.entry,
        device=chosen,
        virtual=virtual,
        inputs=input or [],
        arguments=arguments or [],
        executors=[name.strip() for name in executors.split(",")] if executors else None,
        grad=grad,
        timeout=timeout,
    )
    view = JsonView(part) if json else terminal_view(no_color, part, verbose, changes)
    kept = Session(command=shlex.join(["thunder", *sys.argv[1:]]), created=session.now())
    follow(process.run(job, device.worker_environment(chosen, virtual)), view, kept)
    code = exit_code(kept)
    if kept.stages:
        path = session.write(kept, found.stem, out)
        with reader_may_leave():
            view.show(Recorded(str(path)))
        print_remarks(part, kept)
        part.check(kept.stages)
    raise typer.Exit(code)


def terminal_view(no_color: bool, part: Part, verbose: bool, changes: bool) -> TerminalView:
    """What each pass changed on a terminal or where that is asked for; else whole stages, which are programs."""
    short = changes or (sys.stdout.isatty() and not verbose)
    return TerminalView(Printer(no_color), part, verbose, short)


def follow(events: Iterable[Event], view: JsonView | TerminalView, kept: Session) -> None:
    """Show and keep events as they come."""
    progress = ProgressLine()
    progress.show("starting")
    for event in events:
        kept.add(event)
        if isinstance(event, Progress | Operation):
            progress.show(event.text)
            continue
        progress.clear()
        with reader_may_leave():
            if isinstance(event, Failure) and (stage := kept.unfinished()) is not None:
                kept.add(stage)
                view.show(stage)
            view.show(event)
    progress.clear()


def print_remarks(part: Part, kept: Session) -> None:
    for remark in part.remarks(kept):
        print_error(remark)


def exit_code(kept: Session) -> Exit:
    """What the run amounts to."""
    if kept.failures:
        return CODE_OF[kept.failures[0].kind]
    return Exit.NO if kept.result is not None and kept.result.equal is False else Exit.FINE
