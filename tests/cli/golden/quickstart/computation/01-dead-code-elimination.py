import thunder
import thunder.torch as ltorch
import torch
from thunder.executors.torchex import no_autocast

@torch.no_grad()
@no_autocast
def computation(a, b):
  # a: "cuda:0 f32[2, 2]"
  # b: "cuda:0 f32[2, 2]"
  # quickstart.py:5:     c = a + b
  c = ltorch.add(a, b)  # c: "cuda:0 f32[2, 2]"
    # c = prims.add(a, b)  # c: "cuda:0 f32[2, 2]"
  # quickstart.py:6:     d = a + b
  d = ltorch.add(a, b)  # d: "cuda:0 f32[2, 2]"
    # d = prims.add(a, b)  # d: "cuda:0 f32[2, 2]"
  # quickstart.py:8:     f = d * b
  f = ltorch.mul(d, b)  # f: "cuda:0 f32[2, 2]"
    # f = prims.mul(d, b)  # f: "cuda:0 f32[2, 2]"
  return ((c, f), ())
