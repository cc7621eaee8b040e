"""The chips are public figures, named as the command line names them."""

import subprocess
import sys

import pytest

from thunder.virtual_cuda import CHIPS, UnknownChip, find_chip


def test_the_table_has_the_chips_people_ask_for():
    assert {"a100", "l4", "h100", "h200", "b200"} <= set(CHIPS)
    assert all(chip.key == key for key, chip in CHIPS.items())


def test_figures_agree_with_nvidias_datasheets():
    h100, a100, l4 = CHIPS["h100"], CHIPS["a100"], CHIPS["l4"]
    assert (h100.name, h100.compute_capability, h100.architecture) == ("NVIDIA H100 80GB HBM3", (9, 0), "sm_90")
    assert (h100.multiprocessors, a100.multiprocessors, l4.multiprocessors) == (132, 108, 58)
    assert (h100.memory, h100.memory_bandwidth) == (80 << 30, 3.35e12)
    assert h100.shared_memory_per_block_optin == 227 << 10 and a100.l2_cache == 40 << 20


@pytest.mark.parametrize("key", CHIPS)
def test_figures_are_consistent(key):
    chip = CHIPS[key]
    # Two transfers per clock on double data rate memory; GDDR clocks are reported at half of that rate's clock.
    assert chip.memory_bandwidth == pytest.approx(2 * chip.memory_clock * 1e3 * chip.memory_bus_width / 8, rel=0.05)
    cores = 64 if chip.compute_capability in ((7, 0), (7, 5), (8, 0)) else 128
    assert chip.peak_fp32 == pytest.approx(2 * cores * chip.multiprocessors * chip.clock * 1e3, rel=0.1)
    assert chip.shared_memory_per_block_optin <= chip.shared_memory_per_multiprocessor


def test_an_unknown_chip_is_answered_with_the_known_ones():
    with pytest.raises(UnknownChip, match=r"no chip named 'h10'. Did you mean h100\? Known chips: .*a100.*b200"):
        find_chip("h10")


def test_chips_and_launcher_import_no_torch():
    modules = "thunder.virtual_cuda.launcher, thunder.virtual_cuda.launch_records"
    program = f"import sys, {modules}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
