"""jax.numpy.sinh on XLA's CPU: exp(x - log 2), whose argument is rounded, is off by up to hundreds of ULP.

Seen with jax 0.10.2 on x86-64. Needs jax and numpy. Status 1: the fault is there.
"""

import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
wrong = False
for argument in (np.float32(-67.235275), np.float64(-568.3805360137345)):
    right = float(np.sinh(np.longdouble(argument)))
    got = jax.jit(jax.numpy.sinh)(argument)
    ulp = abs(float(got) - right) / float(np.spacing(np.abs(type(argument)(right))))
    print(f"sinh({argument!r}): got {float(got):.17g}, expected {right:.17g}: off by {ulp:.1f} ULP")
    wrong |= ulp > 8
print("jax", jax.__version__)
sys.exit(wrong)
