"""Virtual CUDA tensors on a torch that was built without CUDA.

They are plain `torch.Tensor`s of device type CUDA whose bytes are a host tensor's. This file gives that torch what its
CUDA build has beside the kernels: allocation, views, and the answers of `torch.cuda`.
"""

import itertools
import time
from collections import defaultdict
from types import SimpleNamespace

import torch

from thunder.virtual_cuda import device_guard, generators, host_execution
from thunder.virtual_cuda.chips import Chip
from thunder.virtual_cuda.host_memory import device_alias, host_alias

_CPU_KERNELS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_CUDA = 1  # c10::DeviceType::CUDA
_libraries: list[torch.library.Library] = []


def activate(chip: Chip, devices: int) -> None:
    """Make `device="cuda"` work in this process, as `devices` devices of that chip."""
    device_guard.install()
    _answer_for(chip, devices)
    library = host_execution.register(lambda host, device: device_alias(host, device.index))
    library.impl("empty.memory_format", _empty, "CUDA")
    library.impl("empty_strided", _empty_strided, "CUDA")
    library.impl("resize_", _resize, "CUDA")
    library.impl("record_stream", lambda tensor, stream: None, "CUDA")
    for name in sorted(host_execution.METADATA - {"is_pinned", "_pin_memory"}):
        library.impl(name, _metadata_kernel(name), "CUDA")
    for_host = torch.library.Library("aten", "IMPL")
    for_host.impl("_pin_memory", lambda tensor, device=None: tensor.clone(), "CPU")
    _libraries.append(for_host)


def _metadata_kernel(name: str):
    """A view or a change of storage touches no bytes: the CPU's kernel does it for any device."""
    operator = host_execution.operator(name)
    return lambda *args, **kwargs: operator.redispatch(_CPU_KERNELS, *args, **kwargs)


# ---- allocation ----


def _on(device: torch.device | None) -> int:
    return device.index if device is not None and device.index is not None else device_guard.current()


def _empty(size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None) -> torch.Tensor:
    with torch._C.DisableTorchFunction():
        kwargs = {} if memory_format is None else {"memory_format": memory_format}
        return device_alias(torch.empty(size, dtype=dtype, device="cpu", **kwargs), _on(device))


def _empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None) -> torch.Tensor:
    with torch._C.DisableTorchFunction():
        return device_alias(torch.empty_strided(size, stride, dtype=dtype, device="cpu"), _on(device))


def _resize(tensor: torch.Tensor, size, *, memory_format=None) -> torch.Tensor:
    kwargs = {} if memory_format in (None, torch.preserve_format) else {"memory_format": memory_format}
    stride = torch.empty(size, device="meta", **kwargs).stride()
    span = 1 + sum((n - 1) * step for n, step in zip(size, stride)) if 0 not in size else 0
    storage, needed = tensor.untyped_storage(), (tensor.storage_offset() + span) * tensor.element_size()
    if needed > storage.nbytes():
        grown = torch.empty(needed, dtype=torch.uint8, device=tensor.device)
        old = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        host_alias(grown)[: storage.nbytes()] = host_alias(old)
        storage = grown.untyped_storage()
    return tensor.set_(storage, tensor.storage_offset(), size, stride)


class _Storage:
    """`torch.UntypedStorage(size, device="cuda")`, which copying and loading call."""

    construct = staticmethod(torch.UntypedStorage.__new__)

    def __new__(cls, *args, device=None, **kwargs):
        if device is None or torch.device(device).type != "cuda":
            return _Storage.construct(cls, *args, **kwargs) if device is None else _Storage.construct(
                cls, *args, device=device, **kwargs
            )  # fmt: skip
        size = args[0] if args else 0
        return torch.empty(size, dtype=torch.uint8, device=device).untyped_storage()


# ---- torch.cuda ----


class Stream(torch.Stream):
    """A stream of a virtual device. All work is done when it is asked for, so streams only compare."""

    _ids = itertools.count()

    def __new__(cls, device=None, priority: int = 0, **kwargs):
        index = torch.cuda._utils._get_device_index(device, True)
        self = super().__new__(cls, stream_id=next(cls._ids), device_index=index, device_type=_CUDA)
        self.priority = priority
        return self

    @property
    def cuda_stream(self) -> int:
        """What stands for the driver's handle."""
        return self.stream_id

    def synchronize(self) -> None:
        """Nothing is outstanding."""

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True

    def wait_event(self, event: "Event") -> None:
        """Nothing is outstanding."""

    def wait_stream(self, stream: "Stream") -> None:
        """Nothing is outstanding."""

    def record_event(self, event: "Event | None" = None) -> "Event":
        """Record an event, a new one if none is given."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> "Stream":
        self._context = torch.cuda.stream(self)
        self._context.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._context.__exit__(*error)


class Event:
    """An event of a virtual device: the time of the host when it was recorded."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **kwargs):
        self.recorded = 0.0

    def record(self, stream: Stream | None = None) -> None:
        """Take the time."""
        self.recorded = time.perf_counter()

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds of the host between two records."""
        return (end.recorded - self.recorded) * 1e3

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing is outstanding."""

    def query(self) -> bool:
        """Whether the event has happened: always."""
        return True

    def synchronize(self) -> None:
        """Nothing is outstanding."""


