"""Operations on virtual CUDA tensors, computed on the host.

Device memory is host memory, so every virtual CUDA tensor has a CPU tensor over the same bytes. For each of ATen's
operations a kernel is registered under the dispatcher's CUDA key that runs the operation on those CPU tensors. That is
where a real CUDA kernel sits: below autograd, autocast and every mode, in whatever thread. So views, backward passes,
optimizers, printing and pickling are torch's own and need nothing here.
"""

import warnings
from collections.abc import Callable

import torch

from thunder.virtual_cuda import cuda_operations, device_strides, generators
from thunder.virtual_cuda.host_memory import host_alias, span

# What a CUDA build of torch does by itself on the virtual driver: allocation and metadata.
ALLOCATION = frozenset({"empty.memory_format", "empty_strided", "resize_", "record_stream"})
METADATA = frozenset(
    {"view", "as_strided", "_reshape_alias", "unfold", "view_as_real", "view_as_complex", "set_", "set_.source_Storage",
     "set_.source_Storage_storage_offset", "set_.source_Tensor", "is_set_to", "is_pinned", "_pin_memory"}
)  # fmt: skip
# Composites whose C++ bodies reach for a device's own code instead of other operations.
_COMPOSITE = frozenset({"copy_", "convolution", "convolution_backward", "convolution_overrideable"})
# Operations that take tensors of several devices: copies, and indices or lengths that may stay on the host.
_MIXES_DEVICES = frozenset(
    {"copy_", "_foreach_copy_", "index.Tensor", "index.Tensor_out", "_unsafe_index.Tensor", "index_put_",
     "_index_put_impl_", "_unsafe_index_put", "_cudnn_rnn", "_ctc_loss",
     "_ctc_loss.Tensor", "_use_cudnn_ctc_loss", "_use_cudnn_ctc_loss.Tensor", "_use_miopen_ctc_loss",
     "_use_miopen_ctc_loss.Tensor", "_fused_adam_.tensor_lr",
     "_fused_adamw_.tensor_lr", "_fused_sgd_.tensor_lr", "_fused_adagrad_.tensor_lr"}
)  # fmt: skip

_library: torch.library.Library | None = None
_make_output: Callable[[torch.Tensor, torch.device], torch.Tensor]


def register(make_output: Callable[[torch.Tensor, torch.device], torch.Tensor]) -> torch.library.Library:
    """Put a host kernel under the CUDA key of every ATen operation; `make_output` makes a host result a CUDA tensor."""
    global _library, _make_output
    _make_output = make_output
    _library = torch.library.Library("aten", "IMPL")
    names = {
        name.removeprefix("aten::")
        for key in ("CPU", "CUDA")
        for name in torch._C._dispatch_get_registrations_for_dispatch_key(key)
        if name.startswith("aten::")
    }
    # With cuDNN torch takes routes of its own for recurrent and normalizing layers; without, ATen's operations.
    torch.backends.cudnn.enabled = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that its CUDA kernels are overridden: that is the point
        names |= {name for name in cuda_operations.IMPLEMENTATIONS if _exists(name)}
        for name in sorted((names | _COMPOSITE) - ALLOCATION - METADATA):
            target = operator(name)
            implement = cuda_operations.IMPLEMENTATIONS.get(name, target)
            _library.impl(name, HostKernel(target, implement), "CUDA", allow_override=True)
    return _library


def _exists(name: str) -> bool:
    return torch._C._dispatch_has_kernel(f"aten::{name}")


