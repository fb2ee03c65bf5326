"""`supports` never returns where it is asked about Square of int32."""

import threading

from broken_device import BrokenDevice, hooks, kernels

import timberframe_sdk as sdk


class HangingDevice(BrokenDevice):
    def supports(self, node: sdk.KernelNode) -> sdk.Support:
        if node.op == "Square" and node.attrs["T"].name == "int32":
            threading.Event().wait()
        return super().supports(node)


hooks(globals(), HangingDevice("HANGS_IN_SUPPORTS"), kernels("HANGS_IN_SUPPORTS"))
