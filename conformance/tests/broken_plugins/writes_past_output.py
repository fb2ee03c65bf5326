"""Its kernel of Square writes one element more than its output has."""

import ctypes

import numpy as np
from broken_device import BrokenDevice, hooks, kernels


def square(node):
    def launch(x, out):
        np.square(x, out=out)
        after = (ctypes.c_uint8 * out.itemsize).from_address(out.ctypes.data + out.nbytes)
        after[:] = [byte ^ 0xFF for byte in after]  # other bytes than were there, whatever those are

    return launch


hooks(globals(), BrokenDevice("WRITES_PAST_OUTPUT"), kernels("WRITES_PAST_OUTPUT", Square=square))
