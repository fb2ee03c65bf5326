"""`suits` of its kernel of Square never returns for int32."""

import dataclasses
import threading

from broken_device import BrokenDevice, hooks, kernels

import timberframe_sdk as sdk


def suits(node: sdk.KernelNode) -> sdk.Support:
    if node.attrs["T"].name == "int32":
        threading.Event().wait()
    return None


FOUND = kernels("HANGS_IN_SUITS")
hooks(
    globals(),
    BrokenDevice("HANGS_IN_SUITS"),
    [dataclasses.replace(k, suits=suits) if k.op == "Square" else k for k in FOUND],
)
