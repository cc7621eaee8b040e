"""An error while tracing shows the user's frames only, unless the debug options ask for all."""

import os
import traceback

import pytest
import torch
from torch import nn
from torch.nn import functional

import thunder

X = torch.ones(2, 3)
OURS = os.path.dirname(thunder.__file__)
TORCHS = os.path.dirname(torch.__file__)


class Layer(nn.Module):
    def forward(self, x):
        return functional.linear(functional.softmax(x, -1), x)[5]  # the line


def wrong_shapes(x):
    return torch.matmul(x, x)  # the line


def own_error(x):
    try:
        return {}["missing"]
    except KeyError:
        raise ValueError("mine") from None  # the line


def chained(x):
    try:
        return torch.matmul(x, x)
    except RuntimeError as e:
        raise ValueError("mine") from e  # the line


def way_out(x):
    return x.numpy()  # the line


def calls_a_jitted_function(x):
    return thunder.jit(wrong_shapes)(x)


PROGRAMS = [Layer(), wrong_shapes, own_error, chained, way_out, calls_a_jitted_function, lambda x: Layer()(x + 1)]


def report(jitted):
    with torch.no_grad(), pytest.raises(Exception) as caught:
        jitted(X)
    return "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: getattr(p, "__name__", "module"))
def test_frames_of_the_user_only(program):
    jitted = thunder.jit(program)
    for _ in range(2):
        text = report(jitted)
        assert "# the line" in text and __file__ in text
        assert OURS not in text and TORCHS not in text
    assert "jitted(X)" in text


@pytest.mark.parametrize("program", PROGRAMS[:2], ids=lambda p: getattr(p, "__name__", "module"))
def test_all_frames_on_request(program):
    text = report(thunder.jit(program, debug_options=thunder.DebugOptions(show_internal_frames=True)))
    assert "# the line" in text and os.path.join(OURS, "jit.py") in text


def test_defects_of_ours_keep_their_frames():
    def defective(trace):
        raise AssertionError("a pass is wrong")

    text = report(thunder.jit(lambda x: x + 1, transforms=[defective]))
    assert "a pass is wrong" in text
    with pytest.raises(TypeError) as caught:
        thunder.jit(lambda x: x + 1, transforms=[lambda trace: None])(X)
    assert any(OURS in entry.filename for entry in traceback.extract_tb(caught.value.__traceback__))
