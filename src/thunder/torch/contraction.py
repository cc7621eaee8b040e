"""torch.einsum as permutations, sums and matrix products."""

import math
from collections.abc import Sequence

from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.torch.language import torchsymbol

Labels = str


@torchsymbol("einsum", "functional.einsum")
def einsum(equation: str, *operands: TensorProxy) -> TensorProxy:
    """Products of elements summed over the labels that the output lacks; pairs are joined from left to right."""
    if len(operands) == 1 and isinstance(operands[0], tuple | list):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or "." in equation:
        raise NotImplementedError("einsum with an ellipsis, or without an equation")
    inputs, output = _parse(equation, operands)
    sizes = _sizes(inputs, operands)
    terms = list(zip(inputs, operands))
    while len(terms) > 1:
        (p, a), (q, b), *rest = terms
        needed = set(output).union(*(labels for labels, _ in rest))
        terms = [_joined(p, a, q, b, needed, sizes), *rest]
    labels, a = terms[0]
    labels, a = _summed(labels, a, set(output))
    if labels == output and len(operands) > 1:
        return a
    return prims.permute(a, tuple(labels.index(x) for x in output))


def _parse(equation: str, operands: Sequence[TensorProxy]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the output."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(operands):
        raise RuntimeError("einsum(): the number of subscripts in the equation and of operands does not match")
    for labels, x in zip(inputs, operands):
        if len(labels) != x.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(labels)}) does not match the number of "
                f"dimensions ({x.ndim}) for an operand"
            )
        if len(set(labels)) != len(labels):
            raise NotImplementedError("einsum of a diagonal")
    if not arrow:
        every = "".join(inputs)
        output = "".join(sorted(x for x in set(every) if every.count(x) == 1))
    if not set(output) <= set("".join(inputs)) or len(set(output)) != len(output):
        raise RuntimeError(f"einsum(): the output subscripts {output!r} do not fit the inputs")
    return inputs, output


def _sizes(inputs: Sequence[Labels], operands: Sequence[TensorProxy]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for labels, x in zip(inputs, operands):
        for label, size in zip(labels, x.shape):
            if sizes.setdefault(label, size) != size:
                raise NotImplementedError(f"einsum that broadcasts the subscript {label}")
    return sizes


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
