import torch
from thunder.executors.torchex import no_autocast

@torch.no_grad()
@no_autocast
def computation(x, t_norm_weight, t_norm_bias, t_up_weight, t_up_bias, t_down_weight, t_down_bias):
  # x: "cuda:0 f32[4, 32]"
  # t_norm_weight: "cuda:0 f32[32]"
  # t_norm_bias: "cuda:0 f32[32]"
  # t_up_weight: "cuda:0 f32[64, 32]"
  # t_up_bias: "cuda:0 f32[64]"
  # t_down_weight: "cuda:0 f32[32, 64]"
  # t_down_bias: "cuda:0 f32[32]"
  # mlp.py:16:         h = self.up(self.norm(x))
  [t0] = nvFusion0(x, t_norm_weight, t_norm_bias)  # t0: "cuda:0 f32[4, 32]"
    # [t1, t2] = prims.var_mean(x, (1,), 0)  # t1: "cuda:0 f32[4]", t2: "cuda:0 f32[4]"
    # t3 = prims.broadcast_in_dim(t1, (4, 1), (0,))  # t3: "cuda:0 f32[4, 1]"
    # t4 = prims.broadcast_in_dim(t2, (4, 1), (0,))  # t4: "cuda:0 f32[4, 1]"
    # t5 = prims.broadcast_in_dim(t4, (4, 32), (0, 1))  # t5: "cuda:0 f32[4, 32]"
    # t6 = prims.sub(x, t5)  # t6: "cuda:0 f32[4, 32]"
    # t7 = prims.add(t3, 1e-05)  # t7: "cuda:0 f32[4, 1]"
    # t8 = prims.rsqrt(t7)  # t8: "cuda:0 f32[4, 1]"
    # t9 = prims.broadcast_in_dim(t8, (4, 32), (0, 1))  # t9: "cuda:0 f32[4, 32]"
    # t10 = prims.mul(t6, t9)  # t10: "cuda:0 f32[4, 32]"
    # t11 = prims.broadcast_in_dim(t_norm_weight, (4, 32), (1,))  # t11: "cuda:0 f32[4, 32]"
    # t12 = prims.mul(t10, t11)  # t12: "cuda:0 f32[4, 32]"
    # t13 = prims.broadcast_in_dim(t_norm_bias, (4, 32), (1,))  # t13: "cuda:0 f32[4, 32]"
    # t0 = prims.add(t12, t13)  # t0: "cuda:0 f32[4, 32]"
  del t_norm_weight, t_norm_bias
  h = torch.nn.functional.linear(t0, t_up_weight, t_up_bias)  # h: "cuda:0 f32[4, 64]"
    # h = ltorch.linear(t0, t_up_weight, t_up_bias)  # h: "cuda:0 f32[4, 64]"
      # h = prims.linear(t0, t_up_weight, t_up_bias)  # h: "cuda:0 f32[4, 64]"
  del t0, t_up_weight, t_up_bias
  # mlp.py:17:         h = self.act(h)
  [h_1] = nvFusion1(h)  # h_1: "cuda:0 f32[4, 64]"
    # t14 = prims.mul(h, 0.5)  # t14: "cuda:0 f32[4, 64]"
    # t15 = prims.mul(h, 0.7071067811865476)  # t15: "cuda:0 f32[4, 64]"
    # t16 = prims.erf(t15)  # t16: "cuda:0 f32[4, 64]"
    # t17 = prims.add(1.0, t16)  # t17: "cuda:0 f32[4, 64]"
    # h_1 = prims.mul(t14, t17)  # h_1: "cuda:0 f32[4, 64]"
  del h
  # mlp.py:18:         return x + self.down(h)
  t18 = torch.nn.functional.linear(h_1, t_down_weight, t_down_bias)  # t18: "cuda:0 f32[4, 32]"
    # t18 = ltorch.linear(h_1, t_down_weight, t_down_bias)  # t18: "cuda:0 f32[4, 32]"
      # t18 = prims.linear(h_1, t_down_weight, t_down_bias)  # t18: "cuda:0 f32[4, 32]"
  del h_1, t_down_weight, t_down_bias
  t19 = torch.add(x, t18)  # t19: "cuda:0 f32[4, 32]"
    # t19 = ltorch.add(x, t18)  # t19: "cuda:0 f32[4, 32]"
      # t19 = prims.add(x, t18)  # t19: "cuda:0 f32[4, 32]"
  del x, t18
  return (t19, ())
