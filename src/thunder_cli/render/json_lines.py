"""Events as JSON, one object on each line."""

import sys

from thunder_cli.events import Event, Output, encode
from thunder_cli.render.part import Part


class JsonView:
    """Prints the events that belong to the part, and what the program printed."""

    def __init__(self, part: Part):
        self.part = part

    def show(self, event: Event) -> None:
        if self.part.selects(event) or isinstance(event, Output):
            sys.stdout.write(encode(event) + "\n")
            sys.stdout.flush()
