"""The nvFuser executor: makes regions of primitives into fusions, and runs these."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from thunder.core.observing import current_observer
from thunder.core.proxies import TensorProxy
from thunder.core.region import depends_on_sizes, of_sizes
from thunder.core.symbol import BoundSymbol, Symbol
from thunder.core.trace import Trace
from thunder.executors.nvfuserex.backends import ByTorch, Kernel, RecordedProgram, backend, compiled
from thunder.executors.nvfuserex.definition import Definition
from thunder.executors.nvfuserex.facts import TensorFacts
from thunder.executors.nvfuserex.layout import Layout
from thunder.executors.nvfuserex.refusal import refusal
from thunder.executors.nvfuserex.translate import translate
from thunder.extend import FusionExecutor


@dataclass(slots=True)
class Fusion:
    """A fusion as it ran on one kind of input: its definition and its kernels. Prints as the definition.

    Attributes:
        program: what it was compiled to, which other fusions may share.
        by_torch: its operations, each run by torch.
        inputs, outputs: shapes, strides, dtypes and devices.
        stored_inputs: the tensors of the last run, if the fusion stores them.
    """

    program: RecordedProgram
    by_torch: ByTorch
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...] = ()
    stored_inputs: tuple[torch.Tensor, ...] | None = None

    def __repr__(self) -> str:
        return self.program.text()

    @property
    def definition(self) -> Definition:
        """What was translated; `repr` gives nvFuser's own text of it where nvFuser is there."""
        return self.program.definition

    @property
    def error(self) -> str | None:
        """Why nvFuser made no kernel, if it was asked and failed."""
        return self.program.error

    @property
    def last_kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the last call launched."""
        return self.program.kernels

    @property
    def bytes_moved(self) -> int:
        """How much a call reads and writes at least: its inputs and outputs, each once."""
        return sum(x.bytes for x in (*self.inputs, *self.outputs))

    def last_cuda_code(self) -> str:
        """The CUDA kernels of the last call, as nvFuser generated them; RuntimeError says why there are none."""
        if self.error:
            raise RuntimeError(f"there is no kernel: nvFuser failed: {self.error}")
        if self.program.cuda_code is None:
            raise RuntimeError(f"there is no kernel: {backend().reason}")
        if not self.program.cuda_code:
            raise RuntimeError("there is no kernel: nvFuser computes nothing here, the outputs are views of the inputs")
        return self.program.cuda_code


class FusionDefinitionWrapper:
    """Runs a fusion: takes its inputs, returns the list of its outputs.

    Attributes:
        last_used: the fusion as the last call used it; None before the first.
        store_inputs: whether `last_used` keeps the tensors of the last call.
        takes_sizes: whether sizes may be others at each call; it is then translated for those that come.
    """

    def __init__(
        self,
        name: str,
        region: Sequence[BoundSymbol],
        inputs: Sequence[TensorProxy],
        outputs: Sequence[TensorProxy],
        *,
        store_inputs: bool = False,
    ):
        self.name = name
        self.region = tuple(region)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.store_inputs = store_inputs
        self.last_used: Fusion | None = None
        self.takes_sizes = depends_on_sizes(region, inputs)
        self._fusions: dict[tuple, Fusion] = {}
        self._takes_complex = any(isinstance(x, TensorProxy) and x.dtype.is_complex for x in inputs)

    def __call__(self, *inputs: torch.Tensor | int | float) -> list[torch.Tensor]:
        if self._takes_complex:  # torch may have put off to conjugate them
            inputs = tuple([x.resolve_conj() if isinstance(x, torch.Tensor) else x for x in inputs])
        key = tuple([(x.shape, x.stride()) if isinstance(x, torch.Tensor) else x for x in inputs])
        fusion = self._fusions.get(key)
        if fusion is None:
            fusion = self._fusions[key] = self._compile(inputs)
            current_observer().fused(self.name)
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)] if self.takes_sizes else inputs
        results = fusion.program.run(tensors, fusion.by_torch)
        if self.last_used is not fusion:
            fusion.outputs = tuple(map(TensorFacts.of, results))
            self.last_used = fusion
        if self.store_inputs:
            fusion.stored_inputs = tuple(tensors)
        return results

    def _compile(self, inputs: Sequence[torch.Tensor | int | float]) -> Fusion:
        """The fusion for a new kind of inputs."""
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        layouts = [Layout.of(x.shape, x.stride()) for x in tensors]
        part = self.region, self.inputs, self.outputs
        if self.takes_sizes:
            part = of_sizes(*part, inputs)
        definition = translate(*part, layouts)
        by_torch = _run_by_torch(*part) if self.takes_sizes else self._by_torch
        return Fusion(compiled(definition, tensors), by_torch, tuple(map(TensorFacts.of, tensors)))

    @cached_property
    def _by_torch(self) -> ByTorch:
        return _run_by_torch(self.region, self.inputs, self.outputs)

    def __repr__(self) -> str:
        return f"FusionDefinitionWrapper({self.name}: ({', '.join(b.symbol.name for b in self.region)}))"


def _run_by_torch(
    region: Sequence[BoundSymbol], inputs: Sequence[TensorProxy], outputs: Sequence[TensorProxy]
) -> ByTorch:
    """The region's operations, each run by torch."""
    names = {p.name for b in region for p in (*b.inputs, *b.outputs)}
    trace = Trace("computation", tuple(inputs), list(region), list(outputs), names=names, decorated=False)
    return trace.python_callable()


class NvFuserExecutor(FusionExecutor):
    """Fuses what nvFuser can compute."""

    fusion_prefix = "nvFusion"

    def refusal(self, bound_symbol: BoundSymbol) -> str | None:
        """Why this call cannot be part of a fusion, in a few words; None if it can."""
        return refusal(bound_symbol)

    def fuse(
        self,
        name: str,
        region: Sequence[BoundSymbol],
        inputs: Sequence[TensorProxy],
        outputs: Sequence[TensorProxy],
        *,
        nv_store_fusion_inputs: bool = False,
        **options: Any,
    ) -> Symbol:
        """The operation called `name` that takes `inputs`, runs `region` in order and gives `outputs`."""
        primitives = [leaf for call in region for leaf in call.leaves()]
        wrapper = FusionDefinitionWrapper(name, primitives, inputs, outputs, store_inputs=nv_store_fusion_inputs)
        return Symbol(name, None, implementation=wrapper)
