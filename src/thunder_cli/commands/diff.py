"""`thunder diff`: compare two sessions, or a session with a directory kept in git, by what their traces mean."""

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from thunder_cli import session
from thunder_cli.commands.trace import JSON, NO_COLOR, SESSION
from thunder_cli.diff.sessions import Change, Comparison, Side, compare, compare_two
from thunder_cli.errors import CommandError, Exit, did_you_mean
from thunder_cli.events import Stage
from thunder_cli.render.diff import DiffView, markdown
from thunder_cli.render.part import is_called
from thunder_cli.render.printer import Printer

FORMATS = ("text", "markdown", "json")
ALLOW = Annotated[str, typer.Option(help=f"What is no reason to fail: {', '.join(map(str, Change))}.")]
FORMAT = Annotated[str, typer.Option("--format", help=f"{', '.join(FORMATS)}; markdown is for a pull request comment.")]
VERBOSE = Annotated[bool, typer.Option("--verbose", "-v", help="Print every difference, guards too.")]


def diff(
    before: Annotated[str | None, typer.Argument(metavar="[A]", help="A session or directory; the one before.")] = None,
    after: Annotated[str | None, typer.Argument(metavar="[B]", help="Another; the last session.")] = None,
    against: Annotated[Path | None, typer.Option(help="Compare with this directory, which --accept keeps.")] = None,
    stages: Annotated[
        tuple[str, str] | None, typer.Option(help="Compare two stages: SESSION:2 SESSION:3, or 2 3 of one session.")
    ] = None,
    name: SESSION = None,
    allow: ALLOW = "cosmetic",
    accept: Annotated[bool, typer.Option("--accept", help="Replace A, or the directory, by B.")] = False,
    form: FORMAT = "text",
    json: JSON = False,
    no_color: NO_COLOR = False,
    verbose: VERBOSE = False,
) -> None:
    """Say what is different in two sessions. Exits with 1 if that is more than --allow.

    Identical; cosmetic: names, the order of independent operations, comments; kernel: the same definition, other CUDA
    code or launch; structural: operations, constants, dtypes, shapes, fusion boundaries.
    """
    allowed, form = change_called(allow), "json" if json else format_called(form)
    if stages is not None:
        answer = compare_two(*(find_stage(text, name) for text in stages))
    else:
        old, new = find_both(before, after, against, name)
        if accept:
            accept_session(new, old)
            return
        answer = compare(session.read(old), session.read(new), (str(old), str(new)))
    show([answer], form, no_color, verbose)
    raise typer.Exit(Exit.FINE if answer.change <= allowed else Exit.NO)


def show(answers: Sequence[Comparison], form: str, no_color: bool, verbose: bool) -> None:
    """Print comparisons in one of the formats."""
    if form == "json":
        for answer in answers:
            print(json_module.dumps(answer.to_json(), ensure_ascii=False))
    elif form == "markdown":
        print(markdown(answers), end="")
    else:
        view = DiffView(Printer(no_color), verbose)
        for answer in answers:
            view.show(answer)


def change_called(name: str) -> Change:
    try:
        return Change[name.upper()]
    except KeyError:
        names = ", ".join(map(str, Change))
        raise CommandError(f"--allow {name} is no class of differences.\nChoose one of {names}.") from None


def format_called(name: str) -> str:
    if name not in FORMATS:
        raise CommandError(f"--format {name} is not known.{did_you_mean(name, FORMATS)}\nChoose {', '.join(FORMATS)}.")
    return name


def find_both(before: str | None, after: str | None, against: Path | None, name: str | None) -> tuple[Path, Path]:
    """The two sessions that are meant."""
    if against is not None:
        if after is not None or (before is not None and name is not None):
            raise CommandError("--against takes the place of A: give one session besides it, or none for the last.")
        if not (against / session.INDEX).exists():
            raise CommandError(f"{against} holds no session yet.\nthunder trace TARGET --out {against} makes one.")
        return against, session.find(before or name)
    if before is None:
        there = session.paths()
        if len(there) < 2:
            raise CommandError("there are not two sessions here to compare.\nthunder trace makes one each time.")
        return there[-2], there[-1]
    return session.find(before), session.find(after or name)


def accept_session(new: Path, old: Path) -> None:
    """Replace `old` by what `new` holds, without what differs from run to run."""
    session.check_out(old)
    kept = session.read(new)
    session.write(session.golden(kept), old.name, old)
    print(f"{old} is now {new}")


def find_stage(text: str, name: str | None) -> tuple[Side, Stage]:
    """The stage that `SESSION:STAGE` or `STAGE` means."""
    given, colon, stage = text.rpartition(":")
    path = session.find(given if colon and given else name)
    kept = session.read(path)
    found = [s for s in kept.stages if is_called(s, stage)]
    if len(found) != 1:
        listing = "\n".join(f"  {s.trace}/{s.index}  {s.title}" for s in kept.stages)
        raise CommandError(f"--stages: {path} has no stage {stage!r} alone.\nThe stages are\n{listing}")
    return Side(kept, path.name), found[0]
