import torch

def prologue(args, kwargs):
  # args
  # kwargs
  if not (len(args) == 1 and not kwargs): return None
  x = args[0]
  MLP = MLP0
  MLP_norm = MLP._modules['norm']
  t_norm_weight = MLP_norm._parameters['weight']
  t_norm_bias = MLP_norm._parameters['bias']
  MLP_up = MLP._modules['up']
  t_up_weight = MLP_up._parameters['weight']
  t_up_bias = MLP_up._parameters['bias']
  MLP_down = MLP._modules['down']
  t_down_weight = MLP_down._parameters['weight']
  t_down_bias = MLP_down._parameters['bias']
  if not (TensorGuards0.check(x, t_norm_weight, t_norm_bias, t_up_weight, t_up_bias, t_down_weight, t_down_bias)): return None
  return (x, t_norm_weight, t_norm_bias, t_up_weight, t_up_bias, t_down_weight, t_down_bias)
