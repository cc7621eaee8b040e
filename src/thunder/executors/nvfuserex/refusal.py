"""Why an operation cannot be part of a fusion."""

from collections.abc import Iterable

from thunder.core import dtypes, prims
from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.symbol import BoundSymbol, Symbol, Tag
from thunder.executors.nvfuserex.definition import DataType
from thunder.executors.nvfuserex.translate import operand_types, rules

_DATA_TYPES = {data_type.value: data_type for data_type in DataType}
_LARGEST_INTEGER = 2**63 - 1

_reasons: dict[Symbol, str] = {
    prims.matmul: "matrix product: torch calls cuBLAS",
    prims.linear: "matrix product: torch calls cuBLAS",
    prims.convolution: "convolution: torch calls cuDNN",
    prims.embedding: "table lookup: torch has a kernel for it",
    prims.clone: "a copy: nvFuser would return the memory of its input",
    prims.contiguous: "a copy: nvFuser would return the memory of its input",
    prims.device_put: "moves between devices",
    prims.copy_: "writes to memory",
    prims.tensor_from_sequence: "made on the host, of Python values",
}
for primitive in (prims.cumsum, prims.cumprod, prims.cummax, prims.cummin, prims.scatter, prims.sort, prims.topk):
    _reasons[primitive] = "nvFuser makes no kernel of it, it calls torch"


def refusal(bound_symbol: BoundSymbol) -> str | None:
    """Why this call cannot be part of a fusion, in a few words; None if it can."""
    if not bound_symbol.subsymbols:
        return _refusal_of_primitive(bound_symbol)
    return next(filter(None, map(_refusal_of_primitive, bound_symbol.leaves())), None)


def _refusal_of_primitive(call: BoundSymbol) -> str | None:
    if call.symbol not in rules:
        return _unsupported(call.symbol)
    if not call.outputs:
        return "no tensor"
    return _refusal_of_tensors(call.inputs) or _refusal_of_tensors(call.outputs) or _refusal_of_arguments(call)


def _unsupported(symbol: Symbol) -> str:
    if symbol in _reasons:
        return _reasons[symbol]
    if Tag.RANDOM in symbol.tags:
        return "random numbers: torch draws them, so that they are eager's"
    if symbol.module == "prims":
        return f"nvFuser has no {symbol.name}"
    return "not made of primitives"


def _refusal_of_tensors(tensors: Iterable[Proxy]) -> str | None:
    for x in tensors:
        if not isinstance(x, TensorProxy):
            return f"{x.name} is no tensor"
        if x.device.type != "cuda":
            return f"{x.name} is on {'the CPU' if x.device.type == 'cpu' else x.device}"
        if x.dtype not in _DATA_TYPES:
            return f"nvFuser does not compute {dtypes.short_name(x.dtype)}"
        if 0 in x.shape:
            return f"{x.name} has no elements"
    return None


def _refusal_of_arguments(call: BoundSymbol) -> str | None:
    if any(isinstance(x, complex) or (isinstance(x, int) and abs(x) > _LARGEST_INTEGER) for x in call.args):
        return "a number that nvFuser does not have"
    if call.symbol is prims.gather:
        a, dim, index = call.args
        if any(p != q for d, (p, q) in enumerate(zip(a.shape, index.shape)) if d != dim):
            return "nvFuser gathers where all sizes but one are the same"
    if call.symbol is prims.slice_prim and any(step != 1 for step in call.args[3]):
        return "nvFuser slices without steps"
    if call.symbol in (prims.slice_prim, prims.pad):
        sizes = zip(call.inputs[0].shape, call.outputs[0].shape)
        if any(before > after == 1 for before, after in sizes):
            return "nvFuser mistakes a dimension cropped to one element"
    if not call.inputs:
        return None
    dtype = call.inputs[0].dtype
    if call.symbol is prims.where:
        dtype = call.outputs[0].dtype
    types = operand_types.get(call.symbol)
    if types is not None and _DATA_TYPES[dtype] not in types:
        return f"{call.symbol.name} of {dtypes.short_name(dtype)}"
    if not dtype.is_floating_point and any(isinstance(x, float) for x in call.args):
        return "combines integers with a float"
    return None
