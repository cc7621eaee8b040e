"""`thunder why`: the lives of values, from a session alone."""

import json

import pytest
from running_thunder import HAS_NVFUSER, thunder

DEAD = "1 Dead Code Elimination  removed               result never used"
MERGED = "same operation on the same inputs (common subexpression)"


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("e", ['e  "cuda:0 f32[2, 2]"  quickstart.py:7:  e = a * a', "e = ltorch.mul(a, a)  prims.mul", DEAD]),
        ("d", ["2 Transform for execution  replaced by c", MERGED]),
        ("f", ["d replaced by c", "fused into nvFusion0", "uses c, which it computes", "nvFusion0 (add, mul)"]),
        ("quickstart.py:8", ['f  "cuda:0 f32[2, 2]"  quickstart.py:8:  f = d * b']),
        ("7", ["quickstart.py:7:  e = a * a"]),
        ("ltorch.add", ["c = ltorch.add(a, b)", "d = ltorch.add(a, b)"]),
        ("nvFusion0", ["fused into nvFusion0"]),
        ("a", ["an input", "a = args[0]", "del inserted"]),
    ],
)
def test_it_tells_the_line_the_operations_and_what_each_pass_did_and_why(traced, subject, said):
    done = thunder("why", subject, cwd=traced[0])
    assert done.returncode == 0, done.stderr
    assert all(part in done.stdout for part in said), done.stdout


def test_json_is_one_object_for_each_value(traced):
    (life,) = map(json.loads, thunder("why", "e", "--json", cwd=traced[0]).stdout.splitlines())
    assert life["name"] == "e" and life["steps"][-1] == {
        "where": "1 Dead Code Elimination",
        "what": "removed",
        "why": "result never used",
    }


@pytest.mark.skipif(not HAS_NVFUSER, reason="nvFuser is not installed")
def test_the_kernel_is_named(traced):
    assert "kernel                     nvfuser_pointwise_f0_c1_r0_g0" in thunder("why", "f", cwd=traced[0]).stdout


def test_what_is_not_there_is_an_error_that_lists_what_is(traced):
    done = thunder("why", "h", cwd=traced[0])
    assert done.returncode == 2
    assert "no value, operation or line h" in done.stderr and "Its values are a, b, c, d, e, f" in done.stderr
