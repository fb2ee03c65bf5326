"""Its copies from the device pass through a buffer that all threads share."""

import time

import numpy as np
from broken_device import BrokenDevice, hooks, kernels

STAGING = np.zeros(1 << 22, np.uint8)


class StagingDevice(BrokenDevice):
    host_memory = False

    def copy_in(self, x):
        return np.array(x, order="C")

    def copy_out(self, a):
        staging = STAGING[: a.nbytes].view(a.dtype).reshape(a.shape)
        staging[...] = a
        time.sleep(0.0002)
        return staging.copy()


hooks(globals(), StagingDevice("RACES_IN_COPIES"), kernels("RACES_IN_COPIES"))
