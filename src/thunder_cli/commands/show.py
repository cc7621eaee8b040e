"""`thunder show`: print a session as `thunder trace` did."""

from thunder_cli import session
from thunder_cli.commands.trace import (
    CHANGES,
    JSON,
    NO_COLOR,
    ONLY_PART,
    SESSION,
    STAGE,
    VERBOSE,
    print_remarks,
    terminal_view,
)
from thunder_cli.events import Recorded
from thunder_cli.render.json_lines import JsonView
from thunder_cli.render.part import Part


def show(
    name: SESSION = None,
    stage: STAGE = None,
    only: ONLY_PART = None,
    json: JSON = False,
    no_color: NO_COLOR = False,
    changes: CHANGES = False,
    verbose: VERBOSE = False,
) -> None:
    """Print a session again, without running anything."""
    part = Part(stage, only)
    path = session.find(name)
    kept = session.read(path)
    part.check(kept.stages)
    view = JsonView(part) if json else terminal_view(no_color, part, verbose, changes)
    for event in kept.events():
        view.show(event)
    view.show(Recorded(str(path)))
    print_remarks(part, kept)
