"""Events as text: what `thunder trace` and `thunder show` print."""

import sys
from collections import Counter

from thunder_cli.events import (
    Decisions,
    Event,
    Failure,
    Fusion,
    Inputs,
    Output,
    Plain,
    Recompiled,
    Recorded,
    Result,
    Stage,
    Started,
)
from thunder_cli.render.changes import change_lines
from thunder_cli.render.part import SHOWN_TRACES, Part
from thunder_cli.render.printer import Printer
from thunder_cli.render.repro import repro_script

LABEL = 10
SHOWN_LINES = 40  # of the first stage, where only changes are shown
SHOWN_CHANGES = 16  # of a later one
LISTED = 6  # operations and lines of a fusion that a title lists


class TerminalView:
    """Prints events as they come.

    Args:
        printer: where to.
        part: what is shown.
        verbose: also prologue and epilogue, and tracebacks of ours.
        changes: of later stages only what the pass changed, of fusions only the facts.
    """

    def __init__(self, printer: Printer, part: Part, verbose: bool = False, changes: bool = False):
        self.printer, self.part, self.verbose = printer, part, verbose
        self.changes = changes and part.is_whole
        self.previous: dict[str, Stage] = {}
        self.fusions: list[str] = []
        self.on: Started | None = None

    def show(self, event: Event) -> None:
        if isinstance(event, Output):
            self.output(event)
            return
        if isinstance(event, Started):
            self.on = event
        if self.part.selects(event) and (rule := _RULES.get(type(event))) is not None:
            rule(self, event)

    def output(self, event: Output) -> None:
        """A line of the program's, marked as such; beside a part it goes where it cannot be taken for it."""
        file = sys.stdout if self.part.is_whole else sys.stderr
        print(f"program   │ {event.text}", file=file, flush=True)

    def started(self, event: Started) -> None:
        where = f"{event.device} (virtual: no GPU here)" if event.virtual else event.device
        versions = ", ".join(f"{name} {version}" for name, version in event.versions.items())
        self.printer.line(f"{event.target}  on {where}  {versions}", "bold")
        self.field("fusions", event.backend)

    def inputs(self, event: Inputs) -> None:
        values = "   ".join(f"{name}: {value}" for name, value in event.values.items()) or "none"
        self.field("inputs", f"{values}      from {event.origin}")

    def plain(self, event: Plain) -> None:
        where = f"{event.source}\n" if event.source else ""
        self.field("plain", f"{where}This is run plainly, not compiled: {event.reason}\n{event.way_out}", "yellow")

    def decisions(self, event: Decisions) -> None:
        """What the trace depends on that no guard can tell beforehand."""
        self.heading("decisions by value", "another outcome compiles again", "#")
        for made in event.made:
            self.printer.line(f"{made['source'] or '?'}  {made['value']}: {made['outcome']}")

    def recompiled(self, event: Recompiled) -> None:
        self.printer.line(f"recompiled   {event.reason}", "yellow")

    def stage(self, event: Stage) -> None:
        if self.part.stage is not None:
            self.printer.code(event.text, "python")
        elif event.trace in SHOWN_TRACES or self.verbose:
            trace = "" if event.trace == "computation" else f"{event.trace} "
            self.heading(f"{trace}{event.index}  {event.title}", summary(event), "#")
            if not self.changes:
                self.printer.code(event.text, "python")
            elif event.trace in self.previous:
                self.changed(self.previous[event.trace], event)
            else:
                self.beginning(event)
        self.previous[event.trace] = event

    def beginning(self, event: Stage) -> None:
        """The function of a stage, cut if it is long."""
        lines = event.text.splitlines()
        start = next((i for i, line in enumerate(lines) if line.startswith("def ")), 0)
        shown = lines[start : start + SHOWN_LINES]
        self.printer.code("\n".join(shown), "python")
        if more := len(lines) - start - len(shown):
            self.printer.line(f"  ... {more} more lines (-v)")

    def changed(self, before: Stage, after: Stage) -> None:
        """What a pass did, aligned."""
        lines = change_lines(before, after)
        if not lines:
            self.printer.line("  nothing changed")
        shown = lines[:SHOWN_CHANGES]
        widths = [max((len(line[i]) for line in shown), default=0) for i in (1, 2)]
        for sign, what, why, where in shown:
            text = f"  {sign} {what:{min(widths[0], 44)}}  {why:{min(widths[1], 60)}}  {where}".rstrip()
            self.printer.line(text, {"-": "red", "+": "green"}.get(sign, ""))
        if more := len(lines) - len(shown):
            self.printer.line(f"  ... {more} more changes (-v)")

    def fusion(self, event: Fusion) -> None:
        self.fusions.append(event.path)
        if self.changes:
            self.heading(fusion_title(event), "", "#")
            self.printer.line(kernel_facts(event) if event.kernel else f"no kernel: {event.missing}")
            return
        if self.part.only in (None, "fusions"):
            self.fusion_text(event, "definition", event.definition, "python")
        if self.part.only in (None, "kernels"):
            self.fusion_text(event, "kernel", event.kernel, "cuda", kernel_facts(event))
        if self.part.only in (None, "repro"):
            self.fusion_text(event, "repro", repro_script(event, self.on), "python")

    def fusion_text(self, event: Fusion, what: str, text: str | None, language: str, facts: str = "") -> None:
        comment = "//" if language == "cuda" else "#"
        self.heading(f"{fusion_title(event)}  {what}", "", comment)
        if text is None:
            self.printer.line(f"{comment} {event.missing}", "yellow")
            return
        if facts:
            self.printer.line(f"{comment} {facts}", "bold")
        self.printer.code(text, language)

    def result(self, event: Result) -> None:
        self.printer.line()
        self.field("result", event.text)
        style = {True: "green", False: "bold red", None: "yellow"}[event.equal]
        self.field("", event.comparison, style)

    def recorded(self, event: Recorded) -> None:
        following = [f"thunder repro --fusion {self.fusions[0]}"] if self.fusions else []
        following += ["thunder show --only kernels", "thunder why VALUE"] if self.changes and self.fusions else []
        self.field("session", f"{event.path}      next: {' · '.join([*following, 'thunder show'])}")

    def failure(self, event: Failure) -> None:
        sys.stdout.flush()
        print_error(event.message)
        if self.verbose and event.detail:
            print(event.detail, file=sys.stderr)

    def field(self, name: str, text: str, style: str = "") -> None:
        """A named line; further lines of the text stand under its first."""
        self.printer.line(name.ljust(LABEL) + text.replace("\n", "\n" + " " * LABEL), style)

    def heading(self, title: str, right: str, comment: str) -> None:
        """A rule with a title; beside a part it is a comment, so that the part stays a program."""
        if not self.part.is_whole:
            self.printer.line(f"{comment} {title}  {right}".rstrip())
            return
        self.printer.line()
        rule = "─" * max(self.printer.width - len(title) - len(right) - 5, 2)
        self.printer.line(f"── {title} {rule} {right}".rstrip(), "bold cyan")


