"""What an entry is given, held against what it takes, and in words. Runs in the worker."""

import inspect
import os
from typing import Any

import torch

from thunder.core.devices import to_device
from thunder.core.dtypes import short_name
from thunder.core.pytree import tree_flatten
from thunder_cli.entry import Call, plain
from thunder_cli.errors import CommandError


def signature_of(subject: Any, method: str | None) -> inspect.Signature | None:
    """What the entry takes; None if Python cannot tell."""
    subject = plain(subject)
    if isinstance(subject, torch.nn.Module) and method is None:
        subject = subject.forward
    try:
        return inspect.signature(getattr(subject, method) if method else subject)
    except (TypeError, ValueError):
        return None


def definition_line(subject: Any) -> str:
    """`quickstart.py:3  def foo(a, b):`, or nothing if there is no source."""
    function = subject.forward if isinstance(subject, torch.nn.Module) else subject
    function = inspect.unwrap(getattr(function, "__func__", function))
    try:
        lines, start = inspect.getsourcelines(function)
        path = os.path.basename(inspect.getsourcefile(function))
    except (TypeError, OSError):
        return ""
    offset = next((i for i, line in enumerate(lines) if line.lstrip().startswith(("def ", "async def ", "class "))), 0)
    return f"  {path}:{start + offset}  {lines[offset].strip()}\n"


def input_values(call: Call) -> dict[str, str]:
    """What each parameter is given, in a few words."""
    signature = signature_of(call.subject, call.method)
    if signature is None:
        return {str(i): describe_input(x) for i, x in enumerate(call.args)}
    try:
        arguments = signature.bind(*call.args, **call.kwargs).arguments
    except TypeError:  # which the call itself will say better
        arguments = {**dict(enumerate(call.args)), **call.kwargs}
    return {str(name): describe_input(x) for name, x in arguments.items()}


def check_arity(call: Call) -> None:
    """Raise if the entry does not take the inputs that it was given by --input or example_inputs."""
    signature = signature_of(call.subject, call.method)
    if signature is None:
        return
    try:
        signature.bind(*call.args, **call.kwargs)
    except TypeError as error:
        raise CommandError(
            f"the inputs from {call.origin} do not fit: {error}.\n{definition_line(call.subject)}"
            f"It takes {signature}, and got {len(call.args) + len(call.kwargs)}."
        ) from None


def check_runs_when_called(call: Call) -> None:
    """Raise if calling the entry runs nothing of it: a generator or a coroutine function."""
    subject = plain(call.subject)
    method = call.method or ("forward" if isinstance(subject, torch.nn.Module) else None)
    function = getattr(subject, method) if method else subject
    function = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if inspect.iscoroutinefunction(function):
        what = "an async function: a call of it runs nothing until it is awaited"
    elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        what = "a generator: a call of it runs nothing until it is iterated"
    else:
        return
    raise CommandError(
        f"{getattr(function, '__qualname__', function)} is {what}.\n{definition_line(call.subject)}"
        "Name a function that returns its result, such as one that it calls."
    )


def plural(noun: str, count: int) -> str:
    return noun if count == 1 else noun + "s"


def describe_input(x: Any) -> str:
    """`"cuda:0 f32[2, 2]"`, a number as it is, and how many tensors are in a container."""
    if isinstance(x, torch.Tensor):
        return f'"{to_device(x)} {short_name(x.dtype)}[{", ".join(map(str, x.shape))}]"'
    if x is None or isinstance(x, bool | int | float | complex | str):
        return repr(x)
    leaves = tree_flatten(x)[0]
    tensors = sum(isinstance(leaf, torch.Tensor) for leaf in leaves)
    return f"{type(x).__name__} with {tensors} {plural('tensor', tensors)}" if tensors else type(x).__name__


def check_required(call: Call, name: str, program: str) -> None:
    """Raise if the entry needs inputs: nothing gave it any."""
    signature = signature_of(call.subject, call.method)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [] if signature is None else signature.parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind not in kinds]
    if required:
        times = {1: "once", 2: "twice"}.get(len(required), f"{len(required)} times")
        raise CommandError(
            f"{name} asks for {len(required)} {plural('input', len(required))} and got none.\n"
            f"{definition_line(call.subject)}"
            f"Give them with --input ({times}), define example_inputs() in {program}, "
            f"or let the script call {name} itself."
        )
