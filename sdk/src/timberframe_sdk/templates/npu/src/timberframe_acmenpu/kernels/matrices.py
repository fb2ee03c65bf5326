"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import timberframe_sdk as sdk
from timberframe_acmenpu.kernels.declare import kernel
from timberframe_acmenpu.kernels.lanes import Weights, pack, padded, workspace

KERNELS: list[sdk.KernelDef] = []


@kernel(KERNELS, "MatMul")
def matmul(node: sdk.KernelNode) -> Callable[..., Any]:
    transpose_a, transpose_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    rows, columns = node.outputs[0].shape
    inner = node.inputs[0].shape[0 if transpose_a else 1]

    def pack_weights(b: np.ndarray, out: np.ndarray) -> None:
        pack(b.T if transpose_b else b, out)

    weights = Weights(node, 1, (inner, columns), pack_weights, transpose_b)
    arrays = workspace(node, [(rows, padded(inner)), *([] if weights.prepared else [weights.shape])])

    def compute(a: np.ndarray, b: np.ndarray, out: np.ndarray, memory: np.ndarray) -> None:
        left, *rest = arrays(memory)
        pack(a.T if transpose_a else a, left)
        for right in rest:
            pack_weights(b, right)
        out[...] = np.matmul(left, rest[0] if rest else b)[:, :columns]

    return compute
