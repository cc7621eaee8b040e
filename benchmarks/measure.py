"""How times are taken and compared."""

import time
from collections.abc import Callable
from dataclasses import dataclass


def best_seconds(*runs: Callable[[], object], repeats: int = 7, number: int = 1) -> list[float]:
    """Seconds of one call of each of `runs`: the best of `repeats` means over `number` calls.

    They take turns, so that what else the machine does meets all of them.
    """
    best = [float("inf")] * len(runs)
    for _ in range(repeats):
        for i, run in enumerate(runs):
            start = time.perf_counter()
            for _ in range(number):
                run()
            best[i] = min(best[i], (time.perf_counter() - start) / number)
    return best


@dataclass(frozen=True)
class Row:
    """One line of the report: a time of ours, the time it is compared with, and the ratio allowed."""

    what: str
    ours: float
    against: str
    theirs: float
    budget: float

    def __str__(self) -> str:
        ratio = self.ours / self.theirs
        verdict = "ok" if ratio <= self.budget else "OVER"
        return (
            f"{self.what:<46} {_time(self.ours):>9}   {self.against:<34} {_time(self.theirs):>9}   "
            f"{ratio:5.2f}  (budget {self.budget:.2f})  {verdict}"
        )


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