class _GeneratorType(type(torch.Generator)):
    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, _HOST_GENERATOR)


_HOST_GENERATOR = torch.Generator


class Generator(_HOST_GENERATOR, metaclass=_GeneratorType):
    """`torch.Generator` that can also be a CUDA device's: a host generator that says where it belongs."""

    def __new__(cls, device="cpu"):
        self = super().__new__(cls, "cpu" if torch.device(device).type == "cuda" else device)
        self.home = torch.device("cuda", _on(torch.device(device))) if torch.device(device).type == "cuda" else None
        return self

    @property
    def device(self) -> torch.device:
        """The device whose random numbers it makes."""
        return self.home or super().device


def _answer_for(chip: Chip, devices: int) -> None:
    """Fill in what torch.cuda asks of its C++ half, and replace what that half is itself."""
    cuda = torch.cuda
    answers = {
        "_cuda_getDeviceCount": lambda: devices,
        "_cuda_getDevice": device_guard.current,
        "_cuda_setDevice": device_guard.exchange,
        "_cuda_exchangeDevice": device_guard.exchange,
        "_cuda_maybeExchangeDevice": device_guard.exchange,
        "_cuda_getCurrentRawStream": lambda device: 0,
        "_cuda_canDeviceAccessPeer": lambda device, peer: device != peer,
        "_cuda_synchronize": lambda: None,
        "_cuda_emptyCache": lambda: None,
        "_cuda_ipc_collect": lambda: None,
        "_cuda_resetPeakMemoryStats": lambda device: None,
        "_cuda_resetAccumulatedMemoryStats": lambda device: None,
        "_cuda_isInBadFork": lambda: False,
        "_cuda_getArchFlags": lambda: chip.architecture,
        "_cuda_getCompiledVersion": lambda: 12080,
        "_cuda_set_sync_debug_mode": lambda mode: None,
        "_cuda_get_sync_debug_mode": lambda: 0,
        "_cuda_isCurrentStreamCapturing": lambda: False,
    }
    for name, answer in answers.items():
        setattr(torch._C, name, answer)
    properties = _properties(chip)
    cuda._get_device_properties = lambda index: properties
    cuda._exchange_device = cuda._maybe_exchange_device = device_guard.exchange
    cuda._initialized, cuda._cached_device_count = True, devices
    # The memory of host tensors is the host's: none of the device's is in use.
    cuda.memory_stats = cuda.memory.memory_stats = lambda device=None: defaultdict(int, num_ooms=0, num_alloc_retries=0)
    cuda.mem_get_info = cuda.memory.mem_get_info = lambda device=None: (chip.memory, chip.memory)
    cuda.Stream = cuda.streams.Stream = Stream
    cuda.Event = cuda.streams.Event = Event
    _answer_streams()
    torch.Generator = Generator
    generators.to_host = lambda generator: generator
    cuda.default_generators = tuple(Generator(f"cuda:{index}") for index in range(devices))
    for generator in cuda.default_generators:
        generator.manual_seed(torch.initial_seed())
    torch.UntypedStorage.__new__ = _Storage.__new__


def _answer_streams() -> None:
    current: dict[int, Stream] = {}
    index = torch.cuda._utils._get_device_index
    default = {i: Stream(i) for i in range(torch.cuda.device_count())}
    torch.cuda.default_stream = lambda device=None: default[index(device, True)]
    torch.cuda.current_stream = lambda device=None: current.get(index(device, True), default[index(device, True)])

    def set_stream(stream: Stream | None) -> None:
        if stream is not None:
            device_guard.exchange(stream.device.index)
            current[stream.device.index] = stream

    torch.cuda.set_stream = set_stream


def _properties(chip: Chip) -> SimpleNamespace:
    """What a CUDA build's `torch.cuda.get_device_properties` has, under the same names."""
    return SimpleNamespace(
        name=f"{chip.name} (virtual)",
        major=chip.compute_capability[0],
        minor=chip.compute_capability[1],
        total_memory=chip.memory,
        multi_processor_count=chip.multiprocessors,
        is_integrated=0,
        is_multi_gpu_board=0,
        max_threads_per_multi_processor=chip.threads_per_multiprocessor,
        max_threads_per_block=chip.threads_per_block,
        warp_size=chip.warp_size,
        regs_per_multiprocessor=chip.registers_per_multiprocessor,
        shared_memory_per_block=chip.shared_memory_per_block,
        shared_memory_per_block_optin=chip.shared_memory_per_block_optin,
        shared_memory_per_multiprocessor=chip.shared_memory_per_multiprocessor,
        L2_cache_size=chip.l2_cache,
        memory_bus_width=chip.memory_bus_width,
        memory_clock_rate=chip.memory_clock,
        clock_rate=chip.clock,
        gcnArchName="",
    )
