"""A current CUDA device for a torch that was built without CUDA.

C++ code asks torch's device guard which CUDA device is current. A torch without CUDA has none, but it can install one
that does nothing (made for fake tensors). That one is installed and taught to remember each thread's current device.
"""

import ctypes
import threading
from pathlib import Path

import torch

from thunder.virtual_cuda.launcher import VirtualDeviceError

_CUDA = 1  # c10::DeviceType::CUDA
_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"  # c10::impl::device_guard_impl_registry
_BEFORE = 2  # words in front of a C++ virtual table: offset to top, type information
_LENGTH = 40  # more than the interface has methods
_TYPE, _EXCHANGE, _GET, _SET, _UNCHECKED_SET = range(5)  # its first methods, in order
_ANSWER_YES = (2, 3, 4, 5)  # of CUDA's hooks, after two destructors: isBuilt, isAvailable, hasPrimaryContext, init

_GetDevice = ctypes.CFUNCTYPE(ctypes.c_int16, ctypes.c_void_p)
_ExchangeDevice = ctypes.CFUNCTYPE(ctypes.c_int16, ctypes.c_void_p, ctypes.c_int16)
_SetDevice = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int16)

_current = threading.local()
_alive: list[object] = []  # what C++ points into


def current() -> int:
    """The current CUDA device of this thread."""
    return getattr(_current, "index", 0)


def exchange(index: int) -> int:
    """Make device `index` current in this thread, unless it is negative. Returns the one before."""
    before = current()
    if index >= 0:
        _current.index = index
    return before


def install() -> None:
    """Give this process's torch a CUDA device guard."""
    registry = _registry()
    if not registry[_CUDA]:
        # torch installs its idle guard only in place of one that counts no devices.
        nothing = _GetDevice(lambda _: 0)
        table = (ctypes.c_void_p * _LENGTH)(*[ctypes.cast(nothing, ctypes.c_void_p).value] * _LENGTH)
        placeholder = ctypes.c_void_p(ctypes.addressof(table))
        registry[_CUDA] = ctypes.addressof(placeholder)
        torch._C._ensureCUDADeviceGuardSet()
        if registry[_CUDA] == ctypes.addressof(placeholder):
            registry[_CUDA] = None
            raise VirtualDeviceError(
                f"torch {torch.__version__} has no idle CUDA device guard; use torch 2.10 to 2.13."
            )
    registry[_CUDA] = _remembering(registry[_CUDA])
    _become_accelerator()


def _registry() -> ctypes.Array:
    return (ctypes.c_void_p * 2).in_dll(_library("libc10"), _REGISTRY)


def _library(name: str) -> ctypes.CDLL:
    libraries = Path(torch.__file__).parent / "lib"
    path = next((path for path in (libraries / f"{name}.so", libraries / f"{name}.dylib") if path.exists()), None)
    if path is None:
        raise VirtualDeviceError(f"host tensors need a torch for Linux or macOS: {name} was not found beside torch.")
    return ctypes.CDLL(str(path))


def _remembering(idle: int) -> int:
    """The address of a guard like the idle one, with the four methods about the current device replaced."""
    methods = _methods(idle)
    kind, device = (_GetDevice(methods[_BEFORE + slot])(idle) for slot in (_TYPE, _GET))
    if kind & 0xFF != _CUDA or device & 0xFF != _CUDA:
        raise VirtualDeviceError(f"the device guard of torch {torch.__version__} is not laid out as expected.")
    replacements = {
        _EXCHANGE: _ExchangeDevice(lambda _, device: _packed(exchange(_index(device)))),
        _GET: _GetDevice(lambda _: _packed(current())),
        _SET: _SetDevice(lambda _, device: exchange(_index(device)) and None),
        _UNCHECKED_SET: _SetDevice(lambda _, device: exchange(_index(device)) and None),
    }
    for slot, function in replacements.items():
        methods[_BEFORE + slot] = ctypes.cast(function, ctypes.c_void_p).value
    guard = ctypes.c_void_p(_first(methods))
    _alive.extend([methods, guard, *replacements.values()])
    return ctypes.addressof(guard)


def _become_accelerator() -> None:
    """Make torch take CUDA for this machine's accelerator, which the autograd engine needs to run CUDA tensors' nodes.

    torch asks its CUDA hooks. Their first methods say whether CUDA is built, available and initialized; a later one is
    hasCUDA, whose place differs between versions, so it is found by what answering "yes" does.
    """
    get_hooks = _library("libtorch_cpu")._ZN2at6detail12getCUDAHooksEv
    get_hooks.restype = ctypes.c_void_p
    hooks = ctypes.c_void_p.from_address(get_hooks())
    original, yes = hooks.value, ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(lambda _: True)
    for has_cuda in range(max(_ANSWER_YES) + 1, _LENGTH):
        methods = _methods(ctypes.addressof(hooks))
        for slot in (*_ANSWER_YES, has_cuda):
            methods[_BEFORE + slot] = ctypes.cast(yes, ctypes.c_void_p).value
        hooks.value = _first(methods)
        accelerator = torch._C._accelerator_getAccelerator()
        if accelerator is not None and accelerator.type == "cuda":
            _alive.extend([methods, yes])
            return
        hooks.value = original
    raise VirtualDeviceError(f"torch {torch.__version__} does not let CUDA be its accelerator; use torch 2.10 to 2.13.")


def _methods(instance: int) -> ctypes.Array:
    """A copy of the virtual table of the C++ object at that address, with the words in front of it."""
    word = ctypes.sizeof(ctypes.c_void_p)
    start = ctypes.c_void_p.from_address(instance).value - _BEFORE * word
    count = _BEFORE + _LENGTH
    return (ctypes.c_void_p * count).from_buffer_copy(ctypes.string_at(start, count * word))


def _first(methods: ctypes.Array) -> int:
    """The address of the first method in such a copy, which is what an object points to."""
    return ctypes.addressof(methods) + _BEFORE * ctypes.sizeof(ctypes.c_void_p)


def _packed(index: int) -> int:
    """A c10::Device as the two bytes C++ passes it in: type, index."""
    return ctypes.c_int16(_CUDA | (index & 0xFF) << 8).value


def _index(device: int) -> int:
    return ctypes.c_int8(device >> 8).value
