"""Checks the gradients of all of torch's operator database, prints a table of them and writes docs/gradients.md.

    python tests/gradient_table.py [NAME ...]

With names, only these operations are checked, and nothing is written. Exits with 1 if gradients differ.
"""

import multiprocessing
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from gradient_database import DIFFERENTIABLE, Outcome, check, full_name

PROCESSES = 2
DOCUMENT = Path(__file__).parent.parent / "docs" / "gradients.md"
COLUMNS = ("operation", "samples", "as eager", "of these uncompiled")
INTRODUCTION = """# Gradients

What `make opdb-grad` found: every operation of PyTorch's operator database that PyTorch differentiates, on the samples
of the database for the CPU in float64 (complex128 where an operation takes nothing else), compiled by `thunder.jit`:
are its outputs, its first-order gradients, and which outputs require gradients, those of eager PyTorch? Zeros where
eager's gradient is None count as the same. Samples that PyTorch itself does not differentiate are left out.
"""


def check_entry(index: int) -> tuple[int, Outcome]:
    torch.set_num_threads(1)
    return index, check(DIFFERENTIABLE[index])


def document(rows: list[tuple[str, ...]], summary: str) -> str:
    lines = [" | ".join(row) for row in (COLUMNS, ("---",) * len(COLUMNS), *rows)]
    table = "\n".join(f"| {line} |" for line in lines)
    return f"{INTRODUCTION}\n{summary}\n\n{table}\n"


def main(names: Iterable[str]) -> int:
    chosen = [i for i, op in enumerate(DIFFERENTIABLE) if not names or op.name in names]
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        outcomes = {full_name(DIFFERENTIABLE[i]): o for i, o in pool.map(check_entry, chosen)}
    rows = [(name, str(o.samples), str(o.passed), str(o.plainly)) for name, o in sorted(outcomes.items()) if o.samples]
    for row in (COLUMNS, *rows):
        print(f"{row[0]:48} {row[1]:>8} {row[2]:>9} {row[3]:>20}")
    failures = [f for o in outcomes.values() for f in o.failures]
    print(*failures, sep="\n")
    samples, passed = (sum(getattr(o, name) for o in outcomes.values()) for name in ("samples", "passed"))
    plainly = sum(o.plainly for o in outcomes.values())
    share = f"{passed} as eager ({passed / max(samples, 1):.2%})"
    summary = f"{len(rows)} operations, {samples} samples, {share}, of these {plainly} run plainly, uncompiled."
    print(summary)
    if not names:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(document(rows, summary))
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
