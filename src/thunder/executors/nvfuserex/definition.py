"""A fusion's definition: the calls of `fd.ops` it is made of, printed as nvFuser prints them, replayable into nvFuser.

Translation rules write into a `Definition`. Values that no output needs are dropped and statements are put in the order
in which nvFuser finds them from the outputs, so that its text and ours are the same to the letter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any

import torch

from thunder.executors.nvfuserex.layout import Layout


class DataType(Enum):
    """The element types of nvFuser that a fusion may hold, by nvFuser's names."""

    Double = torch.float64
    Float = torch.float32
    Half = torch.float16
    BFloat16 = torch.bfloat16
    Int = torch.int64
    Int32 = torch.int32
    Bool = torch.bool
    ComplexFloat = torch.complex64
    ComplexDouble = torch.complex128

    def __str__(self) -> str:
        return f"DataType.{self.name}"


@dataclass(eq=False, slots=True)
class Value:
    """A tensor of a definition.

    Attributes:
        shape: its sizes, which the definition's text leaves symbolic where nvFuser does.
        expanded: dimensions longer than 1 whose elements are all the same one in memory.
        of_input: whether nvFuser might give an input's memory for it.
    """

    dtype: DataType
    shape: tuple[int, ...]
    expanded: frozenset[int] = frozenset()
    of_input: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(eq=False, slots=True)
class Statement:
    """A call of `fd.ops.<operation>`: values, numbers and lists of them go in, values come out."""

    operation: str
    args: tuple
    kwargs: dict[str, Any]
    outputs: tuple[Value, ...]

    def inputs(self) -> list[Value]:
        nested = [list(x) if isinstance(x, list | tuple) else [x] for x in (*self.args, *self.kwargs.values())]
        return [x for group in nested for x in group if isinstance(x, Value)]


