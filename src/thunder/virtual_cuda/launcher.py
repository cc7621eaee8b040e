"""Starting a Python process on a virtual CUDA device: builds the driver and gives the child's environment.

Imports no torch. What kind of device a process gets depends on the torch that is installed: one built with CUDA runs on
the driver, one built without gets host tensors and needs nothing built.
"""

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from thunder.virtual_cuda.chips import Chip, find_chip

CHIP_VARIABLE = "THUNDER_VIRTUAL_CUDA"
DEVICES_VARIABLE = "THUNDER_VIRTUAL_CUDA_DEVICES"
LIBRARY_VARIABLE = "THUNDER_VIRTUAL_CUDA_LIBRARY"
MAX_DEVICES = 16

_SOURCE = Path(__file__).with_name("driver.c")
_ANNOTATIONS = Path(__file__).with_name("include") / "host_defines.h"


class VirtualDeviceError(RuntimeError):
    """The virtual device cannot be started here; the message says why and what to do."""


def environment(chip: str, devices: int = 1, python: str = sys.executable) -> dict[str, str]:
    """The environment a child process of `python` must start with to have `devices` virtual devices of that chip."""
    found = find_chip(chip)
    if not 1 <= devices <= MAX_DEVICES:
        raise VirtualDeviceError(f"{devices} devices were asked for; a virtual machine has 1 to {MAX_DEVICES}.")
    variables = dict(os.environ)
    for name in [name for name in variables if name.startswith(CHIP_VARIABLE)]:
        del variables[name]
    variables |= {CHIP_VARIABLE: chip, DEVICES_VARIABLE: str(devices)}
    if preload := _without_driver(variables.pop("LD_PRELOAD", "")):
        variables["LD_PRELOAD"] = preload
    torch = _torch_directory(python)
    if not _built_with_cuda(torch):
        return variables
    library = build_driver(_headers(torch))
    # A path with a space is two paths to LD_PRELOAD; the name alone is found through LD_LIBRARY_PATH.
    preloaded = library.name if re.search(r"[\s:]", str(library)) else str(library)
    return variables | {
        LIBRARY_VARIABLE: str(library),
        "THUNDER_VIRTUAL_CUDA_NAME": found.name,
        "THUNDER_VIRTUAL_CUDA_FIGURES": _figures(found, devices),
        "LD_PRELOAD": _prepend(preloaded, preload),
        "LD_LIBRARY_PATH": _prepend(str(library.parent), variables.get("LD_LIBRARY_PATH", "")),
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(devices))),
    }


def _prepend(first: str, rest: str) -> str:
    return ":".join(filter(None, [first, *(part for part in rest.split(":") if part != first)]))


def _without_driver(preload: str) -> str:
    return ":".join(part for part in preload.split(":") if Path(part).name != "libcuda.so.1")


def _figures(chip: Chip, devices: int) -> str:
    """The chip as the driver reads it: space-separated key=value pairs of integers."""
    figures = {key: value for key, value in asdict(chip).items() if isinstance(value, int)}
    figures["major"], figures["minor"] = chip.compute_capability
    return " ".join(f"{key}={value}" for key, value in {**figures, "devices": devices}.items())


def _torch_directory(python: str) -> Path:
    """Where the torch of that interpreter lives, found without importing it."""
    if os.path.realpath(python) == os.path.realpath(sys.executable) and python == sys.executable:
        spec = importlib.util.find_spec("torch")
        origin = spec.origin if spec else ""
    else:
        program = "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s else '')"
        origin = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    if not origin:
        raise VirtualDeviceError(f"{python} has no torch. Install torch for it, or choose another interpreter.")
    return Path(origin).parent


def _built_with_cuda(torch: Path) -> bool:
    return re.search(r"^cuda\b[^=]*= *'", (torch / "version.py").read_text(), re.MULTILINE) is not None


