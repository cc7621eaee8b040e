"""Why an operation cannot be part of a fusion."""

import cmath
from collections.abc import Iterable
from typing import Any

from thunder.core import dtypes, memory_prims, prims, window_prims
from thunder.core.proxies import NumberProxy, Proxy, TensorProxy
from thunder.core.symbol import BoundSymbol, Symbol, Tag
from thunder.executors.nvfuserex.definition import DataType
from thunder.executors.nvfuserex.translate import operand_types, rules

_DATA_TYPES = {data_type.value: data_type for data_type in DataType}
_LARGEST_INTEGER = 2**63 - 1
_EXPONENTS_OF_COMPLEX = (2, 3, 0.5, -0.5, -1)

_CALLS_TORCH = "nvFuser makes no kernel of it, it calls torch"
_MATRIX_PRODUCT = "matrix product: torch calls cuBLAS"
_CONVOLUTION = "convolution: torch calls cuDNN"
_LOOKUP = "table lookup: torch has a kernel for it"
_WRITES_BY_INDEX = "writes where indices say, which nvFuser has no kernel for"
_ADDRESSES = "reads memory in another way, and nvFuser has no word for addresses"
_SEARCHES = "sorts or searches, which nvFuser has no kernel for"
_WINDOWS = "slides windows, which nvFuser has no word for"
_CONTROL = "a check of the program's own"

# Why primitives without a translation have none; the others are random, or nvFuser has no word for them.
_reasons: dict[Symbol, str] = {
    prims.device_put: "moves between devices",
    prims.copy_: "writes to memory",
    prims.tensor_from_sequence: "made on the host, of Python values",
    prims.python_del: "forgets values",
    prims.flash_attention: "attention of tensors on the CPU",
    prims.flash_attention_backward: "attention of tensors on the CPU",
    **dict.fromkeys((prims.matmul, prims.linear), _MATRIX_PRODUCT),
    **dict.fromkeys((prims.convolution, prims.convolution_backward), _CONVOLUTION),
    **dict.fromkeys((prims.embedding, prims.embedding_backward), _LOOKUP),
    **dict.fromkeys((prims.cumsum, prims.cumprod, prims.cummax, prims.cummin), _CALLS_TORCH),
    **dict.fromkeys((prims.scatter, prims.sort, prims.topk), _CALLS_TORCH),
    **dict.fromkeys((prims.scatter_add, prims.scatter_reduce, prims.index_put, prims.masked_scatter), _WRITES_BY_INDEX),
    **dict.fromkeys((memory_prims.as_strided, memory_prims.bitcast, memory_prims.unfold), _ADDRESSES),
    **dict.fromkeys((prims.kthvalue, prims.median, prims.mode, prims.nanmedian, prims.searchsorted), _SEARCHES),
    **dict.fromkeys((window_prims.max_pool, window_prims.avg_pool), _WINDOWS),
    **dict.fromkeys((window_prims.adaptive_avg_pool, window_prims.adaptive_max_pool), _WINDOWS),
    **dict.fromkeys((prims.check_value, prims.check_shape), _CONTROL),
}


def refusal(bound_symbol: BoundSymbol) -> str | None:
    """Why this call cannot be part of a fusion, in a few words; None if it can."""
    if not bound_symbol.subsymbols:
        return _refusal_of_primitive(bound_symbol)
    return next(filter(None, map(_refusal_of_primitive, bound_symbol.leaves())), None)


def _refusal_of_primitive(call: BoundSymbol) -> str | None:
    if call.symbol not in rules:
        keeps_graph = any(type(p) not in (TensorProxy, NumberProxy) for p in (*call.inputs, *call.outputs))
        return "torch differentiates it, and keeps its graph" if keeps_graph else reason_of(call.symbol)
    if not call.outputs:
        return "no tensor"
    return _refusal_of_tensors(call.inputs) or _refusal_of_tensors(call.outputs) or _refusal_of_arguments(call)


def reason_of(symbol: Symbol) -> str:
    """Why an operation without a translation has none."""
    if symbol in _reasons:
        return _reasons[symbol]
    if Tag.RANDOM in symbol.tags:
        return "random numbers: torch draws them, so that they are eager's"
    if symbol.module == "prims":
        return f"nvFuser has no {symbol.name}"
    return "a call of torch's own, not made of primitives" if symbol.module == "torch" else "not made of primitives"


def _refusal_of_tensors(tensors: Iterable[Proxy]) -> str | None:
    for x in tensors:
        if isinstance(x, NumberProxy) and x.size is not None:
            continue
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
    if any(map(_is_foreign, call.args)):
        return "a number that nvFuser does not have"
    if call.symbol is prims.gather:
        a, dim, index = call.args
        if any(p != q for d, (p, q) in enumerate(zip(a.shape, index.shape)) if d != dim):
            return "nvFuser gathers where all sizes but one are the same"
    if call.symbol in (prims.slice_prim, prims.slice_scatter) and any(step != 1 for step in call.args[-1]):
        return "nvFuser slices without steps"
    if call.symbol is prims.index and sum(x is not None for x in call.args[1]) > 1:
        return "nvFuser takes along one dimension at a time"
    if call.symbol in (prims.pad, prims.slice_prim):
        cropped = [after for before, after in zip(call.args[0].shape, call.outputs[0].shape) if before > after]
        if 1 in cropped and (call.symbol is prims.pad or len(cropped) > 1):
            return "nvFuser mistakes a dimension cropped to one element"
    tensors = [x for x in call.inputs if isinstance(x, TensorProxy)]
    if not tensors:
        return None
    dtype = tensors[0].dtype
    if call.symbol is prims.where:
        dtype = call.outputs[0].dtype
    types = operand_types.get(call.symbol)
    if types is not None and _DATA_TYPES[dtype] not in types:
        return f"{call.symbol.name} of {dtypes.short_name(dtype)}"
    if not dtypes.is_inexact(dtype) and any(isinstance(x, float) for x in call.args):
        return "combines integers with a float"
    if not dtype.is_complex and any(isinstance(x, complex) for x in call.args):
        return "combines real numbers with a complex one"
    if call.symbol is prims.pow and dtype.is_complex and not _is_power_of_complex(*call.args):
        return "nvFuser raises complex tensors to powers that are tensors"
    return None


def _is_power_of_complex(a: Any, b: Any) -> bool:
    return isinstance(a, TensorProxy) and (isinstance(b, TensorProxy) or b in _EXPONENTS_OF_COMPLEX)


def _is_foreign(x: Any) -> bool:
    """Whether nvFuser does not have the number."""
    if isinstance(x, complex):
        return not cmath.isfinite(x)
    return isinstance(x, int) and abs(x) > _LARGEST_INTEGER
