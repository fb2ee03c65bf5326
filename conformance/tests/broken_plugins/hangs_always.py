"""`supports` never returns."""

import threading

from broken_device import BrokenDevice, hooks, kernels

import timberframe_sdk as sdk


class HangingDevice(BrokenDevice):
    def supports(self, node: sdk.KernelNode) -> sdk.Support:
        threading.Event().wait()
        raise AssertionError


hooks(globals(), HangingDevice("HANGS_ALWAYS"), kernels("HANGS_ALWAYS"))
