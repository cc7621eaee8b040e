"""What the worker is doing, on standard error while it is a terminal; nothing otherwise."""

import sys
from typing import Any


class ProgressLine:
    """One line that is overwritten, and gone when something is printed."""

    def __init__(self) -> None:
        self.status: Any = None
        if sys.stderr.isatty():
            from rich.console import Console

            self.status = Console(stderr=True).status("")

    def show(self, text: str) -> None:
        if self.status is not None:
            from rich.text import Text

            self.status.update(Text(f"{text} ...", no_wrap=True, overflow="ellipsis"))
            self.status.start()

    def clear(self) -> None:
        if self.status is not None:
            self.status.stop()
