"""Runs every benchmark, each in a process of its own, so that no one's caches serve another."""

import subprocess
import sys

BENCHMARKS = ("cache_hit", "first_call", "training", "tracing", "operators", "start_up")

for name in BENCHMARKS:
    print(f"\n{name.replace('_', ' ')}", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
