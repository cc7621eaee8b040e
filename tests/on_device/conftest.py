"""Tests that need a CUDA device: a real one, or `python -m thunder.virtual_cuda -m pytest tests/on_device`."""

import torch

if not torch.cuda.is_available():
    collect_ignore_glob = ["test_*.py"]
