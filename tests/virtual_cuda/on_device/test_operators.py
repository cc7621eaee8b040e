"""Every operation of torch's operator database gives the host's values, on samples that the database makes."""

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

# Not deterministic, about memory that is not initialized, about devices themselves, or refused by CUDA as well.
NOT_COMPARED = ("empty", "rand", "normal", "bernoulli", "multinomial", "uniform", "exponential", "cauchy", "geometric",
                "jiterator", "dropout", "rrelu", "fractional_max_pool", "like", "new_", "tensor_split", "as_strided")  # fmt: skip
NO_SPARSE = ("sparse", "to_sparse")


def on_device(value):
    if isinstance(value, torch.Tensor):
        return value.detach().cuda()
    is_cpu = value == "cpu" if isinstance(value, str) else value == torch.device("cpu")
    return torch.device("cuda") if is_cpu else value


def cases():
    for op in op_db:
        name = f"{op.name} {op.variant_test_name}".strip()
        if op.supports_dtype(torch.float32, "cpu") and not any(word in name for word in NOT_COMPARED + NO_SPARSE):
            yield pytest.param(op, id=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", list(cases()))
def test_operation_equals_the_host(op):
    samples = op.sample_inputs("cpu", torch.float32)
    for sample, _ in zip(samples, range(2)):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        expected = op.op(*tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, args), **kwargs)
        got = op.op(*tree_map(on_device, args), **tree_map(on_device, kwargs))
        for x, y in zip(tree_flatten(expected)[0], tree_flatten(got)[0]):
            if isinstance(x, torch.Tensor):
                assert y.is_cuda or op.name == "to"
                torch.testing.assert_close(y.cpu(), x, equal_nan=True, rtol=1e-4, atol=1e-4)
            else:
                assert not isinstance(y, torch.Tensor)
