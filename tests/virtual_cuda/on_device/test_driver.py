"""The driver that stands in for CUDA's: what it does not answer it refuses by name, and launches are recorded."""

import ctypes
import os

import pytest
import torch

from thunder import virtual_cuda
from thunder.virtual_cuda.launch_records import _kernel_name

pytestmark = pytest.mark.skipif(virtual_cuda.kind() != "driver", reason="this torch was built without CUDA")

NOT_SUPPORTED = 801


@pytest.fixture
def driver():
    return ctypes.CDLL(os.environ["THUNDER_VIRTUAL_CUDA_LIBRARY"])


@pytest.mark.parametrize("call", ["cudaGraphLaunch", "cuGraphCreate", "cuMemAlloc_v2", "cudaMallocManaged"])
def test_unknown_calls_fail_with_their_name(driver, call, capfd):
    assert getattr(driver, call)(None) == NOT_SUPPORTED
    driver.cudaGetLastError()
    assert capfd.readouterr().err == f"virtual CUDA device: {call} is not supported\n"


def test_torchs_own_kernels_never_run_silently(driver, capfd):
    assert driver.cudaLaunchKernel(None) == NOT_SUPPORTED
    assert driver.cudaGetLastError() == NOT_SUPPORTED and driver.cudaGetLastError() == 0
    assert "launching the compiled kernel" in capfd.readouterr().err


def test_memory_is_the_chips_and_runs_out():
    with pytest.raises(torch.OutOfMemoryError, match=r"total capacity of 80\.00 GiB"):
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    free, total = torch.cuda.mem_get_info()
    block = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    assert total == virtual_cuda.chip().memory and free - torch.cuda.mem_get_info()[0] == block.nbytes


def test_pointers_know_their_device(driver):
    class Attributes(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int), ("device", ctypes.c_int), ("pointers", ctypes.c_void_p * 2)]

    kinds = {}
    tensors = {"cuda:1": torch.ones(2, device="cuda:1"), "pinned": torch.ones(2).pin_memory(), "host": torch.ones(2)}
    for name, tensor in tensors.items():
        found = (ctypes.c_char * 256)()
        driver.cudaPointerGetAttributes(found, ctypes.c_void_p(tensor.data_ptr()))
        attributes = Attributes.from_buffer(found)
        kinds[name] = attributes.type, attributes.device
    assert kinds == {"cuda:1": (2, 1), "pinned": (1, 0), "host": (0, 0)}
    assert tensors["pinned"].is_pinned() and not tensors["host"].is_pinned()


def test_kernel_names_are_read_from_symbols():
    symbol = "_ZN3nvf36nvfuser_inner_persistent_f0_c1_r0_g0ENS_6TensorIfLi2ELi2EEES1_"
    assert _kernel_name(symbol) == "nvfuser_inner_persistent_f0_c1_r0_g0"
    assert _kernel_name("_Z6kernelPf") == _kernel_name("kernel") == "kernel"
