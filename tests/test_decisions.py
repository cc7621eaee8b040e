"""Decisions by values: a trace is specialized on what it saw, checks it, and another value gets another trace."""

import warnings

import pytest
import torch

import thunder

X = torch.linspace(-1, 1, 12).reshape(3, 4)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def branch(a):
    if a.sum() > 0:
        return a + 1
    return a - 1


def early_exit(a):
    for i in range(5):
        a = a * 2
        if a.abs().max().item() > 3:
            return a, i
    return a, None


def loop_bound(a):
    n = int(a[0, 0])
    return sum((a + i for i in range(n)), torch.zeros(()))


def float_of(a):
    return a / float(a.max())


def list_of(a):
    return [v + 1 for v in a[0].tolist()], a * 2


def mask(a):
    return a[a > 0] * 2


def assign_by_mask(a):
    b = a.clone()
    b[b > 0] = 9
    return b


def nonzero(a):
    return (a > 0).nonzero(), torch.where(a > 0), torch.masked_select(a, a > 0), torch.unique((a > 0).int())


def compare(a):
    return torch.equal(a, a.abs()), torch.allclose(a, a + 1e-9), 1.0 in a


def nested(a):
    b = a[a > 0]
    if b.numel() > 3 and b.mean() > 0.1:
        return b.sum()
    return b.prod()


INPUTS = [X, -X, X + 2, X * 3, X.clamp(min=-0.2), torch.full_like(X, 2.0), X]


@pytest.mark.parametrize(
    "program", [branch, early_exit, loop_bound, float_of, list_of, mask, assign_by_mask, nonzero, compare, nested]
)
def test_a_decision_comes_out_as_in_the_plain_program(program):
    jitted = thunder.jit(program)
    for _ in range(2):
        for x in INPUTS:
            torch.testing.assert_close(jitted(x), program(x))


def test_each_outcome_is_compiled_once():
    jitted = thunder.jit(branch)
    for x in (X + 1, X - 1, X + 2, X - 2, X + 3):
        jitted(x)
    assert (thunder.cache_misses(jitted), thunder.cache_hits(jitted)) == (2, 3)


def test_the_check_is_visible_and_names_the_line():
    jitted = thunder.jit(branch)
    jitted(X + 1)
    text = thunder.last_traces(jitted)[0].canonical()
    assert "     if a.sum() > 0:" in text and "prims.check_value(t1, True)" in text


def test_a_dropped_run_leaves_arguments_and_random_numbers_as_they_were():
    def program(a):
        noise = torch.rand(4)
        a.add_(noise)
        return a + 1 if a.sum() > 0 else a - 1

    def run(call):
        torch.manual_seed(0)
        xs = [torch.full((4,), v) for v in (1.0, -9.0, 1.0)]
        return [call(x) for x in xs], xs, torch.rand(2)

    torch.testing.assert_close(run(thunder.jit(program)), run(program))


def test_a_decision_that_never_comes_out_the_same_ends_in_running_plainly():
    jitted = thunder.jit(float_of)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(1, 30):
            torch.testing.assert_close(jitted(X * i), float_of(X * i))
    messages = [str(w.message) for w in caught if "run plainly" in str(w.message)]
    assert len(messages) == 1 and "test_decisions.py" in messages[0] and "float(a.max())" in messages[0]
    assert thunder.cache_misses(jitted) <= 10


def test_a_question_about_constants_needs_no_check():
    def program(a):
        steps = torch.arange(3)
        return a * 2 if (steps[1:] > steps[:-1]).all() else a

    jitted = thunder.jit(program)
    torch.testing.assert_close(jitted(X), X * 2)
    assert "check_value" not in thunder.last_traces(jitted)[0].canonical()


def test_outcomes_that_come_in_turns_are_found_again_and_again():
    jitted = thunder.jit(lambda x: x * 2 if x.sum() > 0 else x - 1)
    for i in range(24):
        x = torch.full((2,), 1.0 if i % 2 else -1.0)
        torch.testing.assert_close(jitted(x), jitted.__wrapped__(x))
    stats = thunder.compile_stats(jitted)
    assert stats.plain is None and (stats.cache_misses, stats.cache_hits) == (2, 22)


def test_a_decision_by_a_random_number_is_run_plainly():
    def program(a):
        return a + 1 if torch.rand(()) > 0.5 else a - 1

    def run(call):
        torch.manual_seed(0)
        return [call(X) for _ in range(10)]

    with pytest.warns(UserWarning, match="random number"):
        results = run(thunder.jit(program))
    torch.testing.assert_close(results, run(program))


SCALE = 2


def test_the_reason_of_a_recompilation_names_what_changed(monkeypatch):
    def program(a, n):
        return a * n * SCALE

    jitted = thunder.jit(program)
    jitted(X, 1)
    assert thunder.last_recompile_reason(jitted) is None
    jitted(X, 2)
    assert thunder.last_recompile_reason(jitted) == "n: 1 -> 2"
    jitted(X[:2], 2)
    assert thunder.last_recompile_reason(jitted) == 'a: "cpu f32[3, 4]" -> "cpu f32[2, 4]"'
    monkeypatch.setitem(globals(), "SCALE", 3)
    jitted(X[:2], 2)
    assert thunder.last_recompile_reason(jitted) == "SCALE (global of test_decisions.py): 2 -> 3"
    with torch.enable_grad():
        jitted(X[:2], 2)
    assert thunder.last_recompile_reason(jitted) == "grad mode: False -> True"


def test_endless_recompilation_is_warned_of_once_with_the_guard():
    jitted = thunder.jit(lambda a, n: a + n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(12):
            jitted(X, n)
    (message,) = [str(w.message) for w in caught]
    assert "recompiled" in message and "n: 7 -> 8" in message


def test_old_specializations_are_found_among_many():
    jitted = thunder.jit(lambda a, n: a + n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(64):
            jitted(X, n)
    for n in range(64):
        torch.testing.assert_close(jitted(X, n), X + n)
    assert (thunder.cache_misses(jitted), thunder.cache_hits(jitted)) == (64, 64)
