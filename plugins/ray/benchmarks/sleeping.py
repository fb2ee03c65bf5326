"""An op that takes a time and no processor, as one of an accelerator does, on the CPU and on devices of their own."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_sdk.testing import reference_device

sdk.register_plugin("reference", reference_device)
KERNELS: list[sdk.KernelDef] = []


def _sleep(attrs: Any, x: Any, *weights: Any) -> Any:
    time.sleep(attrs["seconds"])
    return x


def _sleep_gradient(op: Any, g: Any) -> list[Any]:
    return [sleep(g, op.attrs["backward_seconds"], 0.0)] * len(op.inputs)


sdk.define_op(
    "Test>Sleep",
    inputs=["x: T", "weights: N * T"],
    outputs=["y: T"],
    attrs=["seconds: float", "backward_seconds: float", "N: int >= 0", "T: {float}"],
    doc="Gives x after a time, and its gradient to x and the weights, which have its shape, after another one.",
    shape=lambda c: [c.shapes[0]],
    reference=_sleep,
    gradient=_sleep_gradient,
    stateful=True,
)


@sdk.kernel(KERNELS, "Test>Sleep", "CPU", inplace=((0, 0),))
def _kernel(node: sdk.KernelNode) -> sdk.Launcher:
    seconds = node.attrs["seconds"]

    def launch(x: np.ndarray, *rest: np.ndarray) -> None:
        out = rest[-1]
        time.sleep(seconds)
        if out.ctypes.data != x.ctypes.data:
            np.copyto(out, x)

    return launch


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS


sdk.register_plugin("sleeping", sys.modules[__name__])


def sleep(x: Any, seconds: float, backward_seconds: float, weights: Sequence[Any] = ()) -> Any:
    """x, after so many seconds; its gradient, also that of weights of its shape, takes backward_seconds."""
    times = {"seconds": seconds, "backward_seconds": backward_seconds}
    return sdk.apply_op("Test>Sleep", [x, list(weights)], times)
