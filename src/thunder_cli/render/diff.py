"""Comparisons as text for a terminal, and as Markdown for a pull request."""

import html
import re
from collections.abc import Iterator, Sequence

from thunder_cli.diff.alignment import Difference
from thunder_cli.diff.sessions import Change, Comparison, Section
from thunder_cli.render.printer import Printer

LABEL = 12
COLUMN = 64  # at which the user's line stands beside a difference
LISTED = 12  # differences of a section, guards aside
STAGE_NAME = re.compile(r"\w+/\d+ ")
STYLES = {Change.STRUCTURAL: "bold red", Change.KERNEL: "bold yellow", Change.COSMETIC: "cyan", Change.IDENTICAL: ""}


class DiffView:
    """Prints comparisons.

    Args:
        printer: where to.
        verbose: every difference, with guards, and those that follow from others.
    """

    def __init__(self, printer: Printer, verbose: bool = False):
        self.printer, self.verbose = printer, verbose

    def show(self, answer: Comparison) -> None:
        for remark in answer.remarks:
            self.printer.line(f"{'':{LABEL}}{remark}", "yellow")
        for change in (Change.STRUCTURAL, Change.KERNEL):
            for section in answer.sections:
                if section.change is change:
                    self.section(section)
        for change in (Change.COSMETIC, Change.IDENTICAL):
            for line in self.unchanged([s for s in answer.sections if s.change is change]):
                self.printer.line(f"{change!s:{LABEL}}{line}", STYLES[change])
        self.printer.line(verdict(answer), "bold")

    def section(self, section: Section) -> None:
        label = f"{section.change!s:{LABEL}}"
        if section.follows and not self.verbose:
            self.printer.line(f"{label}{section.name}   follows from the above", STYLES[section.change])
            return
        self.printer.line(label + section.name, STYLES[section.change])
        for sign, text, source in difference_lines(section.differences, None if self.verbose else LISTED):
            line = f"  {sign} {text}"
            self.printer.line(f"{line:{COLUMN}} {source}".rstrip(), {"-": "red", "+": "green"}.get(sign, ""))

    def unchanged(self, sections: Sequence[Section]) -> Iterator[str]:
        """Sections of one class, those with the same remark on one line."""
        remarks: dict[str, list[str]] = {}
        for section in sections:
            guards = len(section.differences)
            remark = section.remark if section.change is Change.COSMETIC else ""
            remark = ", ".join(filter(None, [remark, f"{guards} guards written otherwise" if guards else ""]))
            remarks.setdefault(remark, []).append(section.name)
            if self.verbose:
                yield from (f"  {d.before or d.after}" for d in section.differences)
        for remark, names in remarks.items():
            yield ", ".join(grouped(names)) + (f":  {remark}" if remark else "")


def grouped(names: Sequence[str]) -> Iterator[str]:
    """Names of sections, stages counted by trace and many fusions as one: `computation (4 stages), nvFusion0`."""
    stages: dict[str, list[str]] = {}
    for name in names:
        if STAGE_NAME.match(name):
            stages.setdefault(name.partition("/")[0], []).append(name)
    for trace, found in stages.items():
        yield found[0] if len(found) == 1 else f"{trace} ({len(found)} stages)"
    others = [name for name in names if not STAGE_NAME.match(name)]
    yield from others if len(others) <= LISTED else [f"{len(others)} fusions"]


def difference_lines(differences: Sequence[Difference], limit: int | None) -> Iterator[tuple[str, str, str]]:
    """Lines of a small diff: the sign, the text, the user's line."""
    told = [d for d in differences if d.kind != "guard" or limit is None]
    for difference in told[:limit]:
        lines = [("-", line) for line in (difference.before or "").splitlines()]
        lines += [("+", line) for line in (difference.after or "").splitlines()]
        for i, (sign, text) in enumerate(lines):
            yield sign, text, (difference.source or "") if i == len(lines) - 1 else ""
        if difference.note:
            yield " ", f"  why: {difference.note}", ""
    if limit is not None and len(told) > limit:
        yield " ", f"... and {len(told) - limit} more (-v)", ""


def verdict(answer: Comparison) -> str:
    """`1 structural change: main, mine`"""
    if answer.change <= Change.COSMETIC:
        return f"{answer.change}: {answer.before}, {answer.after}"
    count = sum(s.change is answer.change and not s.follows for s in answer.sections)
    return f"{answer.change} in {count} place{'s' * (count != 1)}: {answer.before}, {answer.after}"


# ---- Markdown ----

LIMIT = 60_000  # characters; a comment may have 65,536
MARKS = {Change.IDENTICAL: "✅", Change.COSMETIC: "✅", Change.KERNEL: "⚠️", Change.STRUCTURAL: "❌"}


def markdown(answers: Sequence[Comparison]) -> str:
    """A summary table first, then the differences, folded."""
    rows = ["| | entry | difference | where |", "|---|---|---|---|"]
    for answer in answers:
        places = [s.name for s in answer.sections if s.change is answer.change and not s.follows]
        shown = ", ".join(places[:4]) + (", ..." if len(places) > 4 else "") if answer.change else ""
        rows.append(f"| {MARKS[answer.change]} | {cell(answer.after)} | {answer.change} | {cell(shown)} |")
    text = "\n".join(["### thunder diff", "", *rows, ""]) + "\n"
    for answer in answers:
        text += details(answer)
    if len(text) <= LIMIT:
        return text
    return (
        text[:LIMIT].rpartition("\n")[0]
        + "\n```\n\n</details>\n\nToo long for a comment: run `thunder diff` for the rest.\n"
    )


def details(answer: Comparison) -> str:
    sections = [s for s in answer.sections if s.change >= Change.KERNEL]
    if not sections and not answer.remarks:
        return ""
    lines = [f"<details><summary>{html.escape(answer.after)}: {answer.change}</summary>", ""]
    lines += [f"{html.escape(remark)}  " for remark in answer.remarks]
    for section in sections:
        if section.follows:
            lines.append(f"**{html.escape(section.name)}** follows from the above.\n")
            continue
        fence = "````" if any("```" in (d.before or "") + (d.after or "") for d in section.differences) else "```"
        lines += [f"**{html.escape(section.name)}** {section.change}", "", f"{fence}diff"]
        lines += [
            f"{sign} {text:{COLUMN}} {source}".rstrip()
            for sign, text, source in difference_lines(section.differences, LISTED)
        ]
        lines += [fence, ""]
    return "\n".join([*lines, "</details>", "", ""])


def cell(text: str) -> str:
    return html.escape(text).replace("|", "\\|").replace("\n", " ")
