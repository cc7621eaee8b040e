"""Why an operation cannot be part of a fusion."""

from collections.abc import Iterable

from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import BoundSymbol, Symbol, Tag
from thunder.executors.nvfuserex.definition import DataType
from thunder.executors.nvfuserex.translate import operand_types, rules

MAX_DIMENSIONS = 8

# The dtypes that nvFuser computes, by torch's object for each.
_data_types = {data_type.value: data_type for data_type in DataType}

_reasons: dict[Symbol, str] = {
    prims.matmul: "matrix product: torch calls cuBLAS",
    prims.linear: "matrix product: torch calls cuBLAS",
    prims.convolution: "convolution: torch calls cuDNN",
    prims.embedding: "table lookup: torch has a kernel for it",
    prims.clone: "a copy: nvFuser would return the memory of its input",
    prims.contiguous: "a copy: nvFuser would return the memory of its input",
    **dict.fromkeys(
        (prims.cumsum, prims.gather, prims.scatter, prims.sort, prims.topk),
        "nvFuser makes no kernel of it, it calls torch",
    ),
    prims.device_put: "moves between devices",
    prims.copy_: "writes to memory",
    prims.tensor_from_sequence: "made from Python values on the host",
}


def refusal(bound_symbol: BoundSymbol) -> str | None:
    """Why this call cannot be part of a fusion, in a few words; None if it can."""
    if not bound_symbol.subsymbols:
        return _refusal_of_primitive(bound_symbol)
    return next(filter(None, map(_refusal_of_primitive, bound_symbol.leaves())), None)


def _refusal_of_primitive(call: BoundSymbol) -> str | None:
    if call.symbol not in rules:
        return _unsupported(call.symbol)
    return (
        _refusal_of_tensors(call.inputs)
        or _refusal_of_tensors(call.outputs)
        or (None if call.outputs else "no tensor")
        or _refusal_of_operands(call)
        or _refusal_of_arguments(call)
    )


def _unsupported(symbol: Symbol) -> str:
    if symbol in _reasons:
        return _reasons[symbol]
    if Tag.RANDOM in symbol.tags:
        return "random numbers: torch draws them, so that they are eager's"
    if symbol.module == "prims":
        return f"nvFuser has no {symbol.name}"
    return "not made of primitives"


def _refusal_of_tensors(tensors: Iterable[object]) -> str | None:
    for x in tensors:
        if not isinstance(x, TensorProxy):
            continue
        if x.device.type != "cuda":
            return f"{x.name} is on the {'CPU' if x.device.type == 'cpu' else x.device.type} device"
        if x.dtype not in _data_types:
            return f"nvFuser does not compute {dtypes.short_name(x.dtype)}"
        if x.ndim > MAX_DIMENSIONS:
            return f"{x.name} has {x.ndim} dimensions, nvFuser takes {MAX_DIMENSIONS}"
        if 0 in x.shape:
            return f"{x.name} has no elements"
    return None


def _refusal_of_operands(call: BoundSymbol) -> str | None:
    types = operand_types.get(call.symbol)
    tensors = [x for x in call.inputs if isinstance(x, TensorProxy)]
    if types is None or not tensors or _data_types[tensors[0].dtype] in types:
        return None
    return f"{call.symbol.name} of {dtypes.short_name(tensors[0].dtype)}"


def _refusal_of_arguments(call: BoundSymbol) -> str | None:
    if call.symbol is prims.full and isinstance(call.args[1], complex):
        return "nvFuser does not compute complex numbers"
    return None
