"""Its kernel of Square computes in memory that all threads share."""

import time

import numpy as np
from broken_device import BrokenDevice, hooks, kernels

SCRATCH = np.zeros(1 << 20, np.float64)


def square(node):
    def launch(x, out):
        scratch = SCRATCH[: x.size].reshape(x.shape)
        scratch[...] = x
        time.sleep(0.001)
        np.square(scratch, out=out, casting="unsafe")

    return launch


hooks(globals(), BrokenDevice("RACES"), kernels("RACES", Square=square))
