import torch
from thunder.executors.torchex import no_autocast

@torch.no_grad()
@no_autocast
def computation(a, b):
  # a: "cuda:0 f32[2, 2]"
  # b: "cuda:0 f32[2, 2]"
  # quickstart.py:5:     c = a + b
  [c, f] = nvFusion0(a, b)
    # quickstart.py:5:     c = a + b
    # c = prims.add(a, b)  # c: "cuda:0 f32[2, 2]"
    # quickstart.py:8:     f = d * b
    # f = prims.mul(c, b)  # f: "cuda:0 f32[2, 2]"
  del a, b
  return ((c, f), ())
