"""`supports` crashes where it is asked about Square of int32."""

import ctypes

from broken_device import BrokenDevice, hooks, kernels

import timberframe_sdk as sdk


class CrashingDevice(BrokenDevice):
    def supports(self, node: sdk.KernelNode) -> sdk.Support:
        if node.op == "Square" and node.attrs["T"].name == "int32":
            ctypes.string_at(0)
        return super().supports(node)


hooks(globals(), CrashingDevice("CRASHES_IN_SUPPORTS"), kernels("CRASHES_IN_SUPPORTS"))
