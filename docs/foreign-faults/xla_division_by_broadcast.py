"""stablehlo.divide on XLA's CPU: by a divisor that is broadcast, it is a product with the reciprocal.

Infinity by the largest numbers is NaN, since their reciprocals are subnormal and count as zero; a quarter of all
quotients are not the nearest number, as IEEE 754 (5.4.1) requires. By the same numbers one by one all are right.

Seen with jax 0.10.2 on x86-64. Needs jax and numpy. Status 1: the fault is there.
"""

import sys

import jax
import numpy as np

divide = jax.jit(jax.lax.div)
large = np.float32(3e38)
by_scalar = np.asarray(jax.jit(lambda x: x / large)(np.full(3, np.inf, np.float32)))
one_by_one = np.asarray(divide(np.full(3, np.inf, np.float32), np.full(3, large)))
print("infinity / 3e38: got", by_scalar[0], "- expected inf; with a divisor for each:", one_by_one[0])
x = np.random.default_rng(0).normal(size=(1000, 8)).astype(np.float32)
y = np.random.default_rng(1).normal(size=(1000, 1)).astype(np.float32)
right = (x.astype(np.float64) / y).astype(np.float32)
wrong = int((np.asarray(jax.jit(lambda x, y: x / y)(x, y)) != right).sum())
print(
    wrong,
    "of",
    x.size,
    "quotients differ from the nearest float32; with a divisor for each:",
    int((np.asarray(divide(x, np.broadcast_to(y, x.shape))) != right).sum()),
)
print("jax", jax.__version__)
sys.exit(bool(wrong or not np.isinf(by_scalar).all()))
