"""Starting a process on the virtual device: the environment, the driver's cache, exit codes and errors."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from thunder.virtual_cuda import VirtualDeviceError, environment, launcher

BUILT_WITH_CUDA = launcher._built_with_cuda(Path(find_spec("torch").origin).parent)
needs_driver = pytest.mark.skipif(not BUILT_WITH_CUDA, reason="this torch was built without CUDA: nothing is built")


def test_the_environment_names_the_chip_and_only_then_the_driver():
    variables = environment("a100", devices=2)
    assert (variables["THUNDER_VIRTUAL_CUDA"], variables["THUNDER_VIRTUAL_CUDA_DEVICES"]) == ("a100", "2")
    assert ("LD_PRELOAD" in variables) == ("THUNDER_VIRTUAL_CUDA_LIBRARY" in variables) == BUILT_WITH_CUDA


def test_the_program_sees_its_arguments_its_name_and_its_directory(virtual, tmp_path):
    (tmp_path / "beside.py").write_text("value = 3")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside, torch\n"
        "assert __name__ == '__main__' and sys.argv == [__file__, '--chip', 'x'] and beside.value == 3\n"
        "print(torch.cuda.get_device_name(), torch.ones(2, device='cuda').sum().item())\n"
        "sys.exit(7)\n"
    )
    done = virtual("--chip", "l4", str(script), "--chip", "x")
    assert done.returncode == 7 and done.stdout == "NVIDIA L4 (virtual) 2.0\n", done.stderr


def test_code_and_modules_run_too_and_failures_come_through(virtual):
    done = virtual("-c", "import sys; print(sys.argv); raise KeyError('gone')", "one")
    assert done.returncode == 1 and done.stdout == "['-c', 'one']\n" and "KeyError: 'gone'" in done.stderr
    assert "Zen of Python" in virtual("-m", "this").stdout


def test_usage_errors_are_short_and_start_nothing(virtual):
    unknown = virtual("--chip", "h10", "script.py")
    assert unknown.returncode == 2 and "Did you mean h100?" in unknown.stderr and "Traceback" not in unknown.stderr
    assert virtual("--chip", "h100").returncode == 2


@pytest.mark.parametrize("devices", [0, 17])
def test_too_few_or_too_many_devices_are_refused(devices):
    with pytest.raises(VirtualDeviceError, match="a virtual machine has 1 to 16"):
        environment("h100", devices)


def test_activating_outside_says_how_to_start():
    from thunder import virtual_cuda

    with pytest.raises(VirtualDeviceError, match=r"python -m thunder\.virtual_cuda"):
        virtual_cuda.activate()
    assert virtual_cuda.chip() is None and virtual_cuda.kind() is None and not virtual_cuda.is_active()


@needs_driver
def test_the_driver_is_built_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = Path(environment("h100")["THUNDER_VIRTUAL_CUDA_LIBRARY"])
    built = first.stat().st_mtime_ns
    second = Path(environment("a100")["THUNDER_VIRTUAL_CUDA_LIBRARY"])
    assert second == first and first.is_relative_to(tmp_path) and first.stat().st_mtime_ns == built
    assert [path.name for path in first.parent.iterdir()] == ["libcuda.so.1"]


@needs_driver
def test_a_cache_path_with_a_space_works(virtual, tmp_path):
    done = virtual("-c", "import torch; print(torch.cuda.device_count())", XDG_CACHE_HOME=str(tmp_path / "a cache"))
    assert done.stdout == "1\n", done.stderr


@needs_driver
def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_one(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr(launcher.tempfile, "gettempdir", lambda: str(tmp_path))
    assert Path(environment("h100")["THUNDER_VIRTUAL_CUDA_LIBRARY"]).parents[1].name.startswith("thunder-virtual-cuda")


@needs_driver
def test_without_compiler_or_headers_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(VirtualDeviceError, match="Install gcc or clang"):
        environment("h100")
    monkeypatch.setattr(launcher, "_torch_directory", lambda python: tmp_path / "torch")
    monkeypatch.setattr(launcher, "_built_with_cuda", lambda torch: True)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(VirtualDeviceError, match="Install nvidia-cuda-runtime-cu12"):
        environment("h100")


@needs_driver
@pytest.mark.parametrize("system", [("darwin", "arm64"), ("linux", "aarch64")])
def test_other_systems_are_told_what_works_there(system, monkeypatch):
    monkeypatch.setattr(sys, "platform", system[0])
    monkeypatch.setattr(launcher.platform, "machine", lambda: system[1])
    with pytest.raises(VirtualDeviceError, match="Linux x86-64 only"):
        launcher.build_driver(Path("/"))
