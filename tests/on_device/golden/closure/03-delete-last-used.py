import torch
from thunder.executors.torchex import no_autocast

@torch.no_grad()
@no_autocast
def computation(x, weight, shift):
  # x: "cuda:0 f32[2, 8]"
  # weight: "cuda:0 f32[8]"
  # shift: "cuda:0 f32[8]"
  # closure.py:10:         y = x * weight
  [y, t3] = nvFusion0(weight, x, shift)
    # closure.py:10:         y = x * weight
    # t0 = prims.broadcast_in_dim(weight, (2, 8), (1,))  # t0: "cuda:0 f32[2, 8]"
    # y = prims.mul(x, t0)  # y: "cuda:0 f32[2, 8]"
    # closure.py:11:         z = torch.tanh(y + shift)
    # t2 = prims.broadcast_in_dim(shift, (2, 8), (1,))  # t2: "cuda:0 f32[2, 8]"
    # t1 = prims.add(y, t2)  # t1: "cuda:0 f32[2, 8]"
    # z = prims.tanh(t1)  # z: "cuda:0 f32[2, 8]"
    # closure.py:12:         return {"scaled": y, "squashed": z * factor}
    # t3 = prims.mul(z, 3.0)  # t3: "cuda:0 f32[2, 8]"
  del weight, x, shift
  return ({'scaled': y, 'squashed': t3}, ())
