"""Events as text: what `thunder trace` and `thunder show` print."""

import sys
from collections import Counter

from thunder_cli.events import Event, Failure, Fusion, Inputs, Output, Recorded, Result, Stage, Started
from thunder_cli.render.part import SHOWN_TRACES, Part
from thunder_cli.render.printer import Printer

WIDTH = 96
LABEL = 10


class TerminalView:
    """Prints events as they come.

    Args:
        printer: where to.
        part: what is shown.
        verbose: also prologue and epilogue, and tracebacks of ours.
    """

    def __init__(self, printer: Printer, part: Part, verbose: bool = False):
        self.printer, self.part, self.verbose = printer, part, verbose
        self.fusions: list[str] = []
        self.printed_output = False

    def show(self, event: Event) -> None:
        if isinstance(event, Output):
            self.output(event)
        elif self.part.selects(event) and (rule := _RULES.get(type(event))) is not None:
            rule(self, event)

    def output(self, event: Output) -> None:
        """A line of the program's, marked as such; beside a part it goes where it cannot be taken for it."""
        file = sys.stdout if self.part.is_whole else sys.stderr
        print(f"program   │ {event.text}", file=file, flush=True)
        self.printed_output = True

    def started(self, event: Started) -> None:
        where = f"{event.device} (virtual: no GPU here)" if event.virtual else event.device
        versions = ", ".join(f"{name} {version}" for name, version in event.versions.items())
        self.printer.line(f"{event.target}  on {where}  {versions}", "bold")
        self.field("fusions", event.backend)

    def inputs(self, event: Inputs) -> None:
        values = "   ".join(f"{name}: {value}" for name, value in event.values.items()) or "none"
        self.field("inputs", f"{values}      from {event.origin}")

    def stage(self, event: Stage) -> None:
        if self.part.stage is not None:
            self.printer.code(event.text, "python")
        elif event.trace in SHOWN_TRACES or self.verbose:
            trace = "" if event.trace == "computation" else f"{event.trace} "
            self.heading(f"{trace}{event.index}  {event.title}", summary(event), "#")
            self.printer.code(event.text, "python")

    def fusion(self, event: Fusion) -> None:
        self.fusions.append(event.path)
        title = f"{event.path} ({', '.join(event.operations)})  {', '.join(event.sources)}"
        for only, text, what, language in (
            ("fusions", event.definition, "definition", "python"),
            ("kernels", event.kernel, "kernel", "cuda"),
            ("repro", event.repro, "repro", "python"),
        ):
            if self.part.only not in (None, only):
                continue
            comment = "//" if language == "cuda" else "#"
            if text is None:
                if only != "repro" and (only == "kernels" or event.definition is None):
                    self.heading(f"{title}  {what}", "", comment)
                    self.printer.line(f"{comment} {event.missing}", "yellow")
                continue
            facts = kernel_facts(event) if language == "cuda" else ""
            self.heading(f"{title}  {what}", facts, comment)
            self.printer.code(text, language)

    def result(self, event: Result) -> None:
        self.printer.line()
        self.field("result", event.text)
        style = {True: "green", False: "bold red", None: "yellow"}[event.equal]
        self.field("", event.comparison, style)

    def recorded(self, event: Recorded) -> None:
        following = [f"thunder repro --fusion {self.fusions[0]}"] if self.fusions else []
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
        rule = "─" * max(WIDTH - len(title) - len(right) - 5, 2)
        self.printer.line(f"── {title} {rule} {right}".rstrip(), "bold cyan")


_RULES = {
    Started: TerminalView.started,
    Inputs: TerminalView.inputs,
    Stage: TerminalView.stage,
    Fusion: TerminalView.fusion,
    Result: TerminalView.result,
    Recorded: TerminalView.recorded,
    Failure: TerminalView.failure,
}


def summary(stage: Stage) -> str:
    """`3 operations, 1 removed`"""
    count = sum(operation["depth"] == 0 for operation in stage.operations)
    done = Counter(event["kind"] for event in stage.events)
    return ", ".join([f"{count} operation{'s' * (count != 1)}", *(f"{n} {kind}" for kind, n in done.items())])


def kernel_facts(fusion: Fusion) -> str:
    return ", ".join(f"{name} {value}" for name, value in fusion.facts.items())


def print_error(message: str) -> None:
    """What went wrong, on standard error."""
    print(f"thunder: {message}", file=sys.stderr, flush=True)
