import torch

def prologue(args, kwargs):
  # args
  # kwargs
  if not (len(args) == 1 and not kwargs): return None
  x = args[0]
  if not (MLP_class0.keys().isdisjoint(absent0) and MLP_class0['__init__'] is __init__0 and MLP_class0['forward'] is forward0): return None
  if not (MLP_state0.keys().isdisjoint(absent1) and not MLP_parameters0 and not MLP_buffers0 and list(MLP_modules0) == ['norm', 'up', 'act', 'down'] and MLP_modules0['act'] is GELU0 and MLP_modules0['down'] is Linear0 and MLP_modules0['norm'] is LayerNorm0 and MLP_modules0['up'] is Linear1): return None
  if not (LayerNorm_state0.keys().isdisjoint(absent2) and type(LayerNorm_state0['eps']) is float and LayerNorm_state0['eps'] == 1e-05 and tuple_snapshot0.matches(LayerNorm_state0['normalized_shape']) and len(LayerNorm_parameters0) == 2 and not LayerNorm_buffers0 and not LayerNorm_modules0): return None
  if not (Linear_state0.keys().isdisjoint(absent3) and len(Linear_parameters0) == 2 and not Linear_buffers0 and not Linear_modules0): return None
  if not (GELU_state0.keys().isdisjoint(absent4) and type(GELU_state0['approximate']) is str and GELU_state0['approximate'] == 'none' and not GELU_parameters0 and not GELU_buffers0 and not GELU_modules0): return None
  if not (Linear_state1.keys().isdisjoint(absent5) and len(Linear_parameters1) == 2 and not Linear_buffers1 and not Linear_modules1): return None
  if not (globals0.keys().isdisjoint(absent6)): return None
  if not (forward0.__code__ is code0 and forward0.__defaults__ is None and forward0.__kwdefaults__ is None): return None
  if not (type(MLP0) is MLP1 and not MLP_state0['_forward_hooks'] and not MLP_state0['_forward_pre_hooks'] and not MLP_state0['_backward_hooks'] and not MLP_state0['_backward_pre_hooks']): return None
  if not (type(LayerNorm0) is LayerNorm1 and not LayerNorm_state0['_forward_hooks'] and not LayerNorm_state0['_forward_pre_hooks'] and not LayerNorm_state0['_backward_hooks'] and not LayerNorm_state0['_backward_pre_hooks']): return None
  if not (type(Linear1) is Linear2 and not Linear_state0['_forward_hooks'] and not Linear_state0['_forward_pre_hooks'] and not Linear_state0['_backward_hooks'] and not Linear_state0['_backward_pre_hooks']): return None
  if not (type(GELU0) is GELU1 and not GELU_state0['_forward_hooks'] and not GELU_state0['_forward_pre_hooks'] and not GELU_state0['_backward_hooks'] and not GELU_state0['_backward_pre_hooks']): return None
  if not (type(Linear0) is Linear2 and not Linear_state1['_forward_hooks'] and not Linear_state1['_forward_pre_hooks'] and not Linear_state1['_backward_hooks'] and not Linear_state1['_backward_pre_hooks']): return None
  if not (not all_modules_state0['_global_forward_hooks'] and not all_modules_state0['_global_forward_pre_hooks'] and not all_modules_state0['_global_backward_hooks'] and not all_modules_state0['_global_backward_pre_hooks']): return None
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
