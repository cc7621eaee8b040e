"""Definitions are nvFuser's to the letter, and the same program with and without it."""

import definitions
import pytest
from regions import regions

from thunder.executors.nvfuserex.backends import nvfuser_definition
from thunder.executors.nvfuserex.layout import Layout
from thunder.executors.nvfuserex.version import installed, nvfuser

needs_nvfuser = pytest.mark.skipif(not installed(), reason="nvFuser is not installed")


@pytest.fixture(scope="module")
def golden() -> dict[str, str]:
    return definitions.read()


@pytest.mark.parametrize("name", regions)
def test_text_is_nvfusers(name: str, golden: dict[str, str]):
    assert str(definitions.definition(regions[name])) == golden[name]


@needs_nvfuser
@pytest.mark.parametrize("name", regions)
def test_golden_text_is_still_nvfusers(name: str, golden: dict[str, str]):
    assert repr(nvfuser_definition(definitions.definition(regions[name]))) == golden[name]


@needs_nvfuser
@pytest.mark.parametrize("name", regions)
def test_exact_text_defines_the_same_fusion(name: str, golden: dict[str, str]):
    module = nvfuser()
    names = {"FusionDefinition": module.FusionDefinition, "DataType": module.DataType}
    exec(definitions.definition(regions[name]).exact(), names)
    with module.FusionDefinition() as fd:
        names["nvfuser_fusion"](fd)
    assert repr(fd) == golden[name]


@needs_nvfuser
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2, 3), (3, 1)), ((2, 3), (1, 2)), ((2, 3), (6, 2)), ((2, 3, 4, 5), (60, 1, 15, 3)), ((4, 2), (1, 8)), ((), ())],
)
def test_layout_is_nvfusers(shape: tuple[int, ...], strides: tuple[int, ...]):
    layout = Layout.of(shape, strides)
    contiguity, order = nvfuser().compute_tensor_descriptor(list(shape), list(strides))
    assert list(layout.contiguity) == contiguity
    assert list(layout.stride_order or range(len(shape) - 1, -1, -1)) == order


def test_sizes_of_1_do_not_change_the_layout():
    assert Layout.of((4, 1), (1, 4)) == Layout.of((4, 1), (1, 1))
