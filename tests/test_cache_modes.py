"""The values of `thunder.jit(cache=...)`: when what was compiled is used again."""

import pytest
import torch
from torch import nn

import thunder

X = torch.linspace(-1, 1, 12).reshape(3, 4)
factor = 2.0


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def scaled(x, n=1):
    return x * factor * n


def counts(jitted):
    return thunder.cache_misses(jitted), thunder.cache_hits(jitted)


@pytest.mark.parametrize("cache", ["no caching", thunder.CacheOption.NO_CACHING])
def test_no_caching_compiles_at_each_call(cache, monkeypatch):
    jitted = thunder.jit(scaled, cache=cache)
    for n in (1, 1, 2, 1):
        torch.testing.assert_close(jitted(X, n), scaled(X, n))
    assert counts(jitted) == (4, 0) and thunder.cache_option(jitted) is thunder.CacheOption.NO_CACHING
    assert thunder.compile_stats(jitted).specializations == [] and thunder.last_recompile_reason(jitted) is None
    monkeypatch.setitem(globals(), "factor", 5.0)
    torch.testing.assert_close(jitted(X), scaled(X))


def test_same_input_checks_nothing_after_the_first_call(monkeypatch):
    jitted = thunder.jit(scaled, cache="same input")
    for x in (X, X + 1, X * 2):
        torch.testing.assert_close(jitted(x, 3), x * 6)
    assert counts(jitted) == (1, 2) and jitted.reason_to_recompile(X, 3) is None
    assert "if not" in str(thunder.last_prologue_traces(jitted)[0])
    assert "if not" not in str(thunder.last_prologue_traces(jitted)[-1])
    monkeypatch.setitem(globals(), "factor", 5.0)
    torch.testing.assert_close(jitted(X, 4), X * 6)
    assert counts(jitted) == (1, 3)


def test_same_input_fetches_parameters_where_they_are():
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    plain = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    plain.load_state_dict(module.state_dict())
    jitted = thunder.jit(module, cache="same input")
    torch.testing.assert_close(jitted(X), plain(X))
    for m in (plain, jitted):
        m[0].weight = nn.Parameter(torch.ones(4, 4))
    torch.testing.assert_close(jitted(X), plain(X))
    torch.testing.assert_close(jitted.state_dict(), plain.state_dict())
    assert counts(jitted) == (1, 1)


def test_same_input_keeps_the_grad_mode_and_other_decisions():
    jitted = thunder.jit(lambda x: x + 1 if x.sum() > 0 else x - 1, cache="same input", disable_torch_autograd=True)
    with torch.enable_grad():
        jitted(X + 2)
    torch.testing.assert_close(jitted(X + 1), X + 2)
    assert not torch.is_grad_enabled() and counts(jitted) == (1, 1)
    torch.testing.assert_close(jitted(X - 1), X - 2)
    torch.testing.assert_close(jitted(X + 1), X + 2)
    assert counts(jitted) == (2, 2)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="choose one of 'constant values', 'same input', 'no caching'"):
        thunder.jit(scaled, cache="same inputs")
