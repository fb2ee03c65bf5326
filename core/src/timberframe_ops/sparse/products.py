"""Products of matrices that have many zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op, conjugate, constant, gather
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.sparse.shapes import check_inside, check_parts


def _product_shape(c: InferenceContext) -> Sequence[Shape]:
    check_parts(c, 0, "a")
    b = c.require_rank(3, 2)
    sizes = c.shape_value(2) or (None, None)
    if len(sizes) != 2:
        raise c.late_error(f"a_shape has {len(sizes)} sizes; a sparse matrix has 2")
    rows, inner = sizes[::-1] if c.attrs["adjoint_a"] else sizes
    first, columns = b[::-1] if c.attrs["adjoint_b"] else b
    if inner is not None and first is not None and inner != first:
        raise c.error(f"a has {inner} columns and b {first} rows; they must be equal")
    return [(rows, columns)]


def _product(attrs: Attrs, indices: np.ndarray, values: np.ndarray, shape: np.ndarray, b: np.ndarray) -> np.ndarray:
    if len(shape) != 2:
        raise InvalidArgumentError(f"a_shape is {shape.tolist()}; a sparse matrix has 2 sizes")
    check_inside(indices, shape, "a_indices")
    rows, columns = indices.T
    size, inner = shape.tolist()
    if attrs["adjoint_a"]:
        rows, columns, size, inner, values = columns, rows, inner, size, values.conj()
    b = b.conj().T if attrs["adjoint_b"] else b
    if inner != len(b):
        raise InvalidArgumentError(f"a has {inner} columns and b {len(b)} rows; they must be equal")
    made = np.zeros((size, b.shape[1]), b.dtype)
    order = np.argsort(rows, kind="stable")
    found, starts = np.unique(rows[order], return_index=True)
    if len(found):
        parts = values[order, None] * b[columns[order]]
        made[found] = np.add.reduceat(parts, starts, axis=0, dtype=b.dtype)
    return made


def _product_gradient(op: Any, grad: Any) -> list[Any]:
    indices, values, shape, b = op.inputs
    a_turned, b_turned = op.attrs["adjoint_a"], op.attrs["adjoint_b"]
    turned = {"adjoint_a": not a_turned}
    b_grad = apply_op("SparseTensorDenseMatMul", [indices, values, shape, grad], turned)
    if b_turned:
        b_grad = _adjoint(b_grad)
    columns = constant([0, 1], "int32")
    rows, inner = (apply_op("GatherV2", [indices, apply_op("GatherV2", [columns, i, 0]), 1]) for i in (0, 1))
    if a_turned:
        rows, inner = inner, rows
    ours = gather(grad, rows)
    theirs = gather(_adjoint(b) if b_turned else b, inner)
    pairs = [conjugate(ours), theirs] if a_turned else [ours, conjugate(theirs)]
    return [None, apply_op("Sum", [apply_op("Mul", pairs), constant([1], "int32")]), None, b_grad]


def _adjoint(x: Any) -> Any:
    return conjugate(apply_op("Transpose", [x, constant([1, 0], "int32")]))


define_op(
    "SparseTensorDenseMatMul",
    inputs=["a_indices: Tindices", "a_values: T", "a_shape: int64", "b: T"],
    outputs=["product: T"],
    attrs=["T: type", "Tindices: {int32, int64} = DT_INT64", "adjoint_a: bool = false", "adjoint_b: bool = false"],
    doc="The product of a sparse matrix and a dense one, each transposed and conjugated before where adjoint says so.",
    shape=_product_shape,
    reference=_product,
    gradient=_product_gradient,
    on_host=True,
)


def _dense_shape(c: InferenceContext) -> Sequence[Shape]:
    a, b = c.require_rank(0, 2), c.require_rank(1, 2)
    a = a[::-1] if c.attrs["transpose_a"] else a
    b = b[::-1] if c.attrs["transpose_b"] else b
    if a[1] is not None and b[0] is not None and a[1] != b[0]:
        raise c.error(f"a has {a[1]} columns and b {b[0]} rows; they must be equal")
    return [(a[0], b[1])]


def _dense_product(attrs: Attrs, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a.astype(np.float32), b.astype(np.float32)
    product: np.ndarray = np.matmul(a.T if attrs["transpose_a"] else a, b.T if attrs["transpose_b"] else b)
    return product


def _dense_gradient(op: Any, grad: Any) -> list[Any]:
    a, b = (x if x.dtype is float32 else apply_op("Cast", [x], {"DstT": float32}) for x in op.inputs)
    ta, tb = op.attrs["transpose_a"], op.attrs["transpose_b"]

    def product(x: Any, y: Any, tx: bool, ty: bool) -> Any:
        return apply_op("MatMul", [x, y], {"transpose_a": tx, "transpose_b": ty})

    first = product(b, grad, tb, True) if ta else product(grad, b, False, not tb)
    second = product(grad, a, True, ta) if tb else product(a, grad, not ta, False)
    made = []
    for x, g in zip(op.inputs, (first, second), strict=True):
        made.append(g if x.dtype is float32 else apply_op("Cast", [g], {"DstT": x.dtype}))
    return made


define_op(
    "SparseMatMul",
    inputs=["a: Ta", "b: Tb"],
    outputs=["product: float"],
    attrs=[
        "transpose_a: bool = false", "transpose_b: bool = false", "a_is_sparse: bool = false",
        "b_is_sparse: bool = false", "Ta: {float, bfloat16} = DT_FLOAT", "Tb: {float, bfloat16} = DT_FLOAT",
    ],
    doc="The product of two matrices of which one has many zeros, in float32; a_is_sparse and b_is_sparse "
    "change nothing.",
    shape=_dense_shape,
    reference=_dense_product,
    gradient=_dense_gradient,
    on_host=True,
)  # fmt: skip
