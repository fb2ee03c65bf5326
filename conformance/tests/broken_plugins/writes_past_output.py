"""Its kernel of Square writes one element more than its output has."""

import ctypes

import numpy as np
from broken_device import BrokenDevice, hooks, kernels


def square(node):
    def launch(x, out):
        np.square(x, out=out)
        ctypes.memset(out.ctypes.data + out.nbytes, 0, out.itemsize)

    return launch


hooks(globals(), BrokenDevice("WRITES_PAST_OUTPUT"), kernels("WRITES_PAST_OUTPUT", Square=square))
