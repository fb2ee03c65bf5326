"""Has two kernels for Neg, of which neither has a higher priority."""

from broken_device import BrokenDevice, hooks, kernels

_all = kernels("DUPLICATED_KERNEL")

hooks(globals(), BrokenDevice("DUPLICATED_KERNEL"), [*_all, *(k for k in _all if k.op == "Neg")])
