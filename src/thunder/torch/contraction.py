"""torch.einsum and its relatives as permutations, sums and matrix products."""

import math
from collections.abc import Sequence
from string import ascii_letters

import torch

from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.torch.language import torchsymbol

Labels = str


_SMALL_INTEGERS = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32}


@torchsymbol("einsum", "functional.einsum")
def einsum(*args: str | TensorProxy | Sequence) -> TensorProxy:
    """Products of elements summed over the labels that the output lacks; pairs are joined from left to right."""
    equation, operands = _equation(args)
    if any(a.dtype in _SMALL_INTEGERS for a in operands):
        raise NotImplementedError("einsum of small integers, which torch sums as int64 in some equations")
    inputs, output = _parse(equation, operands)
    terms = [_without_repeats(labels, a) for labels, a in zip(inputs, operands)]
    sizes, terms = _common_sizes(terms)
    while len(terms) > 1:
        (p, a), (q, b), *rest = terms
        needed = set(output).union(*(labels for labels, _ in rest))
        terms = [_joined(p, a, q, b, needed, sizes), *rest]
    labels, a = terms[0]
    labels, a = _summed(labels, a, set(output))
    if labels == output and len(operands) > 1:
        return a
    return prims.permute(a, tuple(labels.index(x) for x in output))


def _equation(args: tuple) -> tuple[str, tuple[TensorProxy, ...]]:
    """The equation and the operands of `einsum(equation, a, b)`, or of `einsum(a, [0], b, [1])`."""
    if args and isinstance(args[0], str):
        equation, *operands = args
        if len(operands) == 1 and isinstance(operands[0], tuple | list):
            operands = operands[0]
        return equation, tuple(operands)
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or operands and labels")
    output = _letters(args[-1]) if len(args) % 2 else None
    equation = ",".join(map(_letters, args[1::2]))
    return equation if output is None else f"{equation}->{output}", tuple(args[: len(args) // 2 * 2 : 2])


def _letters(labels: Sequence) -> str:
    if not isinstance(labels, tuple | list) or not all(
        x is Ellipsis or (isinstance(x, int) and x < 52) for x in labels
    ):
        raise NotImplementedError("einsum with labels that are no lists of small integers")
    return "".join("..." if x is Ellipsis else ascii_letters[(x + 26) % 52] for x in labels)


def _parse(equation: str, operands: Sequence[TensorProxy]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the output, an ellipsis replaced by labels that the equation does not use."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(operands):
        raise RuntimeError("einsum(): the number of subscripts in the equation and of operands does not match")
    hidden = [x.ndim - len(labels.replace("...", "")) if "..." in labels else 0 for labels, x in zip(inputs, operands)]
    spare = "".join(chr(0x3B1 + i) for i in range(max(hidden)))
    inputs = [labels.replace("...", spare[len(spare) - n :]) for labels, n in zip(inputs, hidden)]
    for labels, x in zip(inputs, operands):
        if not labels.isalpha() and labels:
            raise RuntimeError(f"einsum(): invalid subscript given: {labels!r}, subscripts must be in [a-zA-Z]")
        if len(labels) != x.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(labels)}) does not match the number of "
                f"dimensions ({x.ndim}) for an operand"
            )
    every = "".join(inputs)
    if arrow:
        output = output.replace("...", spare)
    else:
        output = spare + "".join(sorted(x for x in set(every) - set(spare) if every.count(x) == 1))
    if not set(output) <= set(every) or len(set(output)) != len(output):
        raise RuntimeError(f"einsum(): the output subscripts {output!r} do not fit the inputs")
    return inputs, output


