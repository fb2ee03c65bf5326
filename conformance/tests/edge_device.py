"""A device whose results are off by what the limits allow, times a factor: at 1 it is right, at 2 it is not."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_conformance.tolerance.limits import allowed_error, is_exact
from timberframe_conformance.tolerance.rounding import round_to
from timberframe_conformance.truth.reference import evaluate, quiet, true_outputs
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.accuracy import Residual
from timberframe_sdk.numpy_device import NumpyAllocator, NumpyDevice

FACTOR = "EDGE_DEVICE_FACTOR"
KERNELS: list[sdk.KernelDef] = []


class EdgeDevice(NumpyDevice):
    type, priority = "EDGE", 0

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self.allocator = NumpyAllocator()


def at_the_edge(node: sdk.KernelNode) -> Any:
    """Returns a launcher that is off in every element, up and down by turns."""
    op = registry.get(node.op)
    exact = sdk.reference_launcher(node)
    dtypes = [v.dtype for v in node.outputs]
    if isinstance(op.accuracy, Residual) or all(is_exact(op, d) for d in dtypes) or node.op == "Cast":
        return exact
    given = sdk.passed_inputs(node)

    def launch(*arrays: np.ndarray) -> None:
        inputs = [node.const(i) for i in range(len(node.inputs))]
        for i, x in zip(given, arrays, strict=False):
            inputs[i] = x
        outs = arrays[len(given) :]
        with quiet():
            expected = true_outputs(op, node.attrs, inputs)
            narrow = evaluate(op, node.attrs, inputs)
            allowed = allowed_error(op, node.attrs, inputs, expected, dtypes)
            for out, right, plain, error in zip(outs, expected, narrow, allowed, strict=True):
                out[...] = round_to(plain, out.dtype) if error is None else moved(right, error, out.dtype)

    return launch


def moved(right: np.ndarray, error: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns numbers off by the error times the factor, cut off rather than rounded away.

    Zeros stay, which have no terms that could be off: a square below zero would make NaN of its root. So do numbers
    that would overflow.
    """
    factor = float(os.environ.get(FACTOR, "1"))
    signs = np.resize([1.0, -1.0], right.size).reshape(right.shape)
    wanted = right + np.where(np.isfinite(error), error, 0) * factor * signs
    found = round_to(wanted, dtype)
    if factor == 1 and dtype.kind != "c":  # a rounding may have left the limit: one step back toward what is right
        outside = np.abs(found.astype(np.float64) - right) > np.broadcast_to(error, right.shape)
        found = np.where(outside, np.nextafter(found, round_to(right, dtype)), found).astype(dtype)
    kept = (right == 0) | ~np.isfinite(right) | ~np.isfinite(found.astype(right.dtype)) | (dtype.kind == "c")
    return np.where(kept, round_to(right, dtype), found).astype(dtype)


for _op in registry.all_ops():
    if sdk.has_reference(_op.name) and not _op.on_host:
        for _kernel in itertools.islice(sdk.reference_kernels("EDGE", [_op.name]), 1):
            sdk.kernel(KERNELS, _op.name, "EDGE", types=_kernel.types)(at_the_edge)


@sdk.hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[sdk.Device]:
    return [EdgeDevice(i) for i in range(sdk.device_count(config, "EDGE", 1))]


@sdk.hookimpl
def timberframe_kernels() -> list[sdk.KernelDef]:
    return KERNELS
