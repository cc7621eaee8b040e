"""Checks all of torch's operator database against eager, prints a table of it and writes docs/operators.md.

    python tests/operator_table.py [SAMPLES] [NAME ...]

With a number, that many samples of each dtype are drawn, with a seed; the document says so. With names, only these
operations are checked, and nothing is written. Exits with 1 if a sample is not as eager.
"""

import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from operator_database import DATABASE, NOT_TRACED, Outcome, check, full_name

from thunder.core.dtypes import short_name

PROCESSES = 2
DOCUMENT = Path(__file__).parent.parent / "docs" / "operators.md"
COLUMNS = ("operation", "dtypes", "samples", "passed", "failed", "how it is traced")
FORMS = ("function", "method", "in place")
WAYS = ("rule", "decomposition", "opaque", "plainly", "refused")
INTRODUCTION = """# Operators

What `make opdb` found: every operation of PyTorch's operator database, on the database's samples for the CPU,
compiled by `thunder.jit` and compared with eager PyTorch: values, dtypes, shapes, strides, aliasing, what is written in
place, errors. An operation is traced by a *rule* of ours that leads down to primitives, by a *decomposition* into
several such operations, or as an *opaque* call of PyTorch's own function. Some calls are run *plainly*, outside of
any trace, with a warning that says why; *refused* are arguments that PyTorch refuses too.
"""


def check_entry(index: int, limit: int | None) -> tuple[int, dict[str, Outcome]]:
    """The outcomes of all dtypes of an entry, by the dtype's name."""
    torch.set_num_threads(1)
    op = DATABASE[index]
    return index, {short_name(dtype): check(op, dtype, limit) for dtype in sorted(op.dtypes, key=str)}


def ways(how: Counter) -> str:
    """`rule, opaque (in place: plainly)`: the ways that calls were traced, for the other forms where they differ."""
    by_form = {form: [w for w in WAYS if how[form, w]] for form in FORMS}
    text = ", ".join(by_form["function"])
    for form in FORMS[1:]:
        if unlike := [w for w in by_form[form] if w not in by_form["function"]]:
            text += f" ({form}: {', '.join(unlike)})"
    return text


def row(index: int, outcomes: dict[str, Outcome]) -> tuple[str, ...]:
    how: Counter = sum((Counter(o.how) for o in outcomes.values()), Counter())
    samples, passed = (sum(getattr(o, name) for o in outcomes.values()) for name in ("samples", "passed"))
    name = full_name(DATABASE[index])
    return name, " ".join(outcomes), str(samples), str(passed), str(samples - passed), ways(how)


def aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(r[i]) for r in rows) for i in range(len(COLUMNS))]
    for r in rows:
        yield "  ".join(x.ljust(w) for x, w in zip(r, widths)).rstrip()


# Operations left to torch's own kernels on purpose, and why.
LEFT_TO_TORCH = {
    "RNN, GRU and LSTM layers": "step by step they are slower than torch's kernels: 2 to 7 times forward and 2 to 16 "
    "times in training, for an LSTM of 64 units over 8 to 128 steps on a CPU",
    "nn.functional.ctc_loss": "a recurrence over all alignments, with a kernel for each device",
    "nn.functional.fractional_max_pool*": "where its windows are is drawn, and decided by values",
    "multinomial, cauchy, geometric, log_normal": "random numbers are torch's, so that a seed gives eager's",
    "_upsample_*_aa": "the number of neighbours that count depends on the scale; torch has a kernel",
    "as_strided_scatter": "torch 2.10 gives other gradients than its formula has, and so do we",
    "linalg.*, fft.*": "factorizations and transforms of libraries, which nothing fuses with",
    "masks in indices of what is read": "the shape depends on values: the trace holds for the shape that it met",
    "lazy conj": "what torch has put off is known to its tensors, not to a trace",
}


def document(rows: list[tuple[str, ...]], summary: str) -> str:
    lines = [INTRODUCTION, summary, "", *_table([COLUMNS, *rows]), "", "## Not traced", ""]
    lines += ["These are run plainly, or refused by name.", ""]
    lines += _table([("operation", "why"), *sorted(NOT_TRACED.items())])
    lines += ["", "## Left to torch", "", "These are one opaque call, run and differentiated by torch.", ""]
    return "\n".join([*lines, *_table([("operation", "why"), *LEFT_TO_TORCH.items()]), ""])


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(r)} |" for r in rows]
    return [lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]]


def main(arguments: list[str]) -> int:
    limit = int(arguments[0]) if arguments and arguments[0].isdigit() else None
    names = arguments[limit is not None :]
    chosen = [i for i, op in enumerate(DATABASE) if not names or op.name in names or full_name(op) in names]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, context) as pool:
        found = dict(pool.map(check_entry, chosen, [limit] * len(chosen)))
    rows = sorted(row(i, found[i]) for i in chosen)
    for line in aligned([COLUMNS, *rows]):
        print(line)
    outcomes = [o for by_dtype in found.values() for o in by_dtype.values()]
    for failure in (f for o in outcomes for f in o.failures):
        print(failure)
    samples, passed = sum(o.samples for o in outcomes), sum(o.passed for o in outcomes)
    share = f"{passed} as eager ({passed / samples:.2%}), {samples - passed} not"
    drawn = f" (at most {limit} drawn for each dtype)" if limit else ""
    summary = f"{len(rows)} operations, {samples} samples{drawn}, {share}."
    print(summary)
    if not names:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(document(rows, summary))
    return int(passed != samples)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
