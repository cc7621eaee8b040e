"""The seed's fusion from definition to repro, on the virtual device; prints what it saw as JSON."""

import json
import sys

import torch
from regions import regions

from thunder import virtual_cuda
from thunder.core.symbol import BoundSymbol
from thunder.core.trace import Trace
from thunder.examine import get_fusion_symbols, get_fusions, get_nvfuser_repro
from thunder.executors import nvfuserex


def failure(function, *args) -> str:
    try:
        return function(*args)
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


calls, inputs, outputs = regions["seed"].record()
symbol = nvfuserex.ex.fuse("nvFusion0", calls, inputs, outputs)
wrapper = symbol.implementation
call = BoundSymbol(symbol, tuple(inputs), {}, outputs, tuple(calls))
trace = Trace("computation", tuple(inputs), [call], tuple(outputs))
seen = {
    "backend": nvfuserex.backend().name,
    "nvfuser imported": "nvfuser_direct" in sys.modules,
    "repr": repr(wrapper),
    "refusals": [nvfuserex.ex.refusal(c) for c in calls],
    "context": repr(trace.python_ctx()),
    "fusions": [(name, w is wrapper) for name, w in get_fusions(trace)],
    "fusion symbols": get_fusion_symbols(trace) == [call],
    "repro before a run": failure(get_nvfuser_repro, trace, "nvFusion0"),
    "repro of another": failure(get_nvfuser_repro, trace, "nvFusion1"),
}
a, b = torch.full((2, 2), 1.0, device="cuda"), torch.full((2, 2), 3.0, device="cuda")
launched = len(virtual_cuda.launches())
seen["values"] = [x.tolist() for x in trace.python_callable()(a, b)]
first = wrapper.last_used
wrapper(b, b)
seen["launches"] = len(virtual_cuda.launches()) - launched
seen["same kind, same fusion"] = wrapper.last_used is first
seen["definition"] = repr(first)
seen["kernel"] = failure(first.last_cuda_code)
seen["bytes"] = first.bytes_moved
seen["kernels"] = [(k.name, k.grid, k.block) for k in first.last_kernels]
seen["repro"] = get_nvfuser_repro(trace, "nvFusion0")
other = nvfuserex.ex.fuse("nvFusion1", *regions["seed"].record()).implementation
other(b, a)
seen["fusions of one definition"] = other.last_used is not first and other.last_used.program is first.program
seen["launches with another of the same"] = len(virtual_cuda.launches()) - launched
wrapper(torch.ones(3, 2, device="cuda"), torch.ones(3, 2, device="cuda"))
seen["of other shapes"] = wrapper.last_used.program is first.program
wrapper(a.t(), b[:, :1].expand(2, 2))
seen["definition of other layouts"] = repr(wrapper.last_used)
seen["kept"] = first.stored_inputs
wrapper.store_inputs = True
wrapper(a, b)
seen["kept when asked"] = wrapper.last_used.stored_inputs[0] is a and other.last_used.stored_inputs is None


def fails(*args, **kwargs):
    raise RuntimeError("cannot compile this\nException raised from somewhere\nframe #0: 0x7f")


if seen["backend"] == "virtual":
    first.program.fd.execute = fails
    first.program.compile((a, b))
    seen["error"] = first.error
    seen["values in spite of it"] = [x.tolist() for x in other(a, b)]
print(json.dumps(seen))
