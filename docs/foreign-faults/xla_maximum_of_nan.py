"""stablehlo.reduce by stablehlo.maximum on XLA's CPU loses NaN, for some shapes: the specification wants NaN.

Seen with jax 0.10.2 on x86-64. Needs jax and numpy. Status 1: the fault is there.
"""

import sys

import jax
import numpy as np

x = np.ones((131, 1031), np.float32)
x[7, ::2] = np.nan
wrong = False
for name, reduce in (("maximum", jax.lax.reduce_max), ("minimum", jax.lax.reduce_min)):
    for axis in (0, 1):
        got = np.asarray(jax.jit(lambda a, reduce=reduce, axis=axis: reduce(a, (axis,)))(x))
        lost = int((np.isnan(x).any(axis) & ~np.isnan(got)).sum())
        print(f"{name} along dimension {axis}: {lost} of {int(np.isnan(x).any(axis).sum())} NaN are lost")
        wrong |= lost > 0
print("jax", jax.__version__)
sys.exit(int(wrong))
