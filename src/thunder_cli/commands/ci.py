"""`thunder ci`: trace every entry of thunder.toml, and compare each with its golden session."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from thunder_cli import configuration, device, inputs, process, session, target
from thunder_cli.commands.diff import ALLOW, FORMAT, VERBOSE, change_called, format_called, show
from thunder_cli.commands.trace import JSON, NO_COLOR
from thunder_cli.configuration import Entry
from thunder_cli.diff.alignment import Difference
from thunder_cli.diff.sessions import Change, Comparison, Section, compare
from thunder_cli.errors import CommandError, Exit, did_you_mean
from thunder_cli.events import Progress
from thunder_cli.job import Job
from thunder_cli.render.progress import ProgressLine
from thunder_cli.session import Session


def ci(
    names: Annotated[list[str] | None, typer.Argument(metavar="[ENTRY]", help="Only these entries.")] = None,
    config: Annotated[Path, typer.Option(help="The list of entries.")] = Path(configuration.FILE),
    allow: ALLOW = "cosmetic",
    accept: Annotated[bool, typer.Option("--accept", help="Make what is traced now the golden sessions.")] = False,
    form: FORMAT = "text",
    json: JSON = False,
    no_color: NO_COLOR = False,
    verbose: VERBOSE = False,
) -> None:
    """Trace the entries of thunder.toml and compare with what is kept in git. Exits as thunder diff does."""
    allowed, form = change_called(allow), "json" if json else format_called(form)
    found = configuration.read(config)
    os.chdir(config.parent)
    jobs = [(entry, job_of(entry)) for entry in chosen(found.entries, names or [])]
    answers = [compare_entry(entry, job, found.golden / entry.name, accept) for entry, job in jobs]
    show(answers, form, no_color, verbose)
    raise typer.Exit(Exit.FINE if all(answer.change <= allowed for answer in answers) else Exit.NO)


def chosen(entries: list[Entry], names: list[str]) -> list[Entry]:
    known = [entry.name for entry in entries]
    for name in names:
        if name not in known:
            raise CommandError(f"there is no entry {name}.{did_you_mean(name, known)}\nThere are {', '.join(known)}.")
    return [entry for entry in entries if not names or entry.name in names]


def job_of(entry: Entry) -> Job:
    """What the worker is asked for; a mistake in the entry is told before anything is traced."""
    try:
        found = target.parse(entry.entry)
        for text in entry.inputs:
            inputs.check(text)
        chip, virtual = device.choose(entry.target)
    except CommandError as error:
        raise CommandError(f"entries.{entry.name}: {error}", error.code) from None
    return Job(
        script=found.script,
        module=found.module,
        entry=found.entry,
        device=chip,
        virtual=virtual,
        inputs=entry.inputs,
        arguments=entry.arguments,
        executors=entry.executors,
        grad=entry.grad,
        timeout=entry.timeout,
    )


def compare_entry(entry: Entry, job: Job, golden: Path, accept: bool) -> Comparison:
    """Trace an entry, and compare with what is accepted; or accept it."""
    kept = run(entry, job)
    if accept and not kept.failures:
        golden.parent.mkdir(parents=True, exist_ok=True)
        session.check_out(golden)
        session.write(session.golden(kept), entry.name, golden)
    if not (golden / session.INDEX).exists():
        difference = Difference("outcome", None, f"{entry.name} has no golden session", note="thunder ci --accept")
        sections = [Section(str(golden), Change.STRUCTURAL, [difference])]
        sections += [Section("failed", Change.STRUCTURAL, [failed(kept)])] if kept.failures else []
        return Comparison(str(golden), entry.name, sections)
    return compare(session.read(golden), kept, (str(golden), entry.name))


def failed(kept: Session) -> Difference:
    return Difference("outcome", None, kept.failures[0].message)


def run(entry: Entry, job: Job) -> Session:
    """The session of an entry, kept like that of any trace. What went wrong is told on standard error as well."""
    kept = Session(command=f"thunder ci {entry.name}", created=session.now())
    progress = ProgressLine()
    for event in process.run(job, device.worker_environment(job.device, job.virtual)):
        kept.add(event)
        progress.show(f"{entry.name}: {event.text}" if isinstance(event, Progress) else f"tracing {entry.name}")
    progress.clear()
    if kept.stages:
        session.write(kept, session.slug(entry.name), None)
    for failure in kept.failures:
        print(f"thunder: {entry.name}: {failure.message}", file=sys.stderr)
        if failure.kind == "interrupted":
            raise typer.Exit(Exit.INTERRUPTED)
    return kept
