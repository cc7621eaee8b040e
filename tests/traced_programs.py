"""Sessions of small programs, traced in this process as the worker does it."""

import linecache
from itertools import count
from typing import Any

import torch

from thunder_cli.entry import Call
from thunder_cli.job import Job
from thunder_cli.session import Session
from thunder_cli.tracing import Failed, Tracing

_number = count()


def session_of(source: str, inputs: tuple = (), entry: str = "f") -> Session:
    """What `thunder trace` keeps of `entry` of the program `source`, called with `inputs` or its `inputs()`."""
    torch.manual_seed(0)
    filename = f"/{next(_number)}/program.py"  # lines of a file are read once in a process
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile("import torch\nimport torch.nn.functional as F\n", "<imports>", "exec"), namespace)
    exec(compile(source, filename, "exec"), namespace)
    kept = Session()
    tracing = Tracing(Job(None, "program", entry, "cuda", True), kept.add)
    try:
        tracing(Call(namespace[entry], inputs or namespace["inputs"](), {}, "the test"))
    except Failed:
        raise AssertionError(kept.failures[0].message) from None
    tracing.report(final=True)
    return kept
