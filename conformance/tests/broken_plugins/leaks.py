"""Its kernel of Square takes a buffer in each run, and never gives it back."""

import numpy as np
from broken_device import BrokenDevice, hooks, kernels

KEPT = []


def square(node):
    def launch(x, out):
        KEPT.append(node.device.allocator.allocate(x.nbytes))
        np.square(x, out=out)

    return launch


hooks(globals(), BrokenDevice("LEAKS"), kernels("LEAKS", Square=square))
