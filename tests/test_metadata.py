"""A tensor that is traced answers questions about itself as eager's does, in every layout."""

import pytest
import torch

import thunder

X = torch.linspace(-1, 1, 48).reshape(2, 3, 2, 4)

LAYOUTS = {
    "row-major": lambda: X.clone(),
    "transposed": lambda: X.transpose(1, 3),
    "channels last": lambda: X.contiguous(memory_format=torch.channels_last),
    "expanded": lambda: X[:1].expand(5, 3, 2, 4),
    "sliced with steps": lambda: X[:, ::2, :, 1::2],
    "a part": lambda: X[1, 1],
    "without dimensions": lambda: torch.tensor(2.5),
    "empty": lambda: torch.zeros(2, 0, 3, 4),
    "one element": lambda: torch.ones(1, 1, 1, 1),
    "complex": lambda: torch.complex(X, X).transpose(0, 1),
    "bfloat16": lambda: X.bfloat16(),
    "integers": lambda: torch.arange(24).reshape(2, 3, 2, 2),
    "bool": lambda: X > 0,
    "requires gradients": lambda: X.clone().requires_grad_(),
    "a parameter": lambda: torch.nn.Parameter(X[0, 0].clone()),
    "five dimensions, channels last": lambda: X[None].contiguous(memory_format=torch.channels_last_3d),
}

OPERATIONS = {
    "as it is": lambda x: x,
    "of pointwise operations": lambda x: x + x,
    "a view": lambda x: x.T if x.ndim < 3 else x.permute(*range(1, x.ndim), 0),
    "a copy": lambda x: x.clone(),
    "contiguous": lambda x: x.contiguous(),
    "converted": lambda x: x.double() if not x.is_complex() else x.real,
    "detached": lambda x: x.detach(),
    "a slice": lambda x: x[..., :1] if x.ndim else x[None],
    "flattened": lambda x: x.flatten(),
    "a sum": lambda x: x.sum(),
    "compared": lambda x: x == x,
}

QUESTIONS = {
    **{name: lambda x, name=name: getattr(x, name) for name in (
        "shape", "dtype", "ndim", "layout", "itemsize", "nbytes", "requires_grad", "is_leaf", "names", "is_cuda",
        "is_sparse", "is_quantized", "is_meta", "grad", "_version", "is_cpu", "is_nested",
    )},
    **{name: lambda x, name=name: getattr(x, name)() for name in (
        "size", "stride", "dim", "numel", "nelement", "element_size", "is_contiguous", "is_floating_point",
        "is_complex", "is_signed", "get_device", "is_pinned", "__len__", "dim_order",
    )},
    "lazy": lambda x: x.is_complex() or (x.is_conj(), x.is_neg()),
    "device": lambda x: str(x.device),
    "size of a dimension": lambda x: (x.size(0), x.size(-1)),
    "stride of a dimension": lambda x: (x.stride(0), x.stride(-1)),
    "no such dimension": lambda x: x.size(7),
    "no such stride": lambda x: x.stride(-9),
    "channels last": lambda x: x.is_contiguous(memory_format=torch.channels_last),
    "channels last 3d": lambda x: x.is_contiguous(memory_format=torch.channels_last_3d),
    "len": len,
    "grad_fn is None": lambda x: x.requires_grad or x.grad_fn is None,
    "parts": lambda x: [y.shape for y in x][:3],
    "unpacked": lambda x: tuple(y.stride() for y in x.unbind()),
    "hash": lambda x: hash(x) == hash(x),
    "is a tensor": lambda x: (torch.is_tensor(x), isinstance(x, torch.Tensor), isinstance(x, torch.nn.Parameter)),
    "torch asks": lambda x: (torch.is_floating_point(x), torch.is_complex(x), torch.numel(x)),
    "is not zero": lambda x: torch.is_nonzero(x.sum()),
    "same size": lambda x: (x.is_same_size(x), x.is_set_to(x)),
    "transposed": lambda x: (x.mT.stride(), x.mT.shape),
    "parts of complex numbers": lambda x: (x.real.stride(), x.imag.shape),
    "result type": lambda x: torch.result_type(x, 1.5),
    "can cast": lambda x: torch.can_cast(x.dtype, torch.int32),
    "no attribute": lambda x: x.no_such_attribute,
    "has": lambda x: (hasattr(x, "shape"), hasattr(x, "no_such_attribute"), getattr(x, "nothing", 3)),
}  # fmt: skip


def answers(operation, x):
    value, found = operation(x), {}
    for name, question in QUESTIONS.items():
        try:
            found[name] = question(value)
        except Exception as e:
            found[name] = type(e).__name__
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_answers_are_eagers(layout, operation):
    x, apply = LAYOUTS[layout](), OPERATIONS[operation]
    jitted = thunder.jit(lambda x: answers(apply, x))
    expected = answers(apply, x)
    for _ in range(2):
        found = jitted(x)
        assert {k: (v, expected[k]) for k, v in found.items() if v != expected[k]} == {}
    assert thunder.compile_stats(jitted).plain is None


@pytest.mark.parametrize("ask", ["numpy", "data_ptr", "untyped_storage", "storage", "__array__", "__dlpack__"])
def test_ways_out_of_a_trace_are_refused_or_run_plainly_by_name(ask):
    jitted = thunder.jit(lambda x: getattr(x * 2, ask)())
    if ask == "data_ptr":
        with pytest.warns(UserWarning, match="data_ptr"):
            jitted(X)
    else:
        with pytest.raises(NotImplementedError, match=ask):
            jitted(X)
