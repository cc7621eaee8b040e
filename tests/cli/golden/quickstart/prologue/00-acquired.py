import torch

def prologue(args, kwargs):
  # args
  # kwargs
  if not (len(args) == 2 and not kwargs): return None
  a = args[0]
  b = args[1]
  if not (a is not b): return None
  if not (foo0.__code__ is code0 and foo0.__defaults__ is None and foo0.__kwdefaults__ is None): return None
  if not (TensorGuards0.check(a, b)): return None
  return (a, b)
