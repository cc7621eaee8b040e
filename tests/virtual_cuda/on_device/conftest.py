"""The files here are run by ../test_on_device.py, in a process on the virtual device. Elsewhere they are not tests."""

import thunder.virtual_cuda

if not thunder.virtual_cuda.is_active():
    collect_ignore_glob = ["test_*.py"]