def _headers(torch: Path) -> Path:
    """The CUDA headers of the runtime that torch's wheel depends on, else of an installed toolkit."""
    nvidia = torch.parent / "nvidia"
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    for directory in (nvidia / "cuda_runtime" / "include", *sorted(nvidia.glob("cu1*/include")), toolkit / "include"):
        if (directory / "cuda.h").exists() and (directory / "cuda_runtime_api.h").exists():
            return directory
    raise VirtualDeviceError(
        "the virtual device needs CUDA's headers (cuda.h, cuda_runtime_api.h) and found none beside torch. "
        "Install nvidia-cuda-runtime-cu12 for this torch, or set CUDA_HOME to a CUDA toolkit."
    )


def build_driver(headers: Path) -> Path:
    """Build the driver against these headers, once: later calls find it in the cache. Returns the library's path."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise VirtualDeviceError(
            f"the virtual device of a CUDA torch runs on Linux x86-64 only, and this is {sys.platform} "
            f"{platform.machine()}. A torch without CUDA has a virtual device everywhere."
        )
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise VirtualDeviceError("the virtual device needs a C compiler and found none. Install gcc or clang as `cc`.")
    key = _cache_key(compiler, headers)
    errors = []
    for root in _cache_roots():
        library = root / key / "libcuda.so.1"
        if library.exists() and _is_ours(library) and _is_ours(library.parent):
            return library
        try:
            return _compile(compiler, headers, library)
        except OSError as error:
            errors.append(f"{library.parent}: {error}")
    raise VirtualDeviceError("no directory could be written for the virtual device's driver: " + "; ".join(errors))


def _cache_key(compiler: str, headers: Path) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    contents = [_SOURCE, _ANNOTATIONS, Path(__file__), headers / "cuda.h", headers / "cuda_runtime_api.h"]
    digest = hashlib.sha256(version + str(headers).encode())
    for path in contents:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_roots() -> list[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [cache / "thunder" / "virtual_cuda", Path(tempfile.gettempdir()) / f"thunder-virtual-cuda-{os.getuid()}"]


def _is_ours(path: Path) -> bool:
    """Whether this user made it: nobody else's library is to be loaded."""
    return path.stat().st_uid == os.getuid()


def _compile(compiler: str, headers: Path, library: Path) -> Path:
    """Compile into a directory of our own and rename it into place, so that no one ever sees half a library."""
    library.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _is_ours(library.parent):
        raise PermissionError("belongs to another user")
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        refused, output, crt = (Path(scratch) / name for name in ("refused.c", library.name, "crt"))
        refused.write_text(_refusals(headers))
        crt.mkdir()
        shutil.copy(_ANNOTATIONS, crt)  # NVIDIA's headers include it as crt/host_defines.h
        command = [compiler, "-shared", "-fPIC", "-O1", f"-I{scratch}", f"-I{headers}", str(_SOURCE), str(refused)]
        command += ["-o", str(output), f"-Wl,-soname,{library.name}", "-ldl", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            if "No space left" in done.stderr:
                raise OSError(done.stderr.strip())
            raise VirtualDeviceError(
                f"{compiler} could not build the virtual device's driver with the headers in {headers}:\n{done.stderr}"
            )
        os.replace(output, library)
    return library


def _refusals(headers: Path) -> str:
    """A C file that refuses, by name, every call the headers declare; those that driver.c answers take precedence."""
    names = set()
    for header in ("cuda.h", "cuda_runtime_api.h"):
        text = (headers / header).read_text(errors="replace")
        names.update(re.findall(r"\b(?:CUDAAPI|CUDARTAPI)\s+(cu\w+)\s*\(", text))
        names.update(re.findall(r"^\s*#\s*define\s+cu\w+\s+(cu\w+_v\d+)\s*$", text, re.MULTILINE))
    lines = ["int thunder_virtual_cuda_refuse(const char *), thunder_virtual_cuda_refuse_driver(const char *);"]
    for name in sorted(names):
        refuse = "thunder_virtual_cuda_refuse" + ("" if name.startswith("cuda") else "_driver")
        lines.append(f'__attribute__((weak)) int {name}(void) {{ return {refuse}("{name}"); }}')
    return "\n".join(lines) + "\n"
