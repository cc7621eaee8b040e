"""The executor as a user of traces meets it: the walk through one fusion of the documentation, in both environments."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ENVIRONMENT, HERE, on_virtual_device

from thunder.executors.nvfuserex.version import installed

DEFINITION = """\
def nvfuser_fusion(fd : FusionDefinition) -> None :
    tv0 = fd.define_tensor(shape=[-1, -1], contiguity=[True, True], dtype=DataType.Float, is_cpu=False)
    tv1 = fd.define_tensor(shape=[-1, -1], contiguity=[True, True], dtype=DataType.Float, is_cpu=False)
    tv2 = fd.ops.add(tv0, tv1)
    tv3 = fd.ops.mul(tv2, tv1)
    fd.add_output(tv2)
    fd.add_output(tv3)
"""
REPRO = f"""\
import torch
from nvfuser_direct import FusionDefinition, DataType

{DEFINITION}
with FusionDefinition() as fd:
    nvfuser_fusion(fd)

inputs = [
    torch.randn((4,), dtype=torch.float32, device='cuda:0').as_strided((2, 2), (2, 1)),
    torch.randn((4,), dtype=torch.float32, device='cuda:0').as_strided((2, 2), (2, 1)),
]
fd.execute(inputs)
"""


@pytest.fixture(scope="module")
def seen() -> dict:
    return json.loads(on_virtual_device(HERE / "use_fusion.py"))


def test_names(seen: dict):
    assert seen["repr"] == "FusionDefinitionWrapper(nvFusion0: (add, mul))"
    assert seen["context"] == "{'nvFusion0': FusionDefinitionWrapper(nvFusion0: (add, mul))}"
    assert seen["fusions"] == [["nvFusion0", True]]
    assert seen["fusion symbols"]


def test_backend(seen: dict):
    assert seen["backend"] == ("virtual" if installed() else "recorded")
    assert not seen["nvfuser imported"], "making the executor imports nvFuser"


def test_values(seen: dict):
    assert seen["values"] == [[[4.0, 4.0], [4.0, 4.0]], [[12.0, 12.0], [12.0, 12.0]]]


def test_definition(seen: dict):
    assert seen["definition"].rstrip() == DEFINITION.rstrip()


def test_one_definition_for_each_kind_of_input(seen: dict):
    assert seen["same kind, same fusion"]
    lines = seen["definition of other layouts"].splitlines()
    assert "contiguity=[True, True], dtype=DataType.Float, is_cpu=False, stride_order=[0, 1])" in lines[1]
    assert "contiguity=[False, None], dtype=DataType.Float, is_cpu=False)" in lines[2]


def test_fusions_that_are_the_same_share_what_was_compiled(seen: dict):
    assert seen["fusions of one definition"]
    assert not seen["of other shapes"]
    assert seen["launches with another of the same"] == seen["launches"]


def test_kernel(seen: dict):
    if not installed():
        assert "nvFuser is not installed" in seen["kernel"]
        return
    assert seen["kernel"].startswith("__global__ void nvfuser_pointwise_f0_c1_r0_g0(Tensor<float, 2, 2> T0, ")
    assert seen["kernels"] == [["nvfuser_pointwise_f0_c1_r0_g0", [1, 1, 1], [128, 1, 1]]]
    assert seen["launches"] == 1, "a definition is compiled and launched once for each set of shapes"


def test_bytes_moved(seen: dict):
    assert seen["bytes"] == 4 * 4 * 4


def test_inputs_are_kept_only_when_asked(seen: dict):
    assert seen["kept"] is None
    assert seen["kept when asked"]


def test_repro(seen: dict):
    header, _, program = seen["repro"].partition("import torch\n")
    assert "import torch\n" + program == REPRO
    assert header.startswith("# CUDA devices:\n#  0: NVIDIA H100 80GB HBM3")
    for line in ("# torch version: ", "# cuda version: ", "# nvfuser version: "):
        assert line in header


def test_repro_says_what_it_needs(seen: dict):
    assert seen["repro before a run"].startswith("RuntimeError: nvFusion0 has not run yet")
    assert seen["repro of another"] == "ValueError: the trace has no fusion called 'nvFusion1'; it has nvFusion0"


@pytest.mark.skipif(not installed(), reason="nvFuser is not installed")
def test_torch_runs_what_nvfuser_cannot_compile(seen: dict):
    assert seen["error"] == "cannot compile this"
    assert seen["values in spite of it"] == seen["values"]


@pytest.mark.skipif(not installed(), reason="nvFuser is not installed")
def test_repro_runs(seen: dict, tmp_path: Path):
    script = tmp_path / "repro.py"
    script.write_text(seen["repro"] + "print(fd, end='')\n")
    assert on_virtual_device(script).rstrip() == DEFINITION.rstrip()


def test_importing_the_executor_is_light():
    loaded = "'nvfuser_direct' in sys.modules, torch.cuda.is_initialized()"
    code = f"import sys, torch, thunder.executors.nvfuserex; print({loaded})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert result.stdout == "False False\n"
