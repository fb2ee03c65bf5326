"""Ops on rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_acmenpu.hardware import DTYPES
from timberframe_acmenpu.kernels.declare import kernel
from timberframe_sdk.plans.indexing import gather_sizes

KERNELS: list[sdk.KernelDef] = []
FLOATS = tuple(d for d in DTYPES if "float" in d)
INDICES = tuple(d for d in DTYPES if d in ("int32", "int64"))
OUTSIDE = (sdk.InvalidArgumentError, "index {1} at position {0} is outside [0, {2})")


@kernel(KERNELS, "Softmax", types={"T": FLOATS})
def softmax(node: sdk.KernelNode) -> Callable[..., Any]:
    def compute(x: np.ndarray, out: np.ndarray) -> None:
        wide = x.astype(np.float64)
        powers = np.exp(wide - wide.max(-1, keepdims=True, initial=-np.inf))
        out[...] = powers / powers.sum(-1, keepdims=True)

    return compute


@kernel(KERNELS, "GatherV2", types={"Tparams": DTYPES, "Tindices": INDICES}, status=True, reasons=(OUTSIDE,))
def gather(node: sdk.KernelNode) -> Callable[..., Any]:
    """Copies rows. The launch has returned when a wrong index is found: it is written into the status word."""
    batch, outer, limit, count, inner = gather_sizes(node)

    def compute(params: np.ndarray, indices: np.ndarray, out: np.ndarray, status: np.ndarray) -> None:
        wrong = np.flatnonzero((indices < 0) | (indices >= limit))
        if wrong.size:
            if not status[0]:  # the first error stays
                status[:] = node.number, 1, wrong[0], indices.flat[wrong[0]], limit, 0
            return
        rows = params.reshape(batch, outer, limit, inner)
        for i, places in enumerate(indices.reshape(batch, count)):
            out.reshape(batch, outer, count, inner)[i] = rows[i][:, places]

    return compute
