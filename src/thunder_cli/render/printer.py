"""Lines and source code on standard output, in colour where that is wanted.

Colour only adds escape codes: the text is the same, and is never wrapped or cut.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TextIO

WIDTH = 96
THEME = "ansi_dark"  # the terminal's own colours, so that it is legible on any background


def wants_color(file: TextIO, no_color: bool) -> bool:
    """Whether to write escape codes: on terminals, by the conventions of NO_COLOR and FORCE_COLOR."""
    if no_color or os.environ.get("NO_COLOR"):
        return False
    return file.isatty() or bool(os.environ.get("FORCE_COLOR"))


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """If nobody reads standard output any more (`| head`), what is still to be printed goes nowhere."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Printer:
    """Writes text with styles (rich's names) to standard output."""

    def __init__(self, no_color: bool):
        self.file = sys.stdout
        self.color = wants_color(self.file, no_color)

    @cached_property
    def width(self) -> int:
        """How long a rule is: what a narrow terminal would wrap is shorter."""
        return min(WIDTH, shutil.get_terminal_size().columns) if self.file.isatty() else WIDTH

    @cached_property
    def console(self) -> Any:
        from rich.console import Console

        return Console(file=self.file, force_terminal=True)

    def line(self, text: str = "", style: str = "") -> None:
        if self.color and style:
            from rich.text import Text

            self._write(Text(text, style=style))
        else:
            self.file.write(text)
        self.file.write("\n")
        self.file.flush()

    def code(self, text: str, language: str) -> None:
        """A program, `python` or `cuda`."""
        if self.color:
            from rich.syntax import Syntax

            self._write(Syntax(text, language, theme=THEME, tab_size=0).highlight(text))
        else:
            self.file.write(text)
        if not text.endswith("\n"):
            self.file.write("\n")
        self.file.flush()

    def _write(self, text: Any) -> None:
        """Write a rich text as it stands: rich's own printing would wrap lines and expand tabs."""
        from rich.color import ColorSystem

        systems = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}
        system = systems.get(self.console.color_system, ColorSystem.STANDARD)
        for segment in text.render(self.console):
            style = segment.style
            self.file.write(style.render(segment.text, color_system=system) if style else segment.text)
