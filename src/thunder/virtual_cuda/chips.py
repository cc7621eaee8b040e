"""The chips a virtual CUDA device can be: datasheet figures, and what CUDA reports for each. Imports no torch."""

from dataclasses import dataclass
from difflib import get_close_matches


class UnknownChip(ValueError):
    """The name is not one of `CHIPS`."""


@dataclass(frozen=True)
class Chip:
    """One GPU model. Sizes are in bytes, clocks in kHz, bandwidth in bytes/s, peak rates in operations/s.

    Peak rates are the dense ones (no structured sparsity) at boost clock; `peak_fp64` is without tensor cores.
    """

    key: str
    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    memory: int
    memory_bandwidth: float
    memory_bus_width: int
    memory_clock: int
    clock: int
    l2_cache: int
    shared_memory_per_multiprocessor: int
    shared_memory_per_block_optin: int
    reserved_shared_memory_per_block: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    peak_fp32: float
    peak_bf16: float
    peak_fp64: float
    shared_memory_per_block: int = 48 * 1024
    registers_per_multiprocessor: int = 64 * 1024
    registers_per_block: int = 64 * 1024
    threads_per_block: int = 1024
    warp_size: int = 32

    @property
    def architecture(self) -> str:
        """The name compilers use: `sm_90`."""
        return "sm_{}{}".format(*self.compute_capability)


_KB, _MB, _GB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class _Family:
    """What all chips of one architecture share; shared memory in KB."""

    shared_per_multiprocessor: int
    shared_optin: int
    threads: int
    blocks: int
    reserved_shared: int = 1


_VOLTA = _Family(96, 96, threads=2048, blocks=32, reserved_shared=0)
_TURING = _Family(64, 64, threads=1024, blocks=16, reserved_shared=0)
_GA100 = _Family(164, 163, threads=2048, blocks=32)
_GA102 = _Family(100, 99, threads=1536, blocks=16)
_ADA = _Family(100, 99, threads=1536, blocks=24)
_HOPPER = _BLACKWELL = _Family(228, 227, threads=2048, blocks=32)


def _chip(
    key, family, capability, multiprocessors, memory, bandwidth, bus, memory_clock, clock, l2, rates, name
) -> Chip:
    """One row of the table below, in the units datasheets use: GB, GB/s, MHz, MB, TFLOPS."""
    fp32, bf16, fp64 = (rate * 1e12 for rate in rates)
    return Chip(
        key=key,
        name=name,
        compute_capability=capability,
        multiprocessors=multiprocessors,
        memory=memory * _GB,
        memory_bandwidth=bandwidth * 1e9,
        memory_bus_width=bus,
        memory_clock=memory_clock * 1000,
        clock=clock * 1000,
        l2_cache=l2 * _MB,
        shared_memory_per_multiprocessor=family.shared_per_multiprocessor * _KB,
        shared_memory_per_block_optin=family.shared_optin * _KB,
        reserved_shared_memory_per_block=family.reserved_shared * _KB,
        threads_per_multiprocessor=family.threads,
        blocks_per_multiprocessor=family.blocks,
        peak_fp32=fp32,
        peak_bf16=bf16,
        peak_fp64=fp64,
    )


# The bf16 rate of chips before Ampere is their fp16 rate: they have no bf16 tensor cores.
_TABLE = (
    # key, family, compute capability, SMs, GB, GB/s, bus, memory MHz, MHz, L2 MB, (fp32, bf16, fp64), name
    ("v100", _VOLTA, (7, 0), 80, 32, 900, 4096, 877, 1530, 6, (15.7, 125, 7.8), "Tesla V100-SXM2-32GB"),
    ("t4", _TURING, (7, 5), 40, 16, 320, 256, 5001, 1590, 4, (8.1, 65, 0.25), "Tesla T4"),
    ("a100", _GA100, (8, 0), 108, 80, 2039, 5120, 1593, 1410, 40, (19.5, 312, 9.7), "NVIDIA A100-SXM4-80GB"),
    ("a10", _GA102, (8, 6), 72, 24, 600, 384, 6251, 1695, 6, (31.2, 125, 0.49), "NVIDIA A10"),
    ("l4", _ADA, (8, 9), 58, 24, 300, 192, 6251, 2040, 48, (30.3, 121, 0.47), "NVIDIA L4"),
    ("l40s", _ADA, (8, 9), 142, 48, 864, 384, 9001, 2520, 96, (91.6, 362, 1.43), "NVIDIA L40S"),
    ("rtx4090", _ADA, (8, 9), 128, 24, 1008, 384, 10501, 2520, 72, (82.6, 165, 1.29), "NVIDIA GeForce RTX 4090"),
    ("h100", _HOPPER, (9, 0), 132, 80, 3350, 5120, 2619, 1980, 50, (66.9, 989, 33.5), "NVIDIA H100 80GB HBM3"),
    ("h200", _HOPPER, (9, 0), 132, 141, 4800, 6144, 3201, 1980, 50, (66.9, 989, 33.5), "NVIDIA H200"),
    ("b200", _BLACKWELL, (10, 0), 148, 180, 8000, 8192, 3996, 1965, 126, (75, 2250, 37), "NVIDIA B200"),
    ("gb200", _BLACKWELL, (10, 0), 152, 186, 8000, 8192, 3996, 2062, 126, (80, 2500, 40), "NVIDIA GB200"),
)

CHIPS: dict[str, Chip] = {row[0]: _chip(*row) for row in _TABLE}


def find_chip(key: str) -> Chip:
    """The chip of that name, or an error that lists the names."""
    if key in CHIPS:
        return CHIPS[key]
    close = get_close_matches(key.lower(), CHIPS, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    raise UnknownChip(f"there is no chip named {key!r}.{meant} Known chips: {', '.join(CHIPS)}.")
