"""Definitions are nvFuser's to the letter, and the same program with and without it."""

import definitions
import pytest
import torch
from regions import regions

from thunder.executors.nvfuserex.backends import nvfuser_definition
from thunder.executors.nvfuserex.definition import Definition
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


def _broadcast(x: torch.Tensor, is_broadcast_dim: list[bool]) -> torch.Tensor:
    for d in (d for d, new in enumerate(is_broadcast_dim) if new):
        x = x.unsqueeze(d)
    return x


# What nvFuser's documentation says of the operations that `argmax` is made of.
_MEANINGS = {
    "broadcast": _broadcast,
    "cast": lambda x, dtype: x.to(dtype.value),
    "eq": torch.eq,
    "expand": lambda x, shape: x.expand(shape),
    "iota": lambda length, start, step: torch.arange(start, start + length * step, step),
    "isnan": torch.isnan,
    "logical_or": torch.logical_or,
    "max": lambda x, dims: x.amax(dims),
    "min": lambda x, dims: x.amin(dims),
    "reshape": lambda x, new_shape: x.reshape(new_shape),
    "where": torch.where,
}


def run_by_torch(definition: Definition, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The outputs, by torch's operations of the same meaning."""
    values = {value: x for (value, _), x in zip(definition.inputs, inputs)}
    for s in definition.statements():
        values[s.outputs[0]] = _MEANINGS[s.operation](*[values.get(x, x) for x in s.args], **s.kwargs)
    return [values[x] for x in definition.outputs]


@pytest.mark.parametrize(
    "name", [name for name in regions if name.startswith(("argmax_", "argmin_")) and "computed" not in name]
)
def test_extrema_are_found_where_torch_finds_them(name: str):
    """Equal ones, infinities and NaN among them."""
    a = torch.randint(-2, 3, (4, 8, 16), generator=torch.Generator().manual_seed(0)).to(regions[name].inputs[0][1])
    if a.is_floating_point():
        a[0, 0, 3], a[1, 2, 5], a[2, 3, 4:7] = float("nan"), float("inf"), -float("inf")
    dims = (2,) if name.startswith("argmax") else (1, None)
    expected = [(torch.argmax if name.startswith("argmax") else torch.argmin)(a, d) for d in dims]
    for found, eager in zip(run_by_torch(definitions.definition(regions[name]), [a]), expected, strict=True):
        torch.testing.assert_close(found, eager)