def operator(name: str) -> torch._ops.OpOverload:
    """ATen's operation of that name: `add.Tensor`."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


class HostKernel:
    """The CUDA kernel of one operation: runs `implement` on host tensors and puts results on the device."""

    def __init__(self, operator, implement: Callable):
        self.operator, self.implement = operator, implement
        self.name = operator.name().removeprefix("aten::")
        arguments = operator._schema.arguments
        self.argument_names = [argument.name for argument in arguments]
        self.outs = frozenset(argument.name for argument in arguments if argument.is_out)
        self.tensor_positions = [i for i, arg in enumerate(arguments) if str(arg.type) == "Tensor"]
        self.takes_device = "device" in self.argument_names
        self.takes_generator = "generator" in self.argument_names
        self.random = self.takes_generator or torch.Tag.nondeterministic_seeded in operator.tags

    def __call__(self, *args, **kwargs):
        with torch._C._AutoDispatchBelowAutograd(), torch._C.DisableTorchFunction(), _without_host_autocast():
            call = _Call(self)
            host_args = [call.to_host(arg, self.argument_names[i]) for i, arg in enumerate(args)]
            host_kwargs = {name: call.to_host(arg, name) for name, arg in kwargs.items()}
            device = call.device(host_kwargs) if self.takes_device else call.devices[0]
            if len(call.devices) > 1 and self.name not in _MIXES_DEVICES:
                raise RuntimeError(_mixed_devices(self, call))
            result = self._run(host_args, host_kwargs, device)
            if self.name in device_strides.DIFFER:
                result = device_strides.restride(self.operator, args, kwargs, result)
            return call.to_device(result, device)

    def _run(self, args: list, kwargs: dict, device: torch.device):
        implement = self.implement
        if any(type(args[i]) in (int, float, bool, complex) for i in self.tensor_positions if i < len(args)):
            implement = self.operator.overloadpacket  # torch passes a number for a tensor: the overload for numbers
        try:
            if not self.random:
                return implement(*args, **kwargs)
            with generators.on_host(device, kwargs if self.takes_generator else None):
                return implement(*args, **kwargs)
        except NotImplementedError as error:
            raise NotImplementedError(f"{self.operator} is not available on the virtual CUDA device: {error}") from None


class _Call:
    """One call: which host tensor stands for which CUDA tensor, and where results go."""

    def __init__(self, kernel: HostKernel):
        self.kernel = kernel
        self.originals: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.devices: list[torch.device] = []
        self.tensors: list[tuple[str, torch.Tensor]] = []

    def to_host(self, value, name: str):
        if isinstance(value, torch.Tensor):
            return self._tensor_to_host(value, name)
        if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
            return [self.to_host(item, name) for item in value]
        return value

    def _tensor_to_host(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        device = tensor.device
        if device not in self.devices and (device.type == "cuda" or tensor.dim()):
            if device.type == "cuda" and self.devices and self.devices[0].type != "cuda":
                self.devices.insert(0, device)
            else:
                self.devices.append(device)
        self.tensors.append((name, tensor))
        if device.type != "cuda":
            return tensor
        # An out= argument may have to grow, which memory of our own can and an alias cannot.
        fresh = name in self.kernel.outs
        host = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype) if fresh else host_alias(tensor)
        self.originals[id(host)] = (host, tensor)
        return host

    def device(self, kwargs: dict) -> torch.device:
        """Where an operation that says so puts its result; takes it out of what the host sees."""
        asked = kwargs.get("device")
        kwargs["device"] = torch.device("cpu")
        kwargs.pop("pin_memory", None)
        if asked is None:
            return self.devices[0]
        return asked if asked.type != "cuda" or asked.index is not None else torch.device("cuda", current_device())

    def to_device(self, result, device: torch.device):
        if isinstance(result, torch.Tensor):
            return self._tensor_to_device(result, device)
        if isinstance(result, (list, tuple)):
            return type(result)(self.to_device(item, device) for item in result)
        return result

    def _tensor_to_device(self, host: torch.Tensor, device: torch.device) -> torch.Tensor:
        if id(host) in self.originals:
            original = self.originals[id(host)][1]
            if self.kernel.outs:
                _write_out(host, original)
            return original
        if device.type != "cuda":
            return host
        if host.layout != torch.strided:
            raise NotImplementedError(f"{self.kernel.name}: the virtual CUDA device has no {host.layout} tensors")
        return _make_output(_materialized(host), device)


def _materialized(host: torch.Tensor) -> torch.Tensor:
    """The tensor with its values in memory, where torch put that off: conjugates, negatives, zeros without storage."""
    if host._is_zerotensor():
        return torch.zeros(host.shape, dtype=host.dtype)
    return host.resolve_conj().resolve_neg() if host.is_conj() or host.is_neg() else host


def _write_out(host: torch.Tensor, original: torch.Tensor) -> None:
    if original.shape != host.shape or original.stride() != host.stride():
        original.resize_(span(host))
        original.as_strided_(host.shape, host.stride())
    host_alias(original).copy_(host)


def _mixed_devices(kernel: HostKernel, call: _Call) -> str:
    """The message torch gives: kernels over elements name the devices, the others the argument."""
    first, second = call.devices[:2]
    if torch.Tag.pointwise in kernel.operator.tags:
        return f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!"
    argument = next(name for name, tensor in call.tensors if tensor.device == second)
    return (
        f"Expected all tensors to be on the same device, but got {argument} is on {second}, different from other "
        f"tensors on {first} (when checking argument in method wrapper_CUDA_{kernel.name.partition('.')[0]})"
    )


_AUTOCAST_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)


def _without_host_autocast():
    """autocast("cpu") around the caller must not change what stands for a CUDA kernel."""
    return torch._C._ExcludeDispatchKeyGuard(_AUTOCAST_CPU)


def current_device() -> int:
    """The current CUDA device of this thread."""
    return torch.cuda.current_device()


def from_host(tensor: torch.Tensor, device: torch.device | str | int) -> torch.Tensor:
    """A virtual CUDA tensor with the values, shape and strides of a CPU tensor."""
    device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    if device.index is None:
        device = torch.device("cuda", current_device())
    return _make_output(tensor.detach(), device)
