"""erfc in float32 and log1p in float64 of XLA's CPU are off by tens of ULP.

Seen with jax 0.10.2 on x86-64. Needs jax and numpy; the yardstick are Python's own functions. Status 1: it is so.
"""

import math
import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
wrong = False
for name, function, true, x in (
    ("erfc", jax.lax.erfc, math.erfc, np.linspace(0, 9, 100_001).astype(np.float32)),
    ("log1p", jax.numpy.log1p, math.log1p, np.linspace(-0.99, 5, 100_001)),
):
    got = np.asarray(jax.jit(function)(x))
    right = np.array([true(float(v)) for v in x])
    error = np.abs(got - right) / np.spacing(np.abs(right).astype(x.dtype))
    i = int(np.argmax(error))
    print(f"{name}({x[i]!r}): got {got[i]!r}, expected {right[i]!r}: off by {error[i]:.0f} ULP")
    wrong |= bool(error[i] > 5)
print("jax", jax.__version__)
sys.exit(int(wrong))