def _without_repeats(labels: Labels, a: TensorProxy) -> tuple[Labels, TensorProxy]:
    """The operand's diagonal where a label stands twice."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if a.shape[first] != a.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand but the sizes don't match, "
                    f"{a.shape[second]} != {a.shape[first]}"
                )
            a = prims.diagonal(a, 0, first, second)
            labels = "".join(x for d, x in enumerate(labels) if d not in (first, second)) + label
    return labels, a


Term = tuple[Labels, TensorProxy]


def _common_sizes(terms: Sequence[Term]) -> tuple[dict[str, int], list[Term]]:
    """The size of each label, and the operands without the dimensions of 1 that are broadcast."""
    sizes: dict[str, int] = {}
    for labels, a in terms:
        for label, size in zip(labels, a.shape):
            known = sizes.setdefault(label, size)
            if known != size and 1 not in (known, size):
                raise RuntimeError(
                    f"einsum(): operands do not broadcast with remapped shapes: {label} is {known} and {size}"
                )
            sizes[label] = size if known == 1 else known
    fitted = []
    for labels, a in terms:
        dropped = tuple(d for d, x in enumerate(labels) if a.shape[d] != sizes[x])
        kept = "".join(x for d, x in enumerate(labels) if d not in dropped)
        fitted.append((kept, prims.squeeze(a, dropped) if dropped else a))
    return sizes, fitted


def _summed(labels: Labels, a: TensorProxy, needed: set[str]) -> tuple[Labels, TensorProxy]:
    """Summed over the labels that nothing needs."""
    dims = tuple(d for d, x in enumerate(labels) if x not in needed)
    if not dims:
        return labels, a
    return "".join(x for x in labels if x in needed), clang.sum(a, dims, dtype=a.dtype)


def _joined(
    p: Labels, a: TensorProxy, q: Labels, b: TensorProxy, needed: set[str], sizes: dict[str, int]
) -> tuple[Labels, TensorProxy]:
    """The product of two operands, summed over the labels that nothing else needs, as one batch of matrix products."""
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype} but found {b.dtype}")
    p, a = _summed(p, a, needed | set(q))
    q, b = _summed(q, b, needed | set(p))
    batch = [x for x in p if x in q and x in needed]
    inner = [x for x in p if x in q and x not in needed]
    rows, columns = [x for x in p if x not in q], [x for x in q if x not in p]
    left = _matrix(p, a, batch, rows, inner, sizes)
    right = _matrix(q, b, batch, inner, columns, sizes)
    labels = "".join(batch + rows + columns)
    return labels, prims.reshape(prims.matmul(left, right), tuple(sizes[x] for x in labels))


def _matrix(
    labels: Labels, a: TensorProxy, batch: list[str], rows: list[str], columns: list[str], sizes: dict[str, int]
) -> TensorProxy:
    """`a` as a batch of matrices (a matrix, if there is no batch) with these labels in this order."""
    order = tuple(labels.index(x) for x in batch + rows + columns)
    if order != tuple(range(a.ndim)):
        a = prims.permute(a, order)
    shape = tuple(math.prod(sizes[x] for x in group) for group in (batch, rows, columns))
    return prims.reshape(a, shape if batch else shape[1:])


@torchsymbol("tensordot", "functional.tensordot")
def tensordot(a: TensorProxy, b: TensorProxy, dims: int | Sequence[Sequence[int]] = 2, out: None = None) -> TensorProxy:
    """Products of elements summed over pairs of dimensions: the last of `a` with the first of `b`, or those given."""
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims >= 0 and at most the dimensions of both, but got dims={dims}")
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    if isinstance(dims, TensorProxy) or len(dims) != 2:
        raise NotImplementedError("tensordot over dimensions that a tensor tells")
    p, q = ([clang.canonical_dim(d, x.ndim) for d in given] for given, x in zip(dims, (a, b)))
    if len(p) != len(q) or len(set(p)) != len(p) or len(set(q)) != len(q):
        raise RuntimeError("both dimension lists should have same length and name no dimension twice")
    letters = iter(ascii_letters)
    left = [next(letters) for _ in range(a.ndim)]
    right = [next(letters) for _ in range(b.ndim)]
    for i, j in zip(p, q):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has size "
                f"{b.shape[j]} in dim {j}"
            )
        right[j] = left[i]
    output = [x for d, x in enumerate(left) if d not in p] + [x for d, x in enumerate(right) if d not in q]
    return einsum.meta(f"{''.join(left)},{''.join(right)}->{''.join(output)}", a, b)


@torchsymbol("inner", "Tensor.inner")
def inner(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """Products summed over the last dimensions."""
    if input.ndim == 0 or other.ndim == 0:
        return clang.mul(input, other)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
            f"{list(other.shape)}"
        )
    return tensordot.meta(input, other, ([-1], [-1]))


@torchsymbol("kron", "Tensor.kron")
def kron(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """Every element of `input` times `other`, as blocks."""
    n = max(input.ndim, other.ndim)
    shapes = [(1,) * (n - x.ndim) + x.shape for x in (input, other)]
    a = prims.reshape(input, tuple(s for size in shapes[0] for s in (size, 1)))
    b = prims.reshape(other, tuple(s for size in shapes[1] for s in (1, size)))
    return prims.reshape(clang.mul(a, b), tuple(p * q for p, q in zip(*shapes)))


@torchsymbol("nn.functional.bilinear", "bilinear")
def bilinear(
    input1: TensorProxy, input2: TensorProxy, weight: TensorProxy, bias: TensorProxy | None = None
) -> TensorProxy:
    """input1 @ weight[k] @ input2 + bias[k]"""
    if input1.shape[:-1] != input2.shape[:-1] or weight.shape[1:] != (input1.shape[-1], input2.shape[-1]):
        raise RuntimeError("bilinear(): the sizes of the inputs and of the weight do not fit together")
    if math.prod(input1.shape) == 0 or not input1.dtype == input2.dtype == weight.dtype:
        raise NotImplementedError("bilinear of nothing, or of several dtypes")
    out = einsum.meta("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else clang.add(out, bias)
