"""`thunder sessions`: the sessions there are here."""

import json as json_module
from pathlib import Path
from typing import Any

from thunder_cli import session
from thunder_cli.commands.trace import JSON, NO_COLOR
from thunder_cli.errors import CommandError
from thunder_cli.render.printer import Printer
from thunder_cli.render.table import print_table

COLUMNS = ("session", "when", "target", "stages", "fusions", "outcome")


def sessions(json: JSON = False, no_color: NO_COLOR = False) -> None:
    """List the sessions in .thunder/sessions, oldest first."""
    rows = [describe(path) for path in session.paths()]
    if json:
        for row in rows:
            print(json_module.dumps(row, ensure_ascii=False))
    elif rows:
        print_table(Printer(no_color), COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
    else:
        print("There is no session here yet. thunder trace script.py:function makes one.")


def describe(path: Path) -> dict[str, Any]:
    """One row; a session that cannot be read says so in it."""
    try:
        kept = session.read(path)
    except CommandError as error:
        outcome = str(error).partition("\n")[0]
        return dict.fromkeys(COLUMNS, "") | {"session": path.name, "outcome": outcome}
    outcome = kept.result.comparison if kept.result else ""
    if kept.failures:
        outcome = "failed: " + kept.failures[0].message.partition("\n")[0]
    return {
        "session": path.name,
        "when": kept.created[:19].replace("T", " "),
        "target": kept.started.device if kept.started else "",
        "stages": str(sum(stage.trace == "computation" for stage in kept.stages)),
        "fusions": str(len(kept.fusions)),
        "outcome": outcome,
    }
