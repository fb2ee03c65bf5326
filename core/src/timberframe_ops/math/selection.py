"""Choosing between values by a condition, and clipping to a range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.gradients import apply_op, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import BROADCAST_RULE, late_errors, merge_inputs, merge_shapes
from timberframe_core.shapes import Shape, broadcast, format_shape


def _select_shape(c: InferenceContext) -> list[Shape]:
    condition = c.shapes[0]
    result = merge_inputs(c, (1, 2))
    if condition is None or condition == ():
        return [result]
    if len(condition) == 1 and (result is None or len(result) > 1):
        if result is not None and None not in (condition[0], result[0]) and condition[0] != result[0]:
            raise c.error(
                f"condition has shape {format_shape(condition)} and t has shape {format_shape(result)}; "
                "a vector must have one element for each row of t"
            )
        return [result]
    return [merge_shapes(c, condition, result, "condition and t")]


def _select(attrs: Attrs, condition: Any, t: Any, e: Any) -> Any:
    rows = condition.reshape(condition.shape + (1,) * (t.ndim - 1)) if condition.ndim == 1 else condition
    return np.where(rows, t, e)


def _select_samples() -> Iterator[Sample]:
    for condition, shape in (
        ((), ()),
        ((), (131,)),
        ((), (7, 13)),
        ((131,), (131,)),
        ((7, 13), (7, 13)),
        ((2, 3, 5), (2, 3, 5)),
        ((7,), (7, 13)),
        ((5,), (5, 2, 3)),
        ((1,), (1, 29)),
        ((0,), (0, 3)),
        ((3,), (3, 0)),
        ((0, 4), (0, 4)),
        ((65_537,), (65_537, 2)),
    ):
        yield Sample((Arg(shape=condition), Arg(shape=shape), Arg(shape=shape)))


def _select_gradient(op: Any, grad: Any) -> list[Any]:
    condition, zeros = op.inputs[0], apply_op("ZerosLike", [grad])
    return [None, *(apply_op("Select", [condition, *pair]) for pair in ((grad, zeros), (zeros, grad)))]


define_op(
    "Select",
    inputs=("condition: bool", "t: T", "e: T"),
    outputs=("output: T",),
    attrs=("T: type",),
    python_names={"t": "x", "e": "y"},
    doc="Elements of t where condition holds, else of e. t and e have one shape; condition has it too, or is one value "
    "for all, or a vector with one value for each row.",
    shape=_select_shape,
    reference=_select,
    elementwise=True,  # but for a condition that chooses rows
    samples=_select_samples,
    gradient=_select_gradient,
    errors=lambda: (
        ErrorSample((Arg(shape=(3,)), Arg(shape=(2, 3)), Arg(shape=(2, 3))), match="one element for each row"),
        ErrorSample((Arg(shape=()), Arg(shape=(2, 3)), Arg(shape=(1, 3))), match="must be equal"),
        ErrorSample((Arg(shape=(2, 3)), Arg(shape=(2, 3, 1)), Arg(shape=(2, 3, 1))), match="must be equal"),
        ErrorSample((Arg(shape=(1,)), Arg(shape=()), Arg(shape=())), match="must be equal"),
    ),
)


def _select_v2_shape(c: InferenceContext) -> list[Shape]:
    try:
        return [broadcast(broadcast(c.shapes[0], c.shapes[1]), c.shapes[2])]
    except ValueError:
        condition, t, e = map(format_shape, c.shapes)
        raise c.error(f"condition {condition}, t {t} and e {e} do not broadcast; {BROADCAST_RULE}") from None


def _select_v2_samples() -> Iterator[Sample]:
    for condition, t, e in (
        ((), (), ()),
        ((131,), (131,), (131,)),
        ((7, 13), (7, 13), (7, 13)),
        ((7, 13), (), ()),
        ((131,), (131,), ()),
        ((131,), (), (131,)),
        ((), (7, 13), (13,)),
        ((7, 1), (7, 13), (7, 13)),
        ((13,), (7, 13), (7, 1)),
        ((7, 1), (1, 13), ()),
        ((2, 1, 5), (3, 1), (2, 3, 5)),
        ((2, 1, 3, 1, 2), (1, 3, 1, 2, 1), (1,)),
        ((0, 1), (1, 3), (1, 1)),
        ((65_537, 1), (2,), ()),
        ((1,), (29,), (29,)),
    ):
        yield Sample((Arg(shape=condition), Arg(shape=t), Arg(shape=e)))


def _select_v2_gradient(op: Any, grad: Any) -> list[Any]:
    condition, t, e = op.inputs
    chosen = (apply_op("SelectV2", [condition, *pair]) for pair in ((grad, 0), (0, grad)))
    return [None, *(sum_to_shape(part, x) for part, x in zip(chosen, (t, e), strict=True))]


define_op(
    "SelectV2",
    inputs=("condition: bool", "t: T", "e: T"),
    outputs=("output: T",),
    attrs=("T: type",),
    doc="Elements of t where condition holds, else of e; all three broadcast.",
    shape=_select_v2_shape,
    reference=lambda attrs, condition, t, e: np.where(condition, t, e),
    elementwise=True,
    samples=_select_v2_samples,
    gradient=_select_v2_gradient,
    errors=lambda: (
        ErrorSample((Arg(shape=(3,)), Arg(shape=(2, 2)), Arg(shape=(2, 2))), match="do not broadcast"),
        ErrorSample((Arg(shape=()), Arg(shape=(2,)), Arg(shape=(3,))), match="do not broadcast"),
    ),
)


@late_errors
def _clip_shape(c: InferenceContext) -> list[Shape]:
    shape = c.shapes[0]
    for i, bound in ((1, "clip_value_min"), (2, "clip_value_max")):
        if c.shapes[i] != ():
            shape = merge_shapes(c, shape, c.shapes[i], f"t and {bound}, which is no scalar,")
    return [shape]


def _clip(attrs: Attrs, t: Any, low: Any, high: Any) -> Any:
    if t.dtype.kind == "c":
        real, imaginary = (
            _clip(attrs, *parts) for parts in ((t.real, low.real, high.real), (t.imag, low.imag, high.imag))
        )
        clipped = np.empty(np.shape(real), t.dtype)  # a sum with 1j * imaginary would lose the sign of zeros
        clipped.real, clipped.imag = real, imaginary
        return clipped
    below = np.where(t > high, high, t)
    return np.where(below < low, low, below).astype(t.dtype)


def _clip_samples() -> Iterator[Sample]:
    for shape in ((), (1,), (131,), (7, 13), (3, 0), (65_537,)):
        bounded = Arg(shape=shape, special=False)
        yield Sample((Arg(shape=shape), Arg(values=1), Arg(values=3)))
        yield Sample((Arg(shape=shape), bounded, bounded))
        yield Sample((Arg(shape=shape), Arg(values=3), bounded))
        yield Sample((Arg(shape=shape), bounded, Arg(values=3)))
    yield Sample((Arg(values=(1, 5, 9)), Arg(values=7), Arg(values=3)))
    nan = np.nan
    floats = {"T": ("float16", "bfloat16", "float32", "float64")}
    yield Sample(
        (Arg(values=(nan, 1.0, 5.0, -5.0)), Arg(values=(0.0, nan, 0.0, 0.0)), Arg(values=(1.0, 1.0, nan, 1.0))),
        types=floats,
    )


def _clip_gradient(op: Any, grad: Any) -> list[Any]:
    """To t where it was kept, to a bound where that was taken; of complex numbers by part."""
    if not grad.dtype.is_complex:
        parts = _clip_real_gradient([*op.inputs, grad])
    else:
        names = {"Tout": grad.dtype.real_dtype}
        split = ([apply_op(part, [x], names) for x in (*op.inputs, grad)] for part in ("Real", "Imag"))
        by_part = zip(*map(_clip_real_gradient, split), strict=True)
        parts = [apply_op("Complex", list(pair), {"Tout": grad.dtype}) for pair in by_part]
    return [sum_to_shape(part, x) for part, x in zip(parts, op.inputs, strict=True)]


def _clip_real_gradient(tensors: Sequence[Any]) -> list[Any]:
    t, low, high, grad = tensors
    zeros, above = apply_op("ZerosLike", [grad]), t > high
    below = apply_op("SelectV2", [above, high, t]) < low
    of_low, rest = (apply_op("SelectV2", [below, *pair]) for pair in ((grad, zeros), (zeros, grad)))
    of_t, of_high = (apply_op("SelectV2", [above, *pair]) for pair in ((zeros, rest), (rest, zeros)))
    return [of_t, of_low, of_high]


define_op(
    "ClipByValue",
    inputs=("t: T", "clip_value_min: T", "clip_value_max: T"),
    outputs=("output: T",),
    attrs=("T: numbertype",),
    doc="t brought below clip_value_max and then above clip_value_min, which are scalars or have t's shape. A NaN in t "
    "stays, one in a bound is no bound. Complex numbers are clipped by part.",
    shape=_clip_shape,
    reference=_clip,
    elementwise=True,
    samples=_clip_samples,
    gradient=_clip_gradient,
    errors=lambda: (
        ErrorSample((Arg(shape=(4,)), Arg(shape=(2,)), Arg(shape=())), match="must be equal"),
        ErrorSample((Arg(shape=(2, 2)), Arg(shape=()), Arg(shape=(1,))), match="must be equal"),
        ErrorSample((Arg(shape=()), Arg(shape=(1,)), Arg(shape=())), match="must be equal"),
    ),
)
