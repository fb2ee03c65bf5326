"""Reductions along axes: sums, means, products, extremes and norms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from timberframe_core.dtypes import NUMERIC, as_dtype
from timberframe_core.ops.base.math.reduction_gradients import (
    extreme_gradient,
    mean_gradient,
    norm_gradient,
    product_gradient,
    sum_gradient,
)
from timberframe_core.ops.definition.accuracy import EXACT, Accumulation, Accuracy, Bound, Pointwise
from timberframe_core.ops.definition.opdef import (
    UNKNOWN,
    Attrs,
    GradientNote,
    InferenceContext,
    NotDifferentiable,
    Reduction,
    define_op,
)
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import scalar
from timberframe_core.shapes import Shape, StaticShape, format_shape

_REAL = "T: realnumbertype"
_NUMBER = "T: numbertype"
_TIDX = "Tidx: {int32, int64} = DT_INT32"
_REAL_TYPES = tuple(t.name for t in NUMERIC if not t.is_complex)
_VALUE_LIMIT = 4096  # elements; shape arithmetic works on less, and the host should not do a device's work


def reduced_axes(input: Any, reduction_indices: Any) -> tuple[int, ...]:
    """Returns the reduced dimensions counted from the front, for axes that the shape function has checked."""
    rank = np.ndim(input)
    return tuple(int(a) % rank for a in np.ravel(reduction_indices))


def _axes(c: InferenceContext) -> tuple[int, ...] | None:
    """Returns the reduced dimensions counted from the front; None while they or the rank are unknown."""
    axes_rank = c.rank(1)
    if axes_rank is not None and axes_rank > 1:
        raise c.error(f"reduction_indices has shape {format_shape(c.shapes[1])}; it must be a scalar or a vector")
    value, rank = c.value(1), c.rank(0)
    if value is None or rank is None:
        return None
    axes = [c.axis(int(a), rank, "reduction index") for a in np.ravel(value)]
    for axis in axes:
        if axes.count(axis) > 1:
            given = ", ".join(str(int(a)) for a in np.ravel(value))
            raise c.error(f"reduction_indices [{given}] name dimension {axis} twice; each dimension may occur once")
    return tuple(axes)


def _reduced_shape(c: InferenceContext) -> list[Shape]:
    axes, shape = _axes(c), c.shapes[0]
    keep = c.attrs["keep_dims"]
    if shape is None:
        return [None]
    if axes is None:
        return [(None,) * len(shape) if keep else None]
    if keep:
        return [tuple(1 if i in axes else d for i, d in enumerate(shape))]
    return [tuple(d for i, d in enumerate(shape) if i not in axes)]


def _host_value(c: InferenceContext) -> list[np.ndarray | None]:
    """Returns the reduction of a small host value, elements of which may be unknown."""
    x, axes = c.values[0], c.value(1)
    if x is None or axes is None or x.size > _VALUE_LIMIT or c.op.reference is None:
        return [None]
    result = np.asarray(c.op.reference(c.attrs, x, axes))
    if result.dtype == object and not any(v is UNKNOWN for v in result.flat):
        result = result.astype(c.dtypes[0].numpy)
    return [result]


def _host_extreme(c: InferenceContext) -> list[np.ndarray | None]:
    """Like `_host_value`; an unknown element leaves the extreme unknown."""
    return [None] if c.value(0) is None else _host_value(c)


def _sum(attrs: Attrs, input: Any, reduction_indices: Any) -> Any:
    axes = reduced_axes(input, reduction_indices)
    return np.sum(input, axis=axes, dtype=input.dtype, keepdims=attrs["keep_dims"])


def _prod(attrs: Attrs, input: Any, reduction_indices: Any) -> Any:
    axes = reduced_axes(input, reduction_indices)
    return np.prod(input, axis=axes, dtype=input.dtype, keepdims=attrs["keep_dims"])


def _mean(attrs: Attrs, input: Any, reduction_indices: Any) -> Any:
    axes = reduced_axes(input, reduction_indices)
    count = math.prod(input.shape[a] for a in axes)
    if input.dtype.kind not in "iu":
        with np.errstate(all="ignore"):
            total = np.sum(input, axis=axes, dtype=input.dtype, keepdims=attrs["keep_dims"])
            if count == 0 and input.dtype.kind == "c":
                return np.zeros_like(total)
            if input.dtype.kind == "c":  # part by part: a quotient of complex numbers turns an infinity into NaN
                return (np.stack([total.real, total.imag], axis=-1) / count).view(total.dtype)[..., 0]
            return total / np.asarray(count, total.dtype)
    wide = np.uint64 if input.dtype.kind == "u" else np.int64
    total = np.sum(input, axis=axes, dtype=wide, keepdims=attrs["keep_dims"])
    # Towards zero, as C divides; the mean of nothing is 0.
    return (np.sign(total) * (np.abs(total) // wide(max(count, 1)))).astype(input.dtype)


def _lowest(dtype: Any) -> Any:
    kind = as_dtype(dtype)
    return kind.min if kind.is_integer else -np.inf


def _highest(dtype: Any) -> Any:
    kind = as_dtype(dtype)
    return kind.max if kind.is_integer else np.inf


def _max(attrs: Attrs, input: Any, reduction_indices: Any) -> Any:
    axes = reduced_axes(input, reduction_indices)
    return np.max(input, axis=axes, keepdims=attrs["keep_dims"], initial=_lowest(input.dtype))


def _min(attrs: Attrs, input: Any, reduction_indices: Any) -> Any:
    axes = reduced_axes(input, reduction_indices)
    return np.min(input, axis=axes, keepdims=attrs["keep_dims"], initial=_highest(input.dtype))


def _euclidean_norm(attrs: Attrs, input: Any, reduction_indices: Any) -> Any:
    axes = reduced_axes(input, reduction_indices)
    squares = (input * np.conj(input)).astype(input.dtype)
    total = np.sum(squares, axis=axes, dtype=input.dtype, keepdims=attrs["keep_dims"])
    if input.dtype.kind == "c":
        return np.sqrt(total.real).astype(input.dtype)
    if input.dtype.kind in "iu":
        # Squares and their sum wrap; a negative sum has no root.
        return np.sqrt(np.maximum(total, 0).astype(np.float64)).astype(input.dtype)
    return np.sqrt(total)


def _count(attrs: Attrs, input: Any, reduction_indices: Any) -> int:
    return math.prod(input.shape[a] for a in reduced_axes(input, reduction_indices))


def _norm_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    n = _count(attrs, *inputs)
    smallest = 2.0**-149 if u > 1e-10 else 2.0**-1074
    # A relative error of gamma_(n+1) in the sum of squares halves under the root; squares may underflow by `smallest`.
    return (n + 4) * u * np.abs(expected) + math.sqrt(n * smallest)


_SAMPLES: tuple[tuple[StaticShape, Any], ...] = (
    ((), ()),  # nothing to reduce
    ((1,), (0,)),
    ((17,), 0),  # the axis as a scalar
    ((17,), ()),  # no axis: a copy
    ((3, 5), ()),
    ((0,), (0,)),  # the reduction of nothing
    ((0, 3), (0,)),
    ((0, 3), (1,)),
    ((3, 0, 2), (-2,)),
    ((7, 13), (0,)),
    ((7, 13), (-1,)),
    ((7, 13), (1, 0)),
    ((257, 3), (0,)),  # narrow columns
    ((3, 257), (1,)),
    ((5, 300), (-1,)),  # longer than one set of accumulators
    ((601, 41), (0,)),
    ((3, 1031), (0,)),  # more columns than a tile of them
    ((2, 3, 5, 7), (0, 2)),  # alternating
    ((2, 3, 5, 7), (1, 3)),
    ((2, 3, 5, 7), (1, 2)),
    ((2, 3, 5, 7), (0, -1)),
    ((2, 1, 3, 1, 2, 1, 3, 1), (0, 2, 4, 6)),  # rank 8
    ((2, 3, 2, 3, 2, 3, 2, 3), (1, 3, 5, 7)),
    ((65_537,), (0,)),  # above 65,535 along either dimension
    ((65_539, 2), (0,)),
    ((65_539, 2), (1,)),
    ((3, 65_537), (1,)),
    ((3, 65_537), (0,)),
    ((131_101,), (0,)),  # long enough to be cut into segments
    ((2, 70_001), (1,)),
    ((2, 1500, 50), (0, 1)),
    ((3, 127), (1,)),  # one less than whole vectors
    ((127, 3), (0,)),
    ((131, 1031), (0,)),  # more columns than a tile of them, long enough to be cut into segments
)


def _samples() -> Iterable[Sample]:
    for i, (shape, axes) in enumerate(_SAMPLES):
        for keep in (False, True) if i < 20 else (i % 2 == 1,):
            yield Sample([Arg(shape), Arg(values=axes)], {"keep_dims": keep})


def product_samples(samples: Iterable[Sample]) -> Iterable[Sample]:
    """Yields the samples with elements near magnitude one, so that no product overflows on the way, in any order."""
    for sample in samples:
        x, axes = sample.inputs
        assert isinstance(x, Arg)
        real, complex_ = (replace(x, low=low, high=high, special=False) for low, high in ((0.96, 1.04), (0.69, 0.724)))
        yield replace(sample, inputs=[real, axes], types={"T": _REAL_TYPES})
        yield replace(sample, inputs=[complex_, axes], types={"T": ("complex64", "complex128")})


def _errors() -> Iterable[ErrorSample]:
    for shape, axes, match in (
        ((2, 3), (2,), r"reduction index 2 is outside the input's rank 2"),
        ((2, 3), (-3,), r"reduction index -3 is outside the input's rank 2"),
        ((), (0,), r"reduction index 0 is outside the input's rank 0"),
        ((2, 3), (0, 0), r"reduction_indices \[0, 0\] name dimension 0 twice"),
        ((2, 3), (1, -1), r"reduction_indices \[1, -1\] name dimension 1 twice"),
        ((2, 3), ((0,), (1,)), r"reduction_indices has shape \(2, 1\)"),
    ):
        yield ErrorSample([Arg(shape), Arg(values=axes)], match)


def _define_reduction(
    name: str,
    type_attr: str,
    doc: str,
    reference: Any,
    accuracy: Accuracy = EXACT,
    value: Any = None,
    samples: Any = _samples,
    *,
    reduction: Reduction | None = None,
    total_value: bool = False,
    gradient: Any,
    gradient_notes: tuple[GradientNote, ...] = (),
) -> None:
    define_op(
        name,
        inputs=["input: T", "reduction_indices: Tidx"],
        outputs=["output: T"],
        attrs=["keep_dims: bool = false", type_attr, _TIDX],
        python_names={"reduction_indices": "axis"},
        doc=f"{doc} Axes may be negative; no axis means a copy. keep_dims keeps reduced dimensions with size 1.",
        shape=_reduced_shape,
        reference=reference,
        value=value,
        shape_inputs=("reduction_indices",),
        reduction=reduction,
        total_value=total_value,
        accuracy=accuracy,
        samples=samples,
        errors=_errors,
        gradient=gradient,
        gradient_notes=gradient_notes,
    )


_ANY_ZERO = Pointwise(0.0, 0.0, 0.0)  # exact, but of -0 and 0 either may be the larger

_define_reduction(
    "Sum",
    _NUMBER,
    "Sum over the given axes; integers wrap.",
    _sum,
    Accumulation(_count),
    _host_value,
    reduction="sum",
    gradient=sum_gradient,
)
_define_reduction(
    "Mean",
    _NUMBER,
    "Mean over the given axes. Integers are summed in 64 bits and divided towards zero; the mean of nothing is NaN, "
    "and 0 for integers and complex numbers.",
    _mean,
    Accumulation(lambda attrs, *inputs: _count(attrs, *inputs) + 2),
    reduction="mean",
    gradient=mean_gradient,
)
_define_reduction(
    "Prod",
    _NUMBER,
    "Product over the given axes; integers wrap.",
    _prod,
    Accumulation(_count),
    _host_value,
    lambda: product_samples(_samples()),
    reduction="product",
    total_value=True,
    gradient=product_gradient,
)
_define_reduction(
    "Max",
    _REAL,
    "Largest element; NaN if there is one; none: the lowest.",
    _max,
    _ANY_ZERO,
    _host_extreme,
    reduction="max",
    gradient=extreme_gradient,
)
_define_reduction(
    "Min",
    _REAL,
    "Smallest element, NaN if there is one; none: the highest.",
    _min,
    _ANY_ZERO,
    _host_extreme,
    reduction="min",
    gradient=extreme_gradient,
)
_define_reduction(
    "EuclideanNorm",
    _NUMBER,
    "Root of the sum of squared magnitudes. Of integers: the sum wraps; its root is cut off, 0 of a negative one.",
    _euclidean_norm,
    Bound(_norm_error, "Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1, and the root"),
    gradient=norm_gradient,
    gradient_notes=("nan_at_zero",),
)


def _define_logical(name: str, doc: str, reference: Any, reduction: Reduction) -> None:
    define_op(
        name,
        inputs=["input: bool", "reduction_indices: Tidx"],
        outputs=["output: bool"],
        attrs=["keep_dims: bool = false", _TIDX],
        python_names={"reduction_indices": "axis"},
        doc=doc,
        shape=_reduced_shape,
        reference=reference,
        gradient=NotDifferentiable("booleans have no gradient"),
        shape_inputs=("reduction_indices",),
        reduction=reduction,
        samples=_samples,
        errors=_errors,
    )


def _all(attrs: Attrs, input: Any, reduction_indices: Any) -> Any:
    return np.all(input, axis=reduced_axes(input, reduction_indices), keepdims=attrs["keep_dims"])


def _any(attrs: Attrs, input: Any, reduction_indices: Any) -> Any:
    return np.any(input, axis=reduced_axes(input, reduction_indices), keepdims=attrs["keep_dims"])


_define_logical("All", "Whether every element along the axes is true; true for none.", _all, "all")
_define_logical("Any", "Whether some element along the axes is true; false for none.", _any, "any")


l2_loss = define_op(
    "L2Loss",
    inputs=["t: T"],
    outputs=["output: T"],
    attrs=["T: {half, bfloat16, float, double}"],
    doc="Half the sum of the squares of all elements.",
    shape=scalar,
    reference=lambda attrs, t: np.asarray(np.sum(t * t, dtype=t.dtype) / np.asarray(2, t.dtype)),
    accuracy=Accumulation(lambda attrs, t: t.size + 2),
    gradient=lambda op, grad: [op.inputs[0] * grad],
    samples=lambda: [Sample([Arg(s)]) for s in ((), (0,), (1,), (17,), (7, 13), (65_537,), (3, 5, 7, 2), (140_001,))],
)
