"""The kernels that were launched on the virtual device, as its driver recorded them. Imports no torch."""

import ctypes
import os
import re
from typing import NamedTuple

from thunder.virtual_cuda.launcher import LIBRARY_VARIABLE

_KEPT = 1024


class Launch(NamedTuple):
    """One launch of `kernel`, whose linker symbol is `symbol`. Sizes are in bytes.

    What the compiled kernel does not tell (it is PTX, not machine code) is None.
    """

    kernel: str
    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_memory: int
    registers: int | None
    static_shared_memory: int | None
    local_memory: int | None
    device: int


class _Record(ctypes.Structure):
    """`struct launch` of driver.c."""

    _fields_ = [
        ("kernel", ctypes.c_char * 256),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("dynamic_shared", ctypes.c_uint),
        ("registers", ctypes.c_int),
        ("static_shared", ctypes.c_int),
        ("local", ctypes.c_int),
        ("device", ctypes.c_int),
    ]


def read() -> list[Launch]:
    """The last launches, oldest first."""
    records = (_Record * _KEPT)()
    count = ctypes.CDLL(os.environ[LIBRARY_VARIABLE]).thunder_virtual_cuda_launches(records, _KEPT)
    return [_launch(record) for record in records[:count]]


def _launch(record: _Record) -> Launch:
    registers, shared, local = (
        None if value < 0 else value for value in (record.registers, record.static_shared, record.local)
    )
    symbol = record.kernel.decode()
    grid, block = tuple(record.grid), tuple(record.block)
    name = _kernel_name(symbol)
    return Launch(name, symbol, grid, block, record.dynamic_shared, registers, shared, local, record.device)


def _kernel_name(symbol: str) -> str:
    """The function's own name in a C++ symbol such as _ZN3nvf6kernelE..., without namespaces and arguments."""
    rest, name = re.sub(r"^_ZN?", "", symbol), ""
    while rest != symbol and (length := re.match(r"\d+", rest)):
        name, rest = rest[length.end() :][: int(length[0])], rest[length.end() + int(length[0]) :]
    return name or symbol
