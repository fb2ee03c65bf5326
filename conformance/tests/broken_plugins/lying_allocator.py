"""Its allocator gives a quarter of the bytes that it is asked for."""

from broken_device import BrokenDevice, hooks, kernels

from timberframe_sdk.numpy_device import NumpyAllocator


class QuarterAllocator(NumpyAllocator):
    def raw(self, nbytes):
        return super().raw(nbytes // 4)


_device = BrokenDevice("LYING_ALLOCATOR")
_device.allocator = QuarterAllocator()

hooks(globals(), _device, kernels("LYING_ALLOCATOR"))