_RULES = {
    Started: TerminalView.started,
    Inputs: TerminalView.inputs,
    Plain: TerminalView.plain,
    Decisions: TerminalView.decisions,
    Recompiled: TerminalView.recompiled,
    Stage: TerminalView.stage,
    Fusion: TerminalView.fusion,
    Result: TerminalView.result,
    Recorded: TerminalView.recorded,
    Failure: TerminalView.failure,
}


def summary(stage: Stage) -> str:
    """`3 operations, 1 removed`"""
    if not stage.operations:
        return ""
    count = sum(operation["depth"] == 0 for operation in stage.operations)
    done = Counter(event["kind"] for event in stage.events)
    return ", ".join([f"{count} operation{'s' * (count != 1)}", *(f"{n} {kind}" for kind, n in done.items())])


def fusion_title(fusion: Fusion) -> str:
    """`nvFusion0 (add, mul)  quickstart.py:4, 7`"""
    operations = ", ".join(fusion.operations)
    if len(fusion.operations) > LISTED:
        operations = f"{', '.join(fusion.operations[:LISTED])}, ... {len(fusion.operations)} operations"
    lines: dict[str, list[str]] = {}
    for source in fusion.sources:
        path, _, line = source.rpartition(":")
        lines.setdefault(path, []).append(line)
    places = [f"{path}:{', '.join(found[:LISTED])}{', ...' * (len(found) > LISTED)}" for path, found in lines.items()]
    return f"{fusion.path} ({operations})  {'  '.join(places)}"


def kernel_facts(fusion: Fusion) -> str:
    """`nvfuser_pointwise_f0_c1_r0_g0, grid 1, block 128, 12 registers, 80 bytes moved`"""
    parts = []
    for kernel in fusion.facts.get("kernels", []):
        parts.append(kernel["name"])
        parts += [f"{what} {sizes(kernel[what])}" for what in ("grid", "block") if kernel[what]]
        parts += [f"{kernel['registers']} registers"] if kernel["registers"] else []
        parts += [f"{kernel['shared_memory']} bytes of shared memory"] if kernel["shared_memory"] else []
    return ", ".join([*parts, f"{fusion.facts['bytes_moved']} bytes moved"]) if fusion.facts else ""


def sizes(dimensions: list[int]) -> str:
    """`128`, or `16x8` where there is more than one dimension."""
    while len(dimensions) > 1 and dimensions[-1] == 1:
        dimensions = dimensions[:-1]
    return "x".join(map(str, dimensions))


def print_error(message: str) -> None:
    """What went wrong, on standard error."""
    print(f"thunder: {message}", file=sys.stderr, flush=True)
