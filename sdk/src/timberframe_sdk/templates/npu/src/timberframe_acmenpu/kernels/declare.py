"""The declaration of kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import timberframe_sdk as sdk
from timberframe_acmenpu.hardware import DTYPES

Builder = Callable[[sdk.KernelNode], Callable[..., Any]]


def kernel(
    kernels: list[sdk.KernelDef], op: str, reasons: tuple[tuple[type[sdk.OpError], str], ...] = (), **rest: Any
) -> Callable[[Builder], Builder]:
    """Declares a builder as the kernel of an op. reasons: of `sdk.Launch`; rest: other fields of `sdk.KernelDef`."""
    rest.setdefault("types", {"T": DTYPES})

    def declare(build: Builder) -> Builder:
        @sdk.kernel(kernels, op, "ACMENPU", **rest)
        @functools.wraps(build)
        def queued(node: sdk.KernelNode) -> sdk.Launch:
            launch, function = node.device.queue.launch, build(node)  # type: ignore[attr-defined]  # our device's
            count = len(sdk.passed_inputs(node))
            return sdk.Launch(lambda *tensors: launch(function, tensors[:count], tensors[count:]), reasons)

        return build

    return declare
