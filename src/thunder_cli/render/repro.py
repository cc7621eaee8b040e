"""The script that runs a fusion alone, with what it was made on and how to run it at its head."""

import shlex

from thunder_cli.events import Fusion, Started


def repro_script(fusion: Fusion, on: Started | None) -> str | None:
    """The script, or None if there is none. The comments at its head are not part of the canonical text."""
    if fusion.repro is None or on is None:
        return fusion.repro
    device = f"{on.device} (virtual)" if on.virtual else on.device
    versions = ", ".join(f"{name} {version}" for name, version in on.versions.items())
    head = [f"{fusion.path} of {on.target}, traced on {device} with {versions}"]
    if on.versions.get("nvFuser") == "not installed":
        head.append("It needs nvFuser, which was not installed there: thunder doctor says how to install it.")
    if on.virtual:
        head.append(f"Without a GPU: {run_command(on, 'repro.py')}")
    return "".join(f"# {line}\n" for line in head) + fusion.repro


def run_command(on: Started | None, file: str) -> str:
    """What runs the script on what the fusion was traced on."""
    if on is not None and on.virtual:
        return f"python -m thunder.virtual_cuda --chip {on.device} {shlex.quote(file)}"
    return f"python {shlex.quote(file)}"
