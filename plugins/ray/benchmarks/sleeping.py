"""An op that takes a time and no processor, as one of an accelerator does, on the CPU and on devices of their own."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_sdk.testing import reference_device

sdk.register_plugin("reference", reference_device)
KERNELS: list[sdk.KernelDef] = []


def _sleep(attrs: Any, x: Any) -> Any:
    time.sleep(attrs["seconds"])
    return x


sdk.define_op(
    "Test>Sleep",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["seconds: float", "backward_seconds: float", "T: {float}"],
    doc="Gives its input after a time; so does its gradient.",
    shape=lambda c: [c.shapes[0]],
    reference=_sleep,
    gradient=lambda op, g: [sleep(g, op.attrs["backward_seconds"], 0.0)],
    stateful=True,
)


@sdk.kernel(KERNELS, "Test>Sleep", "CPU", inplace=((0, 0),))
def _kernel(node: sdk.KernelNode) -> sdk.Launcher:
    seconds = node.attrs["seconds"]

    def launch(x: np.ndarray, out: np.ndarray) -> None:
        time.sleep(seconds)
        np.copyto(out, x)

    return launch


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS


sdk.register_plugin("sleeping", sys.modules[__name__])


def sleep(x: Any, seconds: float, backward_seconds: float) -> Any:
    """x, after so many seconds; its gradient takes backward_seconds."""
    return sdk.apply_op("Test>Sleep", [x], {"seconds": seconds, "backward_seconds": backward_seconds})
