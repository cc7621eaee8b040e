"""nvFuser schedules and compiles its real kernels for the chip that is asked for."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec("nvfuser_direct") is None, reason="nvFuser is not installed")

LAYER_NORM = Path(__file__).with_name("layer_norm.py")


@pytest.fixture
def kernel(virtual):
    """The kernel nvFuser makes of a bf16 layer norm for a chip, and how it was launched."""

    def compile_for(chip: str) -> dict:
        done = virtual("--chip", chip, str(LAYER_NORM))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return compile_for


def test_kernels_differ_where_nvfuser_schedules_chips_differently(kernel):
    h100, a100 = kernel("h100"), kernel("a100")
    for found in (h100, a100):
        assert found["launch"]["kernel"] in found["code"] and "__global__" in found["code"]
        assert found["launch"]["grid"] == [4096, 1, 1] and found["launch"]["dynamic_shared_memory"] > 0
    assert h100["code"] != a100["code"]
    assert h100["launch"]["block"] != a100["launch"]["block"]
    # What cuobjdump --dump-resource-usage says of the same two kernels.
    resources = [(found["launch"]["registers"], found["launch"]["static_shared_memory"]) for found in (h100, a100)]
    assert resources == [(32, 128), (44, 128)]
    assert [found["launch"]["local_memory"] for found in (h100, a100)] == [0, 0]
