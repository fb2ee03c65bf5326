"""Its allocator keeps a reference to all memory that its driver ever gave, which its statistics do not show."""

import numpy as np
from broken_device import DTYPES, BrokenDevice, hooks, kernels

import timberframe_sdk as sdk
from timberframe_sdk.numpy_device import NumpyAllocator

MEMORY = 1 << 26


class Driver:
    """Memory that is used up at some time. It is free again when nothing refers to it."""

    def __init__(self):
        self.used = 0

    def take(self, nbytes):
        if self.used + nbytes > MEMORY:
            raise MemoryError(f"{self.used} of {MEMORY} bytes are in use")
        self.used += nbytes
        return Handle(self, nbytes)


class Handle:
    def __init__(self, driver, nbytes):
        self.driver, self.nbytes = driver, nbytes

    def __del__(self):
        self.driver.used -= self.nbytes


class KeepingAllocator(NumpyAllocator):
    def __init__(self):
        super().__init__()
        self.driver = Driver()
        self.kept = []

    def raw(self, nbytes):
        self.kept.append(self.driver.take(nbytes))
        return super().raw(nbytes)


class KeepingDevice(BrokenDevice):
    host_memory = False
    attributes = sdk.DeviceAttributes(memory=MEMORY, vendor="Broken", model="B1", dtypes=DTYPES)

    def copy_in(self, x):
        return np.array(x, order="C")

    def copy_out(self, a):
        return a.copy()


_device = KeepingDevice("KEEPS_HANDLES")
_device.allocator = KeepingAllocator()

hooks(globals(), _device, kernels("KEEPS_HANDLES"))
