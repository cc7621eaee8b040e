"""Every translation compiles, has the metadata of its primitives, and computes what torch computes.

The last is checked on nvFuser's kernels themselves, run on the host (see host_kernel.py).
"""

import pytest
from regions import regions

# Rename memory only; add up across blocks; keep a block's row in its threads; several kernels: not for one thread.
WITHOUT_HOST_RUN = {"views", "sum_outer", "softmax", "sum_1", "gather_computed", "gather_sums"}
WITHOUT_HOST_RUN |= {name for name in regions if name.startswith(("argmax", "argmin"))}  # see test_definitions.py
WITHOUT_HOST_RUN |= {"take_computed", "take_of_sums", "index_computed", "select_computed", "slice_one_computed"}
WITHOUT_HOST_RUN |= {"complex_of_computed", "parts_of_input"}


@pytest.mark.parametrize("name", regions)
def test_compiles(name: str, report: dict[str, dict]):
    entry = report[name]
    assert entry["refused"] == []
    assert entry["error"] is None
    assert entry["kernels"] >= 1 or name == "views"


@pytest.mark.parametrize("name", regions)
def test_outputs_have_torchs_shapes_strides_and_types(name: str, report: dict[str, dict]):
    assert report[name]["metadata"] == report[name]["expected"]


@pytest.mark.parametrize("name", sorted(regions.keys() - WITHOUT_HOST_RUN))
def test_kernel_computes_what_torch_computes(name: str, report: dict[str, dict]):
    if not any("differences" in entry for entry in report.values()):
        pytest.skip("there is no C++ compiler to run kernels with")
    assert report[name]["differences"] == []
