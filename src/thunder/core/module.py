"""`ThunderModule`: what `thunder.jit` makes of an `nn.Module`. It has no state of its own: all is the original's."""

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import MethodType
from typing import Any

import torch


class ThunderModule(torch.nn.Module):
    """A module that runs compiled. `thunder.jit` makes it; there is no need to do so oneself.

    Attributes and methods are those of the original module: parameters, buffers, hooks and modes are shared with it.
    Where a method calls the module itself, as `generate` of Hugging Face's models does, that call runs compiled.

    Args:
        model: the original module.
        compiled_model_call: takes what the module takes, and runs compiled.
    """

    def __init__(self, model: torch.nn.Module, compiled_model_call: Callable):
        # `nn.Module.__init__` is left out: it would make a state that hides the original's.
        vars(self).update(_model=model, _compiled=compiled_model_call, _compiled_forward=None, _self_of_methods=None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._compiled(*args, **kwargs)
        except BaseException as e:
            self._compiled.hide_internal_frames(e)
            raise

    @property
    def forward(self) -> Callable:
        """The original's `forward`, compiled: unlike a call of the module, it runs no hooks."""
        if self._compiled_forward is None or self._compiled_forward.data.fn != self._model.forward:
            vars(self)["_compiled_forward"] = self._compiled.compiling(self._model.forward)
        return self._compiled_forward

    # ---- state: the original's ----

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True, *, persistent: bool | None = None
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """The buffers with their names; only the persistent ones (or the others) where `persistent` is given."""
        for name, buffer in self._model.named_buffers("", recurse, remove_duplicate):
            if persistent is None or self._is_persistent(name) == persistent:
                yield f"{prefix}.{name}" if prefix else name, buffer

    def _is_persistent(self, buffer: str) -> bool:
        owner, _, name = buffer.rpartition(".")
        return name not in self._model.get_submodule(owner)._non_persistent_buffers_set

    def original_state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """The state as the original module would give it. No transform changes parameters yet, so it is the same."""
        return self.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load the state into the original's parameters and buffers; with `assign`, make it them."""
        return self._model.load_state_dict(state_dict, strict=strict, assign=assign)

    def no_sync(self) -> AbstractContextManager[None]:
        """Without gradient synchronization in data parallel training, which is not built yet."""
        raise NotImplementedError("ThunderModule.no_sync needs thunder.distributed, which is not built yet")

    # ---- Python's protocols ----

    def __getattr__(self, name: str) -> Any:
        found = getattr(vars(self)["_model"], name)
        if isinstance(found, MethodType) and found.__self__ is self._model:
            if self._self_of_methods is None:
                vars(self)["_self_of_methods"] = _calling(self._model, self._compiled)
            return MethodType(found.__func__, self._self_of_methods)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._model, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._model, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *dir(self._model)})

    def __repr__(self) -> str:
        return f"ThunderModule({self._model!r})"

    def __bool__(self) -> bool:
        return bool(self._model)

    def __len__(self) -> int:
        return len(self._model)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._model)

    def __contains__(self, item: Any) -> bool:
        return item in self._model

    def __getitem__(self, key: Any) -> Any:
        return self._model[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._model[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._model[key]

    def __copy__(self) -> "ThunderModule":
        return self._of(copy.copy(self._model))

    def __deepcopy__(self, memo: dict[int, Any]) -> "ThunderModule":
        return self._of(copy.deepcopy(self._model, memo))

    def __reduce_ex__(self, protocol: int) -> Any:
        return self._compiled.__reduce_ex__(protocol)

    def _of(self, model: torch.nn.Module) -> "ThunderModule":
        return ThunderModule(model, self._compiled.compiling(model))


def _calling(model: torch.nn.Module, compiled: Callable) -> torch.nn.Module:
    """What is `model` to its own methods, has its very state, and runs `compiled` when it is called."""
    cls = type(model)
    attributes = {
        "__call__": lambda self, *args, **kwargs: compiled(*args, **kwargs),
        **{name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")},
    }
    stand_in = object.__new__(type(cls)(cls.__name__, (cls,), attributes))
    stand_in.__dict__ = model.__dict__
    return stand_in


def _methods_of_original() -> Iterator[tuple[str, Callable]]:
    """Methods for all that `nn.Module` has, each calling the original's, which its class may have overridden."""

    def method(name: str, of_module: Callable) -> Callable:
        @functools.wraps(of_module)
        def call(self: ThunderModule, *args: Any, **kwargs: Any) -> Any:
            result = getattr(self._model, name)(*args, **kwargs)
            return self if result is self._model else result

        return call

    for name, of_module in vars(torch.nn.Module).items():
        if inspect.isfunction(of_module) and not name.startswith("__") and name not in vars(ThunderModule):
            yield name, method(name, of_module)


for _name, _method in _methods_of_original():
    setattr(ThunderModule, _name, _method)
