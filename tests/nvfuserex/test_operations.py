"""What nvFuser can express and what the primitives are, compared: nothing is left out without a reason."""

import pytest
from definitions import definition
from regions import regions

from thunder.core import prims
from thunder.executors.nvfuserex.refusal import reason_of
from thunder.executors.nvfuserex.translate import rules
from thunder.executors.nvfuserex.unused import UNUSED
from thunder.executors.nvfuserex.version import installed, nvfuser


def test_every_operation_of_nvfuser_is_used_or_left_for_a_reason():
    used = {s.operation for region in regions.values() for s in definition(region).statements()}
    assert used.isdisjoint(UNUSED)
    if installed():
        ops = nvfuser().FusionDefinition().ops
        assert used | UNUSED.keys() == {name for name in dir(ops) if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted(name for name, symbol in prims.all_prims.items() if symbol not in rules))
def test_every_primitive_without_a_translation_says_why(name: str):
    reason = reason_of(prims.all_prims[name])
    assert reason and "not made of primitives" not in reason


def test_every_translation_is_tested_by_a_region():
    called = {call.symbol for region in regions.values() for call in region.record()[0]}
    assert rules.keys() <= called
