"""Gradients, optimizers, autocast and function transforms of virtual CUDA tensors, against the same on the host."""

import copy
import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def both(make):
    """The same module on host and device, with an input for each."""
    torch.manual_seed(0)
    module, x = make(), torch.randn(5, 4)
    return (module, x), (copy.deepcopy(module).cuda(), x.cuda())


def test_backward_gives_the_gradients_of_the_host():
    (module, x), (on_device, y) = both(lambda: nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1)))
    module(x).square().mean().backward()
    on_device(y).square().mean().backward()
    for parameter, twin in zip(module.parameters(), on_device.parameters()):
        assert isinstance(twin, nn.Parameter) and twin.is_cuda and twin.grad.is_cuda
        torch.testing.assert_close(twin.grad.cpu(), parameter.grad)
    x, y = x.requires_grad_(), y.requires_grad_()
    (expected,), (got,) = torch.autograd.grad(module(x).sum(), x), torch.autograd.grad(on_device(y).sum(), y)
    torch.testing.assert_close(got.cpu(), expected)


def test_backward_crosses_devices():
    x = torch.ones(3, device="cuda:0", requires_grad=True)
    ((x.to("cuda:1") * 2).cpu() * 3).sum().backward()
    assert x.grad.device.index == 0 and x.grad.tolist() == [6, 6, 6]


def test_backward_runs_in_several_threads_each_with_its_device():
    def work(index):
        torch.cuda.set_device(index % 2)
        x = torch.ones(20, 20, device="cuda", requires_grad=True)
        for _ in range(10):
            (x @ x).sum().backward()
        results[index] = (x.grad.device.index, x.grad[0, 0].item())

    results = {}
    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {index: (index % 2, 400.0) for index in range(4)}
    assert torch.cuda.current_device() == 0


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "adamw": torch.optim.AdamW,
    "adamw foreach": lambda p: torch.optim.AdamW(p, foreach=True),
    "adam fused": lambda p: torch.optim.Adam(p, fused=True),
    "rmsprop": torch.optim.RMSprop,
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_take_the_steps_of_the_host(name):
    pairs = both(lambda: nn.Linear(4, 3))
    for module, x in pairs:
        optimizer = OPTIMIZERS[name](module.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            module(x).square().sum().backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    torch.testing.assert_close(pairs[1][0].weight.cpu(), pairs[0][0].weight)


def test_autocast_and_gradient_scaling_choose_dtypes_as_on_cuda():
    module, x = nn.Linear(4, 4).cuda(), torch.randn(2, 4, device="cuda")
    scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.SGD(module.parameters(), 0.1)
    with torch.autocast("cuda", dtype=torch.float16):
        y = module(x)
        loss = nn.functional.mse_loss(y, torch.zeros_like(y))
    assert y.dtype == torch.float16 and loss.dtype == torch.float32
    before = module.weight.clone()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, module.weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module(x).dtype == torch.float32


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_repeats_the_dropout_of_the_first_pass(reentrant):
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).cuda()
    x = torch.randn(3, 4, device="cuda", requires_grad=True)
    torch.manual_seed(0)
    (expected,) = torch.autograd.grad(module(x).sum(), x)
    torch.manual_seed(0)
    checkpoint(module, x, use_reentrant=reentrant).sum().backward()
    assert torch.equal(x.grad, expected)


def test_custom_functions_hooks_and_gradcheck_work():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            assert x.is_cuda and grad.is_cuda
            return grad * 2

    x = torch.ones(2, device="cuda", requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [20, 20]
    y = torch.randn(3, dtype=torch.float64, device="cuda", requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: (y.exp() * y).sum(), y)


def test_function_transforms_and_modes_see_cuda_tensors():
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(3, 4, device="cuda")
    rows = torch.func.vmap(lambda row: row.sum() * row)
    torch.testing.assert_close(rows(x).cpu(), rows(x.cpu()))
    torch.testing.assert_close(torch.func.grad(lambda x: (x**2).sum())(x), 2 * x)
    torch.testing.assert_close(torch.func.jvp(torch.sin, (x,), (x,))[1], x.cos() * x)
    torch.testing.assert_close(make_fx(lambda x: x.sin() + 1)(x)(x), x.sin() + 1)
    with torch.inference_mode():
        assert (x @ x.t()).relu_().is_cuda
