"""What starting costs: `import thunder` once torch is there, and the command line without torch."""

import subprocess
import sys

from benchmarks.measure import Row, best_seconds

IMPORT = """
import time, torch
start = time.perf_counter()
import thunder
thunder.jit
print(time.perf_counter() - start)
"""


def run(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    bare, torch_import, help_page = best_seconds(
        lambda: run("-c", "pass"),
        lambda: run("-c", "import torch"),
        lambda: run("-m", "thunder_cli", "--help"),
        repeats=5,
    )
    ours = min(float(run("-c", IMPORT)) for _ in range(3))
    print(Row("import thunder, torch imported (0.3 s allowed)", ours, "0.3 s", 0.3, 1.0))
    print(Row("thunder --help (0.3 s allowed)", help_page, "0.3 s", 0.3, 1.0))
    print(Row("", help_page, "python -c pass", bare, float("inf")))
    print(Row("", help_page, "import torch", torch_import, 1.0))
