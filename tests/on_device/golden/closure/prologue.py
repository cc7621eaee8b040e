import torch

def prologue(args, kwargs):
  # args
  # kwargs
  if not (len(args) == 1 and not kwargs): return None
  x = args[0]
  if not (globals0.keys().isdisjoint(absent0) and globals0['torch'] is torch0): return None
  if not (scaled0.__code__ is code0 and scaled0.__defaults__ is None and scaled0.__kwdefaults__ is None): return None
  if not (type(cell0.cell_contents) is float and cell0.cell_contents == 3.0): return None
  scaled = scaled0
  weight = scaled.__closure__[1].cell_contents
  globals = scaled.__globals__
  shift = globals['shift']
  if not (TensorGuards0.check(x, weight, shift)): return None
  return (x, weight, shift)
