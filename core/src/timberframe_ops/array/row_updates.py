"""Rows changed by number, and copies: what TensorFlow does in place, here as functions of their inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import unchanged
from timberframe_core.shapes import Shape, compatible, format_shape

_IN_PLACE = MissingGradient("TensorFlow has none of copies and of changes in place either")


def _rows_shape(c: InferenceContext) -> list[Shape]:
    x, i, v = c.shapes
    if i is not None and len(i) != 1:
        raise c.late_error(f"i has shape {format_shape(i)}; it must be a vector")
    if x == ():
        raise c.late_error("x has rank 0; it must have rank 1 or more")
    if x is not None and i is not None and not compatible(v, (*i, *x[1:])):
        raise c.late_error(f"v has shape {format_shape(v)}; with this x and i it must be {format_shape((*i, *x[1:]))}")
    return [x]


_CHANGES: dict[str, Any] = {
    "Update": lambda row, value: value,
    "Add": lambda row, value: row + value,
    "Sub": lambda row, value: row - value,
}


def _rows_reference(kind: str) -> Any:
    def reference(attrs: Attrs, x: np.ndarray, i: np.ndarray, v: np.ndarray) -> np.ndarray:
        result, change = np.array(x), _CHANGES[kind]
        if result.size:
            with np.errstate(all="ignore"):
                for row, value in zip(i % len(result), v, strict=True):
                    result[row] = change(result[row], value)
        return result

    return reference


def _rows_samples() -> Iterator[Sample]:
    for shape, rows in (((4,), [1, 3]), ((3, 5), [2, 0]), ((3, 5), [-1, 7]), ((2, 3, 4), [1]), ((3, 2), [])):
        i = np.array(rows, np.int32)
        yield Sample([Arg(shape), Arg(values=i), Arg((len(rows), *shape[1:]))], types={"T": _NUMBERS})


_NUMBERS = ("float32", "float64", "float16", "int32", "int64", "uint8", "complex64")

for _kind, _verb in (("Update", "replaced by"), ("Add", "raised by"), ("Sub", "lowered by")):
    define_op(
        f"Inplace{_kind}",
        inputs=["x: T", "i: int32", "v: T"],
        outputs=["y: T"],
        attrs=["T: type"],
        doc=f"x with row i[k] {_verb} v[k], one k after the other; row numbers count modulo the number of rows.",
        shape=_rows_shape,
        reference=_rows_reference(_kind),
        gradient=_IN_PLACE,
        samples=_rows_samples,
        errors=lambda: [
            ErrorSample([Arg((3, 2)), Arg(values=np.array([1], np.int32)), Arg((2, 2))], r"v has shape \(2, 2\)"),
            ErrorSample([Arg((3, 2)), Arg(values=np.array(1, np.int32)), Arg((2,))], "i has shape .*must be a vector"),
        ],
    )

define_op(
    "DeepCopy",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["T: type"],
    doc="A copy of x in memory of its own.",
    shape=unchanged,
    reference=lambda attrs, x: np.array(x),
    gradient=_IN_PLACE,
    stateful=True,
    samples=lambda: [Sample([Arg(shape)]) for shape in ((), (0,), (7, 13))],
)


def _parallel_shape(c: InferenceContext) -> list[Shape]:
    wanted: Shape = c.attrs["shape"]
    for i, shape in enumerate(c.shapes):
        if shape is not None and (not shape or (shape[0] not in (None, 1))):
            raise c.error(f"values[{i}] has shape {format_shape(shape)}; its first size must be 1")
        if wanted is not None and shape is not None and not compatible(shape[1:], wanted[1:]):
            raise c.error(f"values[{i}] has shape {format_shape(shape)}; attr shape is {format_shape(wanted)}")
    if wanted and wanted[0] not in (None, len(c.shapes)):
        raise c.error(f"attr shape is {format_shape(wanted)}; its first size must be {len(c.shapes)}")
    return [wanted]


define_op(
    "ParallelConcat",
    inputs=["values: N * T"],
    outputs=["output: T"],
    attrs=["N: int >= 1", "T: type", "shape: shape"],
    doc="The inputs, whose first size is 1, one after the other along the first dimension.",
    shape=_parallel_shape,
    reference=lambda attrs, *values: np.concatenate(values, 0),
    gradient=lambda op, grad: [apply_op("ExpandDims", [part, 0]) for part in _rows_of(op, grad)],
    samples=lambda: [
        Sample([[Arg((1, *rest))] * n], {"shape": (n, *rest)}) for n, rest in ((1, ()), (3, (2,)), (2, (0,)))
    ],
    errors=lambda: [ErrorSample([[Arg((2, 3))] * 2], "its first size must be 1", {"shape": (2, 3)})],
)


def _rows_of(op: Any, grad: Any) -> list[Any]:
    parts = apply_op("Unpack", [grad], {"num": len(op.inputs), "axis": 0})
    return list(parts) if isinstance(parts, list | tuple) else [parts]
