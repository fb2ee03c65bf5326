"""Its allocator gives a quarter of the bytes that it is asked for, so that they overlap. Its handles are offsets."""

import numpy as np
from broken_device import BrokenDevice, hooks, kernels

import timberframe_sdk as sdk

MEMORY = np.zeros(1 << 25, np.uint8)


class OverlappingAllocator(sdk.Allocator):
    def __init__(self):
        super().__init__(1 << 24)
        self.end = 0

    def raw(self, nbytes):
        start, self.end = self.end, (self.end + nbytes // 4 + 63) // 64 * 64 % (1 << 24)
        return start


class OffsetDevice(BrokenDevice):
    def array(self, buffer, offset, dtype, shape):
        start = buffer.handle + offset
        return MEMORY[start : start + dtype.itemsize * int(np.prod(shape))].view(dtype).reshape(shape)


_device = OffsetDevice("SHARING_ALLOCATOR")
_device.allocator = OverlappingAllocator()

hooks(globals(), _device, kernels("SHARING_ALLOCATOR"))
