"""Sparse tensors combined element by element, with each other and with dense ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op, conjugate
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape, rank_of_sparse
from timberframe_ops.math.segments import NUMBERS, REALS
from timberframe_ops.sparse.shapes import Parts, check_inside, check_parts, count_of, flat, unflat

_PAIR = ("a_indices: int64", "a_values: T", "a_shape: int64", "b_indices: int64", "b_values: T", "b_shape: int64")


def _same_shape(a_shape: np.ndarray, b_shape: np.ndarray) -> None:
    if a_shape.tolist() != b_shape.tolist():
        raise InvalidArgumentError(f"a has shape {a_shape.tolist()} and b {b_shape.tolist()}; they must be equal")


def _united(a: Parts, b: Parts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the numbers of the elements that a or b has, in order, and the values of both
    there, zero where one has none.
    """
    _same_shape(a[2], b[2])
    ours, theirs = flat(a[0], a[2]), flat(b[0], b[2])
    every = np.unique(np.concatenate([ours, theirs]))
    sides = []
    for numbers, values in ((ours, a[1]), (theirs, b[1])):
        side = np.zeros(len(every), values.dtype)
        side[np.searchsorted(every, numbers)] = values
        sides.append(side)
    return every, sides[0], sides[1]


def _pair_shape(c: InferenceContext) -> Sequence[Shape]:
    ranks = {check_parts(c, 0, "a"), check_parts(c, 3, "b")} - {None}
    if len(ranks) > 1:
        raise c.late_error(f"a and b have ranks {sorted(r for r in ranks if r is not None)}; they must be equal")
    rank = next(iter(ranks), None)
    return [(None, rank), (None,), (rank,)][: len(c.op.outputs)]


def _add(attrs: Attrs, *inputs: np.ndarray) -> Parts:
    numbers, a, b = _united(inputs[:3], inputs[3:6])  # type: ignore[arg-type]  # three arrays each
    total = a + b
    kept = np.abs(total) >= inputs[6]
    return unflat(numbers[kept], inputs[2]), total[kept], inputs[2]


def _add_gradient(op: Any, _: Any, grad: Any, *__: Any) -> list[Any]:
    a, b = apply_op("SparseAddGrad", [grad, op.inputs[0], op.inputs[3], op.outputs[0]])
    return [None, a, None, None, b, None, None]


define_op(
    "SparseAdd",
    inputs=[*_PAIR, "thresh: Treal"],
    outputs=["sum_indices: int64", "sum_values: T", "sum_shape: int64"],
    attrs=[NUMBERS, REALS.replace("T:", "Treal:")],
    doc="The sum of two sparse tensors of one shape, without elements whose magnitude is less than thresh.",
    shape=_pair_shape,
    reference=_add,
    gradient=_add_gradient,
    on_host=True,
)


