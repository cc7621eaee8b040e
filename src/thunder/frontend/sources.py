"""Where a tensor that the program found by itself is kept: in the module, a closure cell, a global, an attribute."""

import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch

from thunder.core.printing import Live
from thunder.frontend.guards import Access


class TensorSources:
    """The tensors that a program holds, by identity, each with the way to it."""

    def __init__(self, program: Callable):
        self.program = program

    def find(self, x: torch.Tensor) -> Access | None:
        return self._accesses.get(id(x))

    @functools.cached_property
    def _accesses(self) -> dict[int, Access]:
        found: dict[int, Access] = {}
        for tensor, access in _tensors_of_program(self.program):
            found.setdefault(id(tensor), access)
        return found


def _tensors_of_program(program: Callable) -> Iterator[tuple[torch.Tensor, Access]]:
    while isinstance(program, functools.partial):
        program = program.func
    if isinstance(program, MethodType):
        yield from _tensors_of_owner(program.__self__)
        program = program.__func__
    if isinstance(program, FunctionType):
        yield from _tensors_of_function(program)
    else:
        yield from _tensors_of_owner(program)


def _tensors_of_owner(owner: Any) -> Iterator[tuple[torch.Tensor, Access]]:
    """Tensors of the object whose method (or `__call__`) the program is; their names carry no prefix of it."""
    root = Access(type(owner).__name__, Live(owner, type(owner).__name__))
    yield from _tensors_in(owner, root, "")
    for name, value in getattr(owner, "__dict__", {}).items():
        if isinstance(value, torch.nn.Module):
            yield from _tensors_in(
                value, Access(type(owner).__name__, Live(owner, type(owner).__name__)).attribute(name), name
            )


def _tensors_of_function(function: FunctionType) -> Iterator[tuple[torch.Tensor, Access]]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    name = function.__name__ if function.__name__.isidentifier() else "function"
    root = Access(name, Live(function, name))
    for i, (name, cell) in enumerate(cells):
        try:
            value = cell.cell_contents
        except ValueError:  # not bound yet
            continue
        access = Access(name, f".__closure__[{i}].cell_contents", root)
        yield from _tensors_in(value, access, name)
        if isinstance(value, FunctionType) and value is not function:
            yield from _tensors_of_function(value)
    namespace = Access("globals", ".__globals__", root)
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield from _tensors_in(function.__globals__[name], namespace.item(name).named(name), name)


def _global_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def _tensors_in(value: Any, access: Access, prefix: str) -> Iterator[tuple[torch.Tensor, Access]]:
    """The tensor itself, or the parameters, buffers and tensor attributes of a module or object."""
    if isinstance(value, torch.Tensor):
        yield value, access
    elif isinstance(value, torch.nn.Module):
        yield from _tensors_of_module(value, access, prefix)
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type | FunctionType):
        for name, x in value.__dict__.items():
            if isinstance(x, torch.Tensor):
                yield x, access.attribute(name).named(f"{prefix}_{name}" if prefix else name)


def _tensors_of_module(module: torch.nn.Module, access: Access, prefix: str) -> Iterator[tuple[torch.Tensor, Access]]:
    stores = (("_parameters", module._parameters), ("_buffers", module._buffers), ("", vars(module)))
    for store, tensors in stores:
        for name, x in tensors.items():
            if isinstance(x, torch.Tensor):
                path = f"{prefix}_{name}" if prefix else name
                step = access.item(name, of=f".{store}") if store else access.attribute(name)
                yield x, step.named("t_" + path.replace(".", "_"))
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}_{name}" if prefix else name
            yield from _tensors_of_module(child, access.item(name, of="._modules"), path)
