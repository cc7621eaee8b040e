"""Memory read in another way: views with other strides or dtypes, windows, and writes through them."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from gradients import assert_same_gradients
from test_torch_rules import by_rule

import thunder


def _every_other_window_tripled(x):
    y = x * 1
    y.unfold(0, 2, 2).mul_(3)
    return y


def _bits_written(x):
    y = x * 1
    y.view(torch.int32)[0] = 5
    return y


def _shorter_dtype_written(x):
    y = x * 1
    y.view(torch.int16)[1].fill_(0)
    return y


def _corner_filled(x):
    y = x * 1
    y.as_strided((2, 2), (1, 6)).fill_(7)
    return y


def _windows_after_a_write(x):
    y = x * 1
    windows = y.unfold(1, 3, 1)
    y.add_(1)
    return windows * 2


@pytest.mark.parametrize(
    "program",
    [_every_other_window_tripled, _bits_written, _shorter_dtype_written, _corner_filled, _windows_after_a_write],
)
def test_writes_go_through_views_of_memory(program: Callable):
    by_rule(program, torch.randn(4, 6))


@pytest.mark.parametrize(
    "program", [lambda y: y.unfold(0, 3, 1).add_(3), lambda y: y.as_strided((2, 2), (1, 1)).add_(1)]
)
def test_writes_that_meet_themselves_are_eagers(program: Callable):
    def written(x):
        y = x * 1
        program(y)
        return y

    x = torch.randn(4, 6)
    with pytest.warns(UserWarning, match="run plainly"):
        assert_same_gradients(written, x, plain=True)


def test_bits_take_no_part_in_differentiation():
    x = torch.randn(4, requires_grad=True)
    assert_same_gradients(lambda x: (x.view(torch.int32), x.view(torch.float32) * x), x)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.unfold(1, 3, 2) ** 2,
        lambda x: F.unfold(x[None, None], (2, 3), dilation=(1, 2), padding=1, stride=2) ** 2,
        lambda x: F.fold(F.unfold(x[None, None], 2, stride=(2, 1)), (6, 8), 2, stride=(2, 1)) ** 2,
        lambda x: torch.as_strided(x * 2, (3, 4), (2, 3)) ** 2,
        lambda x: F.multilabel_margin_loss(x, torch.tensor([[3, 1, -1, 5, 0, 0, 0, 0]] * 6)),
    ],
)
def test_gradients_of_windows_are_eagers(program: Callable):
    x = torch.randn(6, 8, dtype=torch.float64)
    by_rule(program, x)
    assert_same_gradients(program, x.requires_grad_())


@pytest.mark.parametrize(
    "program",
    [
        lambda z: torch.view_as_real(z.conj().resolve_conj()),
        lambda z: z.conj(),
        lambda z: z.conj().imag,
        lambda z: (z * 1).conj().mul_(2),
        lambda z: z.conj().is_conj(),
        lambda z: (z.conj().resolve_conj().mul_(2), z * 1),
    ],
)
@pytest.mark.parametrize("is_conjugate", [False, True])
@pytest.mark.filterwarnings("ignore:.*run plainly")
def test_conjugates_that_torch_puts_off_are_eagers(program: Callable, is_conjugate: bool):
    z = torch.randn(4, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    z = z.conj() if is_conjugate else z
    torch.testing.assert_close(thunder.jit(program)(z.clone()), program(z.clone()))
