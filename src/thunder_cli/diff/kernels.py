"""Fusions compared: definitions, kernels and how they are launched."""

import re
from collections.abc import Iterator

from thunder_cli.diff.alignment import Difference
from thunder_cli.events import Fusion
from thunder_cli.session import Session

COUNTERS = re.compile(r"_f\d+_c\d+_r\d+_g\d+")  # of fusions, compilations, runs and groups in one process
NUMBERED = re.compile(r"\b([A-Za-z_]+)\d+\b")
IDENTICAL, COSMETIC, KERNEL, STRUCTURAL = range(4)

Found = tuple[str, int, list[Difference]]


def compare_fusions(before: Session, after: Session, trace: str, same: dict[str, str]) -> tuple[list[Found], list[str]]:
    """Compare fusions of a trace that hold the same operations, named by `same`.

    Gives for each its name, how much is different (as `sessions.Change`), and what; and what could not be compared.
    """
    sides = [{f.name: f for f in session.fusions if f.trace == trace} for session in (before, after)]
    found, without = [], []
    for old_name, new_name in same.items():
        old, new = sides[0].get(old_name), sides[1].get(new_name)
        if old is None or new is None:
            continue
        differences = list(compare(old, new))
        change = max((level for level, _ in differences), default=IDENTICAL)
        if change is IDENTICAL and (old.name, old.definition) != (new.name, new.definition):
            change = COSMETIC
        found.append((old.path, change, [difference for _, difference in differences]))
        if (old.kernel is None) != (new.kernel is None):
            without.append(old.path)
    remarks = [f"kernels are not compared: one side has none ({', '.join(without[:3])})"] if without else []
    return found, remarks


def compare(old: Fusion, new: Fusion) -> Iterator[tuple[int, Difference]]:
    """How two fusions of the same operations are different."""
    source = ", ".join(new.sources[:3]) or None
    if old.definition is not None and new.definition is not None and reduced(old.definition) != reduced(new.definition):
        texts = changed_lines(old.definition, new.definition)
        yield STRUCTURAL, Difference("definition", *texts, source)
        return
    launches = launch_text(old), launch_text(new)
    if old.kernel and new.kernel and COUNTERS.sub("", launches[0]) != COUNTERS.sub("", launches[1]):
        yield KERNEL, Difference("launch", *launches, source)
    if old.kernel is None or new.kernel is None:
        return
    kernels = [COUNTERS.sub("", fusion.kernel) for fusion in (old, new)]
    if old.definition != new.definition:  # the same operations in another order: so may be the kernel's lines
        kernels = ["\n".join(map(str, reduced(kernel))) for kernel in kernels]
    if kernels[0] != kernels[1]:
        yield KERNEL, Difference("kernel", *changed_lines(*kernels), source)


def reduced(text: str) -> list[str]:
    """The lines of a program without the numbers in its names, whatever their order."""
    return sorted(NUMBERED.sub(r"\1", line).strip() for line in text.splitlines())


def changed_lines(old: str, new: str, limit: int = 4) -> tuple[str, str]:
    """The first lines that only one of two texts has."""
    lines = [text.splitlines() for text in (old, new)]
    sets = [set(side) for side in lines]
    only = [[line.strip() for line in lines[i] if line not in sets[1 - i] and line.strip()] for i in (0, 1)]
    more = [len(side) - limit for side in only]
    shown = ["\n".join([*side[:limit], *([f"... {n} more lines"] if n > 0 else [])]) for side, n in zip(only, more)]
    return shown[0] or "the same lines", shown[1] or "the same lines in another order"


def launch_text(fusion: Fusion) -> str:
    """`nvfuser_pointwise_f0_c1_r0_g0 grid 1x1x1 block 128x1x1, 12 registers, 0 bytes shared; 80 bytes moved`"""
    kernels = [
        f"{k['name']} grid {'x'.join(map(str, k['grid']))} block {'x'.join(map(str, k['block']))}, "
        f"{k['registers']} registers, {k['shared_memory']} bytes shared"
        for k in fusion.facts.get("kernels", [])
    ]
    return "; ".join([*kernels, f"{fusion.facts.get('bytes_moved')} bytes moved"])
