"""`thunder doctor`: what is installed, what is missing, and the command that mends it."""

import importlib.util
import json as json_module
import os
import shutil
import subprocess
import sys
from typing import Any

import typer

from thunder_cli.commands.trace import JSON, NO_COLOR
from thunder_cli.device import DEFAULT_CHIP, has_gpu, worker_environment
from thunder_cli.errors import CommandError, Exit
from thunder_cli.render.printer import Printer
from thunder_cli.render.table import print_table

LIMIT = 120  # seconds that importing torch and nvFuser may take
REINSTALL = "pip install --force-reinstall torch"


def doctor(json: JSON = False, no_color: NO_COLOR = False) -> None:
    """Say what is installed, what is missing, and how to mend it. Exits with 1 if thunder trace would not work."""
    findings = examine()
    if json:
        for finding in findings:
            print(json_module.dumps(finding))
    else:
        printer = Printer(no_color)
        rows = [[f["what"], {True: "yes", False: "NO", None: "no"}[f["good"]], f["found"]] for f in findings]
        print_table(printer, ("", "", "found"), rows)
        for finding in findings:
            if finding["mend"]:
                printer.line(f"\n{finding['what']}: {finding['mend']}")
    raise typer.Exit(Exit.NO if any(finding["good"] is False for finding in findings) else Exit.FINE)


def finding(what: str, good: bool | None, found: str, mend: str = "") -> dict[str, Any]:
    """One line of the answer; `good` is None for what is missing but not needed."""
    return {"what": what, "good": good, "found": found, "mend": "" if good else mend}


def examine() -> list[dict[str, Any]]:
    gpu = has_gpu()
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    findings = [
        finding("Python", sys.version_info >= (3, 11), sys.version.split()[0], "thunder needs Python 3.11 or later."),
        finding("CUDA GPU", gpu or None, "here" if gpu else f"none: programs run on a virtual {DEFAULT_CHIP}"),
        finding(
            "C compiler",
            True if compiler else None,
            compiler or "none",
            "the virtual device needs one: apt-get install gcc",
        ),
    ]
    return findings + examine_torch(gpu)


def examine_torch(gpu: bool) -> list[dict[str, Any]]:
    """What torch and nvFuser say, asked in a process of their own that may crash or hang."""
    if importlib.util.find_spec("torch") is None:
        return [finding("torch", False, "not installed", "pip install torch")]
    try:
        environment = dict(os.environ) if gpu else worker_environment(DEFAULT_CHIP, True)
    except CommandError as error:
        return [finding("virtual device", False, str(error).partition("\n")[0], str(error))]
    command = [sys.executable, "-P", "-m", "thunder_cli.diagnosis", *([] if gpu else ["virtual"])]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return [
            finding(
                "torch", False, f"importing it took more than {LIMIT} seconds", "pip install --force-reinstall torch"
            )
        ]
    if done.returncode:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        return [finding("torch", False, f"fails: {last}", "pip install --force-reinstall torch")]
    return json_module.loads(done.stdout.splitlines()[-1])
