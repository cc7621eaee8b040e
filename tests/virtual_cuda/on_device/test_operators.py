"""Operations of torch's operator database give the host's values and gradients, on samples that the database makes."""

import itertools
import warnings
from collections.abc import Iterator

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

# Not deterministic, about memory that is not initialized, about devices themselves, or refused by CUDA as well.
NOT_COMPARED = (
    "empty", "rand", "normal", "bernoulli", "multinomial", "uniform", "exponential", "cauchy", "geometric", "jiterator",
    "dropout", "rrelu", "fractional_max_pool", "like", "new_", "tensor_split", "as_strided",
)  # fmt: skip
SAMPLES = 4


def on_device(value):
    if isinstance(value, torch.Tensor):
        return value.detach().cuda().requires_grad_(value.requires_grad)
    is_cpu = value == "cpu" if isinstance(value, str) else value == torch.device("cpu")
    return torch.device("cuda") if is_cpu else value


def calls() -> Iterator:
    for op in op_db:
        compared = not any(word in f"{op.name} {op.variant_test_name}" for word in (*NOT_COMPARED, "sparse"))
        if compared and op.supports_dtype(torch.float32, "cpu"):
            for sample in itertools.islice(
                op.sample_inputs_func(op, "cpu", torch.float32, op.supports_autograd), SAMPLES
            ):
                yield op, (sample.input, *sample.args), sample.kwargs


def gradients(results: list, inputs: list) -> list:
    """Of the sum of all results with respect to all inputs; none where eager PyTorch has none."""
    results = [result.abs().sum() for result in tensors(results) if result.requires_grad]
    inputs = [tensor for tensor in tensors(inputs) if tensor.requires_grad]
    return list(torch.autograd.grad(results, inputs, allow_unused=True)) if results and inputs else []


def tensors(values) -> list:
    return [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, torch.Tensor)]


def assert_equals_the_host(op, args, kwargs):
    expected = op.op(*tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, args), **kwargs)
    args_there, kwargs_there = tree_map(on_device, args), tree_map(on_device, kwargs)
    got = op.op(*args_there, **kwargs_there)
    assert all(result.is_cuda for result in tensors(got)) or op.name == "to"
    torch.testing.assert_close(tree_map(on_host, got), expected, equal_nan=True, rtol=1e-4, atol=1e-4)
    try:
        expected = gradients(expected, (args, kwargs))
    except RuntimeError:  # not differentiable here
        return
    got = gradients(got, (args_there, kwargs_there))
    torch.testing.assert_close(tree_map(on_host, got), expected, equal_nan=True, rtol=1e-3, atol=1e-3)


def on_host(value):
    return value.cpu() if isinstance(value, torch.Tensor) else value


def test_operations_equal_the_host():
    failures, count = {}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op, args, kwargs in calls():
            count += 1
            try:
                assert_equals_the_host(op, args, kwargs)
            except Exception as error:
                failures[f"{op.name} {op.variant_test_name}"] = f"{type(error).__name__}: {error}"
    assert not failures and count > 1000
