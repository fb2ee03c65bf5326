"""Kernels in Python for tensors of strings: the op's own reference, applied to object arrays of bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from timberframe_sdk import KernelNode, Launcher
from timberframe_sdk.native import Native
from timberframe_sdk.reference import reference_launcher


def or_reference(build: Callable[[KernelNode], Native]) -> Callable[[KernelNode], Native | Launcher]:
    """The builder for native dtypes, which leaves tensors of objects to the op's reference."""

    @wraps(build)
    def choose(node: KernelNode) -> Any:
        strings = any(v.dtype.hasobject for v in (*node.inputs, *node.outputs))
        return reference_launcher(node) if strings else build(node)

    return choose