class Definition:
    """What a fusion computes, in the words of nvFuser's Python interface."""

    def __init__(self) -> None:
        self.inputs: list[tuple[Value, Layout]] = []
        self.outputs: list[Value] = []
        self._made_by: dict[Value, Statement] = {}
        self._casts: dict[tuple[Value, DataType], Value] = {}
        self._reduced: dict[Value, dict[str, Value]] = {}

    def define_tensor(self, shape: Sequence[int], dtype: torch.dtype, layout: Layout) -> Value:
        """An input of the fusion."""
        expanded = {d for d, size in enumerate(shape) if size > 1 and layout.is_repeated(d)}
        value = Value(DataType(dtype), tuple(shape), frozenset(expanded), of_input=True)
        self.inputs.append((value, layout))
        return value

    def call(self, operation: str, *args: Any, outputs: Sequence[Value], **kwargs: Any) -> None:
        """`outputs = fd.ops.<operation>(*args, **kwargs)`"""
        statement = Statement(operation, args, kwargs, tuple(outputs))
        self._made_by.update(dict.fromkeys(outputs, statement))

    def elementwise(self, operation: str, *args: Any, dtype: DataType | None = None) -> Value:
        """The result of an operation on values of one shape, and numbers; of their type unless `dtype` is given."""
        values = [x for x in args if isinstance(x, Value)]
        shape = values[0].shape
        expanded = frozenset.intersection(*(v.expanded for v in values))
        output = Value(dtype or values[-1].dtype, shape, expanded)
        self.call(operation, *args, outputs=[output])
        return output

    def cast(self, value: Value, dtype: DataType) -> Value:
        """`value` converted, once for each type."""
        if value.dtype is dtype:
            return value
        if (value, dtype) not in self._casts:
            self._casts[value, dtype] = self.copy(value, dtype)
        return self._casts[value, dtype]

    def copy(self, value: Value, dtype: DataType | None = None) -> Value:
        """A copy of `value`; nvFuser has one word for copying and converting."""
        is_same = dtype in (None, value.dtype)
        output = Value(dtype or value.dtype, value.shape, value.expanded, value.of_input and is_same)
        self.call("cast", value, dtype=output.dtype, outputs=[output])
        return output

    def to_reduce(self, value: Value, operation: str) -> Value:
        """`value` for a reduction; a second kind of reduction gets a copy.

        nvFuser 0.2.36 fails on one tensor with two neutral elements ("Inconsistent setting of initialization value").
        """
        copies = self._reduced.setdefault(value, {})
        if operation not in copies:
            copies[operation] = self.copy(value) if copies else value
        return copies[operation]

    def add_output(self, value: Value) -> None:
        """An output of the fusion. (An input that is an output needs a statement; nvFuser returns its memory.)"""
        self.outputs.append(value if value in self._made_by else self.copy(value))

    def statements(self) -> list[Statement]:
        """What the outputs need, in nvFuser's order: depth first from those outputs that nothing else is made of."""
        used = {x for statement in self._reached(self.outputs) for x in statement.inputs()}
        return self._reached([x for x in self.outputs if x not in used])

    def _reached(self, values: Sequence[Value]) -> list[Statement]:
        """The statements that `values` come from, each after those that make its inputs."""
        order: dict[Statement, None] = {}
        stack = [(self._made_by[x], False) for x in reversed(values)]
        while stack:
            statement, inputs_done = stack.pop()
            if inputs_done:
                order[statement] = None
            elif statement not in order:
                stack.append((statement, True))
                made = [self._made_by[x] for x in statement.inputs() if x in self._made_by]
                stack.extend((s, False) for s in reversed(made))
        return list(order)

    def __str__(self) -> str:
        """The text that nvFuser prints for this definition."""
        return self._text(_nvfuser_number, lambda order: [] if order == sorted(order, reverse=True) else order)

    def exact(self) -> str:
        """The same with exact numbers and with the argument that nvFuser leaves out: it defines just this fusion."""
        return self._text(_exact_number, lambda order: order)

    def _text(
        self, number: Callable[[bool | float | complex], str], stride_order: Callable[[list[int]], list[int]]
    ) -> str:
        names: dict[Value, str] = {}

        def name(value: Value) -> str:
            return names.setdefault(value, f"tv{len(names)}")

        def write(x: Any) -> str:
            if isinstance(x, Value):
                return name(x)
            if isinstance(x, list | tuple):
                return f"[{', '.join(map(write, x))}]"
            return number(x) if isinstance(x, int | float | complex) else str(x)

        lines = ["def nvfuser_fusion(fd : FusionDefinition) -> None :"]
        for value, layout in self.inputs:
            arguments = f"{layout.arguments()}, dtype={value.dtype}, is_cpu=False{layout.order_argument()}"
            lines.append(f"    {name(value)} = fd.define_tensor({arguments})")
        for s in self.statements():
            arguments = [write(x) for x in s.args]
            for key, x in s.kwargs.items():
                arguments.append(f"{key}={write(stride_order(x) if key == 'stride_order' else x)}")
            lines.append(f"    {', '.join(map(name, s.outputs))} = fd.ops.{s.operation}({', '.join(arguments)})")
        lines += [f"    fd.add_output({name(value)})" for value in self.outputs]
        return "\n".join(lines) + "\n"

    def replay(self, fd: Any, data_types: Any) -> None:
        """Make the same calls on nvFuser's own `fd`, with its own data types."""
        made: dict[Value, Any] = {}

        def real(x: Any) -> Any:
            if isinstance(x, Value):
                return made[x]
            if isinstance(x, list | tuple):
                return [real(y) for y in x]
            return getattr(data_types, x.name) if isinstance(x, DataType) else x

        for value, layout in self.inputs:
            made[value] = fd.define_tensor(**layout.keywords(), dtype=real(value.dtype), is_cpu=False)
        for s in self.statements():
            result = getattr(fd.ops, s.operation)(*map(real, s.args), **{k: real(v) for k, v in s.kwargs.items()})
            made.update(zip(s.outputs, result if len(s.outputs) > 1 else [result], strict=True))
        for value in self.outputs:
            fd.add_output(made[value])


def _nvfuser_number(x: bool | float | complex) -> str:
    """A number as nvFuser prints it: floats with six digits."""
    if isinstance(x, complex):
        return f"{x.real:#.6g}+{x.imag:#.6g}j"
    return f"{x:#.6g}" if isinstance(x, float) and isfinite(x) else _exact_number(x)


def _exact_number(x: bool | float | complex) -> str:
    """A number as a Python expression that gives exactly it."""
    if isinstance(x, complex):
        return f"complex({_exact_number(x.real)}, {_exact_number(x.imag)})"
    return f'float("{x}")' if isinstance(x, float) and not isfinite(x) else repr(x)
