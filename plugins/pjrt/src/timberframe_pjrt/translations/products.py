"""Products of matrices."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from timberframe_pjrt.translations.table import FLOATS, translation
from timberframe_sdk import KernelNode

_TYPES = {"T": (*FLOATS, "int32", "int64")}


@translation("MatMul", _TYPES)
def mat_mul(node: KernelNode, a: Any, b: Any) -> Any:
    """Returns the product of two matrices, either of them transposed."""
    return _product(a, b, node.attrs["transpose_a"], node.attrs["transpose_b"])


@translation(("BatchMatMul", "BatchMatMulV2"), _TYPES)
def batch_mat_mul(node: KernelNode, x: Any, y: Any) -> Any:
    """Returns products of matrices, either of them transposed; outer dimensions broadcast."""
    return _product(x, y, node.attrs["adj_x"], node.attrs["adj_y"])


def _product(a: Any, b: Any, turn_a: bool, turn_b: bool) -> Any:
    a, b = jnp.asarray(a), jnp.asarray(b)
    return jnp.matmul(a.mT if turn_a else a, b.mT if turn_b else b)
