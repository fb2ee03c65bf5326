"""Running sums, products and logsumexps along one axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from timberframe_core.ops.base.math.reduction import product_samples
from timberframe_core.ops.definition.accuracy import Accumulation, Accuracy, Bound
from timberframe_core.ops.definition.gradients import apply_op, conjugate
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, StaticShape, format_shape

_ATTRS = ("exclusive: bool = false", "reverse: bool = false")


def _shape(c: InferenceContext) -> list[Shape]:
    if c.shapes[1] not in ((), None):
        raise c.late_error(f"axis has shape {format_shape(c.shapes[1])}; it must have rank 0")
    axis, rank = c.value(1), c.rank(0)
    if axis is not None and rank is not None:
        c.axis(int(axis), rank)
    return [c.shapes[0]]


def _scan(accumulate: Any, identity: float, attrs: Attrs, x: Any, axis: Any) -> Any:
    """Returns the running values of `accumulate` (a ufunc's method) along an axis, from the
    other end with attr reverse.
    """
    lines = np.moveaxis(x, int(axis), -1)
    if attrs["reverse"]:
        lines = lines[..., ::-1]
    result = accumulate(lines, axis=-1, dtype=lines.dtype) if lines.shape[-1] else lines.copy()
    if attrs["exclusive"] and lines.shape[-1]:
        result = np.concatenate([np.full_like(result[..., :1], identity), result[..., :-1]], axis=-1)
    if attrs["reverse"]:
        result = result[..., ::-1]
    return np.ascontiguousarray(np.moveaxis(result, -1, int(axis)))


def _cumsum(attrs: Attrs, x: Any, axis: Any) -> Any:
    return _scan(np.add.accumulate, 0, attrs, x, axis)


def _cumprod(attrs: Attrs, x: Any, axis: Any) -> Any:
    return _scan(np.multiply.accumulate, 1, attrs, x, axis)


def _cumulative_logsumexp(attrs: Attrs, x: Any, axis: Any) -> Any:
    with np.errstate(all="ignore"):
        return _scan(np.logaddexp.accumulate, -np.inf, attrs, x, axis)


def _length(attrs: Attrs, x: Any, axis: Any) -> int:
    return int(x.shape[int(axis)])


def _logsumexp_error(attrs: Attrs, inputs: Any, expected: Any, u: float) -> Any:
    """Returns the bound: each of n steps adds u of the running value r and a few u of log1p and exp.

    A later value R >= r takes over exp(r - R) of that, and |r| exp(r - R) is at most |R| + 1/e. Beyond 2^53 log n the
    largest element is the result to the last digit, in every format: so gradients mark what is absent.
    """
    x, axis = inputs
    n = _length(attrs, x, axis)
    finite = np.where(np.isfinite(x), np.abs(x), 0.0)
    largest = np.max(finite, axis=int(axis), keepdims=True, initial=0.0) if n else 0.0
    added, size = np.log(n + 1.0), np.abs(expected)
    running = np.minimum(largest + added, np.where(np.isfinite(size), size, 0.0) + np.exp(-1.0))
    return np.where(2.0**-53 * size > added, 0.0, n * u * (4 + running))


_SMALL: tuple[tuple[StaticShape, int], ...] = (
    ((1,), 0), ((17,), 0), ((7, 13), 0), ((7, 13), -1), ((3, 4, 5), 1), ((0,), 0), ((3, 0, 2), 1), ((3, 0, 2), -1),
)  # fmt: skip
_LARGE: tuple[tuple[StaticShape, int], ...] = (
    ((65_537,), 0), ((65_537, 2), 0), ((2, 65_537), 0), ((2, 1, 3, 1, 2, 1, 3, 1), -6), ((5, 600), 0),
)  # fmt: skip


def _samples(axis_of_odd_size: int = 1) -> Iterable[Sample]:
    flags = [{"exclusive": e, "reverse": r} for e in (False, True) for r in (False, True)]
    for shape, axis in _SMALL:
        for attrs in flags:
            yield Sample([Arg(shape), Arg(values=axis)], attrs)
    for i, (shape, axis) in enumerate((*_LARGE, ((3, 127), axis_of_odd_size))):
        yield Sample([Arg(shape), Arg(values=axis)], flags[i % 4])


def _errors() -> Iterable[ErrorSample]:
    yield ErrorSample([Arg((2, 3)), Arg(values=2)], r"axis 2 is outside the input's rank 2")
    yield ErrorSample([Arg((2, 3)), Arg(values=-3)], r"axis -3 is outside the input's rank 2")
    yield ErrorSample([Arg(()), Arg(values=0)], r"axis 0 is outside the input's rank 0")
    yield ErrorSample([Arg((2, 3)), Arg(values=(0,))], r"must have rank 0")


def _define_scan(
    name: str, types: str, doc: str, reference: Any, accuracy: Accuracy, gradient: Any, samples: Any = _samples
) -> None:
    define_op(
        name,
        inputs=["x: T", "axis: Tidx"],
        outputs=["out: T"],
        attrs=[*_ATTRS, f"T: {types}", "Tidx: {int32, int64} = DT_INT32"],
        doc=f"{doc} exclusive leaves the element itself out, reverse starts from the end.",
        shape=_shape,
        reference=reference,
        shape_inputs=("axis",),
        accuracy=accuracy,
        samples=samples,
        errors=_errors,
        gradient=gradient,
    )


def _backwards(op: Any, op_name: str, x: Any) -> Any:
    """Returns the scan of another tensor from the other end."""
    attrs = {"exclusive": op.attrs["exclusive"], "reverse": not op.attrs["reverse"]}
    return apply_op(op_name, [x, op.inputs[1]], attrs)


def _product_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the sum of all products that an element is in, over the element.

    Of an element that is 0 it is the sum of the other elements' products: TensorFlow's is 0. Of the first two zeros of
    a line these products are computed with the element replaced, so that they depend on the other zero and have the
    right derivatives; those of a third one are 0, as are their derivatives. Lines without a zero are replaced by ones
    there, since infinite products would make NaN of the zeros that come back for them. Conjugated, which TensorFlow's
    own is not.
    """
    x, axis = op.inputs
    attrs = {name: op.attrs[name] for name in ("exclusive", "reverse")}
    none, one = apply_op("ZerosLike", [x]), apply_op("OnesLike", [x])
    zero = apply_op("Equal", [x, none])
    others = apply_op("SelectV2", [zero, one, x])
    result = _backwards(op, "Cumsum", conjugate(op.outputs[0]) * grad) / conjugate(others)
    result = apply_op("SelectV2", [zero, none, result])
    count = apply_op("Cumsum", [apply_op("Cast", [zero], {"DstT": x.dtype}), axis], {"reverse": op.attrs["reverse"]})
    for number in (1, 2):
        chosen = apply_op(
            "LogicalAnd", [zero, apply_op("Equal", [count, apply_op("Cast", [number], {"DstT": x.dtype})])]
        )
        present = apply_op("Any", [chosen, axis], {"keep_dims": True})
        factors = apply_op("SelectV2", [present, apply_op("SelectV2", [chosen, one, x]), one])
        products = apply_op("Cumprod", [factors, axis], attrs)
        found = _backwards(op, "Cumsum", conjugate(products) * grad)
        result = apply_op("SelectV2", [chosen, found, result])
    return [result, None]


def _logsumexp_gradient(op: Any, grad: Any) -> list[Any]:
    """exp(x) times the sum of grad / exp(y) over what an element is in, through logarithms of either sign's part."""
    x, y = op.inputs[0], op.outputs[0]
    lowest = float(grad.dtype.min)
    parts = []
    for part in (grad, -grad):
        present = part > 0
        log = apply_op("Log", [apply_op("SelectV2", [present, part, 1])])
        sums = _backwards(op, "CumulativeLogsumexp", apply_op("SelectV2", [present, log, lowest]) - y)
        parts.append(apply_op("Exp", [sums + x]))
    return [parts[0] - parts[1], None]


_define_scan(
    "Cumsum",
    "numbertype",
    "Running sum along an axis; integers wrap.",
    _cumsum,
    Accumulation(_length),
    lambda op, grad: [_backwards(op, "Cumsum", grad), None],
)
_define_scan(
    "Cumprod",
    "numbertype",
    "Running product along an axis; integers wrap.",
    _cumprod,
    Accumulation(_length),
    _product_gradient,
    lambda: product_samples(_samples()),
)
_define_scan(
    "CumulativeLogsumexp",
    "{bfloat16, half, float, double}",
    "Running logarithm of the sum of exponentials along an axis; -inf for no elements.",
    _cumulative_logsumexp,
    Bound(_logsumexp_error, "error of log(exp(a) + exp(b)) = max + log1p(exp(min - max)), summed over the chain"),
    _logsumexp_gradient,
    lambda: _samples(axis_of_odd_size=0),  # logarithms of long differences leave second derivatives few digits
)