def _added_backward(
    attrs: Attrs, grad: np.ndarray, a: np.ndarray, b: np.ndarray, total: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    found = {tuple(row): g for row, g in zip(total.tolist(), grad, strict=True)}
    zero = grad.dtype.type(0)
    first, second = (np.array([found.get(tuple(r), zero) for r in x.tolist()], grad.dtype) for x in (a, b))
    return first, second


define_op(
    "SparseAddGrad",
    inputs=["backprop_val_grad: T", "a_indices: int64", "b_indices: int64", "sum_indices: int64"],
    outputs=["a_val_grad: T", "b_val_grad: T"],
    attrs=[NUMBERS],
    doc="The gradients of the values of SparseAdd: zero for elements that the sum lacks.",
    shape=lambda c: [None if s is None else s[:1] for s in c.shapes[1:3]],
    reference=_added_backward,
    gradient=NotDifferentiable("TensorFlow has no second derivative of sums of sparse tensors"),
    on_host=True,
)

for _name, _function, _types in (
    ("SparseSparseMaximum", np.maximum, REALS),
    ("SparseSparseMinimum", np.minimum, NUMBERS),
):

    def _extreme(attrs: Attrs, *inputs: np.ndarray, function: Any = _function) -> tuple[np.ndarray, np.ndarray]:
        numbers, a, b = _united(inputs[:3], inputs[3:6])  # type: ignore[arg-type]  # three arrays each
        return unflat(numbers, inputs[2]), function(a, b)

    define_op(
        _name,
        inputs=_PAIR,
        outputs=["output_indices: int64", "output_values: T"],
        attrs=[_types],
        doc=f"The {_name[12:].lower()} of two sparse tensors of one shape by element, what one lacks being 0.",
        shape=_pair_shape,
        reference=_extreme,
        gradient=NotDifferentiable("TensorFlow has no gradient of extremes of sparse tensors"),
        on_host=True,
    )


def _dense_add_shape(c: InferenceContext) -> Sequence[Shape]:
    check_parts(c, 0, "a")
    rank = rank_of_sparse(c.shapes[0], c.shapes[2])
    if c.shapes[3] is not None and rank not in (None, len(c.shapes[3])):
        raise c.late_error(f"a has rank {rank} and b shape {format_shape(c.shapes[3])}; the ranks must be equal")
    return [c.shapes[3]]


def _dense_add(attrs: Attrs, indices: np.ndarray, values: np.ndarray, shape: np.ndarray, b: np.ndarray) -> np.ndarray:
    _same_shape(shape, np.array(b.shape))
    check_inside(indices, shape)
    made = b.copy()
    np.add.at(made, tuple(indices.T), values)
    return made


define_op(
    "SparseTensorDenseAdd",
    inputs=["a_indices: Tindices", "a_values: T", "a_shape: Tindices", "b: T"],
    outputs=["output: T"],
    attrs=[NUMBERS, "Tindices: {int32, int64}"],
    doc="The sum of a sparse tensor and a dense one of its shape.",
    shape=_dense_add_shape,
    reference=_dense_add,
    gradient=lambda op, grad: [None, apply_op("GatherNd", [grad, op.inputs[0]]), None, grad],
    on_host=True,
)


def _values_shape(c: InferenceContext) -> Sequence[Shape]:
    check_parts(c, 0, "sp")
    return [(count_of(c),)]


def _at(indices: np.ndarray, shape: np.ndarray, dense: np.ndarray) -> np.ndarray:
    """Returns the elements of the dense tensor, broadcast to the shape, at indices."""
    if dense.ndim > len(shape) or any(
        d not in (1, s) for d, s in zip(dense.shape[::-1], shape[::-1].tolist(), strict=False)
    ):
        raise InvalidArgumentError(
            f"dense has shape {format_shape(dense.shape)}, which does not broadcast to {shape.tolist()}; it must"
        )
    check_inside(indices, shape)
    wide = np.broadcast_to(dense, shape.tolist())
    return np.asarray(wide[tuple(indices.T)])


def _scaled(indices: Any, shape: Any, dense: Any) -> Any:
    """Returns the elements of a dense tensor that broadcast to the elements of a sparse one."""
    sizes = apply_op("Shape", [dense], {"out_type": int64})
    missing = apply_op("Sub", [apply_op("Size", [shape]), apply_op("Rank", [dense])])
    ones = apply_op("Fill", [apply_op("ExpandDims", [missing, 0]), apply_op("Cast", [1], {"DstT": int64})])
    whole = apply_op("ConcatV2", [[ones, sizes], 0])
    one = apply_op("OnesLike", [shape])
    scaling = apply_op("Maximum", [apply_op("FloorDiv", [shape, apply_op("Maximum", [whole, one])]), one])
    return apply_op("GatherNd", [apply_op("Reshape", [dense, whole]), apply_op("FloorDiv", [indices, scaling])])


def _product_gradient(op: Any, grad: Any) -> list[Any]:
    indices, _, shape, dense = op.inputs
    return [None, apply_op("Mul", [grad, conjugate(_scaled(indices, shape, dense))]), None, None]


def _quotient_gradient(op: Any, grad: Any) -> list[Any]:
    indices, _, shape, dense = op.inputs
    return [None, apply_op("RealDiv", [grad, conjugate(_scaled(indices, shape, dense))]), None, None]


def _divided(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind not in "iu":
        return np.asarray(x / y)
    if (y == 0).any():
        raise InvalidArgumentError("dense has a zero where it divides an integer; it must not")
    quotient = x // y
    return np.asarray(quotient + ((x % y != 0) & ((x < 0) != (y < 0))).astype(x.dtype))  # towards zero, as in C


_RESULTS = {"Add": "sum", "Mul": "product", "Div": "quotient"}

for _name, _work, _gradient in (
    ("Add", np.add, MissingGradient("TensorFlow has none of this sum either; SparseTensorDenseAdd has one")),
    ("Mul", np.multiply, _product_gradient),
    ("Div", _divided, _quotient_gradient),
):

    def _by_element(
        attrs: Attrs, indices: np.ndarray, values: np.ndarray, shape: np.ndarray, dense: np.ndarray, work: Any = _work
    ) -> np.ndarray:
        return np.asarray(work(values, _at(indices, shape, dense)), values.dtype)

    define_op(
        f"SparseDenseCwise{_name}",
        inputs=["sp_indices: int64", "sp_values: T", "sp_shape: int64", "dense: T"],
        outputs=["output: T"],
        attrs=[NUMBERS],
        doc=f"The {_RESULTS[_name]} of each element of a sparse tensor and that of a dense one, which broadcasts to "
        "its shape. The gradient treats the dense one as a constant.",
        shape=_values_shape,
        reference=_by_element,
        gradient=_gradient,
        constant_inputs=("dense",) if not isinstance(_gradient, MissingGradient) else (),
        on_host=True,
    )
