import thunder
import thunder.torch as ltorch
import torch
from thunder.executors.torchex import no_autocast

@torch.no_grad()
@no_autocast
def computation(a, b):
  # a: "cpu i64[2, 2]"
  # b: "cpu i64[2, 2]"
  # first.py:7:     return a + b
  t0 = ltorch.add(a, b)  # t0: "cpu i64[2, 2]"
    # t0 = prims.add(a, b)  # t0: "cpu i64[2, 2]"
  return (t0, ())
