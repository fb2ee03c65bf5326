"""Ops that stop a run: CheckNumerics and Assert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import unchanged
from timberframe_core.shapes import Shape, format_shape


def nonfinite_message(op: str, message: str) -> str:
    """Returns the message of CheckNumerics and CheckNumericsV2 for the counts of NaN, +Inf, -Inf
    and all infinite elements.
    """
    prefix = message.replace("{", "{{").replace("}", "}}")
    fact = "{1} +Inf and {2} -Inf" if op == "CheckNumericsV2" else "{3} infinite"
    return f"{prefix}: the tensor has {{0}} NaN, {fact} values; all must be finite"


def _finite(op: str) -> Any:
    def reference(attrs: Attrs, x: np.ndarray) -> np.ndarray:
        wide = x.astype(np.float64)
        nan, positive, negative = (int(n.sum()) for n in (np.isnan(wide), wide == np.inf, wide == -np.inf))
        if nan or positive or negative:
            message = nonfinite_message(op, str(attrs["message"]))
            raise InvalidArgumentError(message.format(nan, positive, negative, positive + negative))
        return x

    return reference


def _finite_samples() -> Iterator[Sample]:
    for shape in ((), (0,), (1,), (7, 13), (65_537,), (3, 0, 2)):
        yield Sample([Arg(shape, special=False)], {"message": "weights"})
    yield Sample([Arg(values=[0.0, -0.0, 1e-7, -1e4])], {"message": ""})


def _finite_errors(signed: bool) -> Iterator[ErrorSample]:
    def wrong(values: Any, match: str) -> ErrorSample:
        return ErrorSample([Arg(values=values)], match, {"message": "weights {0}"})

    nan, inf = float("nan"), float("inf")
    one, many = ("1 [+]Inf and 0 -Inf", "1 [+]Inf and 1 -Inf") if signed else ("1 infinite", "2 infinite")
    yield wrong([1.0, nan], r"weights \{0\}: the tensor has 1 NaN")
    yield wrong(nan, "the tensor has 1 NaN")
    yield wrong([inf, 1.0], f"{one} values; all must be finite")
    yield wrong([inf, nan, -inf, nan], f"2 NaN.*{many} values; all must be finite")
    yield wrong([0.0] * 70_000 + [nan], "the tensor has 1 NaN")


def _finite_gradient(op: Any, grad: Any) -> list[Any]:
    message = f"gradient of {op.name}: {op.attrs['message']}"
    return [apply_op(op.type, [grad], {"message": message})]


for _name in ("CheckNumerics", "CheckNumericsV2"):
    define_op(
        _name,
        inputs=["tensor: T"],
        outputs=["output: T"],
        attrs=["T: {bfloat16, half, float, double}", "message: string"],
        doc=(
            "The tensor itself, if all its elements are finite; else an error with `message` and counts of NaN "
            + ("and infinite values." if _name == "CheckNumerics" else "values and the infinite ones of each sign.")
        ),
        shape=unchanged,
        reference=_finite(_name),
        gradient=_finite_gradient,
        stateful=True,
        alias=((0, 0),),
        samples=_finite_samples,
        errors=lambda signed=_name == "CheckNumericsV2": _finite_errors(signed),
    )


def summary(x: np.ndarray, count: int) -> str:
    """Returns the first `count` elements (all if negative) of an array, with brackets for each
    dimension, as TensorFlow's.
    """
    limit = x.size if count < 0 else count
    parts: list[str] = []
    if x.ndim == 0:
        parts.append(element_text(x[()]) if limit else "")
    else:
        _summarize(x, limit, 0, parts)
    return f"[{''.join(parts)}{'...' if x.size > limit else ''}]"


def _summarize(x: np.ndarray, left: int, depth: int, parts: list[str]) -> int:
    """Appends the texts of at most `left` elements, and returns how many may still be shown."""
    for i, item in enumerate(x):
        if left <= 0:
            if x.ndim == 1 and depth:
                parts.append("...")
            break
        if x.ndim == 1:
            parts.append((" " if i else "") + element_text(item))
            left -= 1
        else:
            parts.append("[")
            left = _summarize(item, left, depth + 1, parts)
            parts.append("]")
    return left


def element_text(x: Any) -> str:
    """Returns an element as TensorFlow writes it: floats with as many digits as tell them apart, bools as 0 and 1."""
    if isinstance(x, bytes):
        return x.decode(errors="backslashreplace")
    if isinstance(x, bool | np.bool_):
        return str(int(x))
    if isinstance(x, np.complexfloating):
        return "?"
    if isinstance(x, np.integer):
        return str(x)
    wide = x.dtype.itemsize == 8
    short = f"{float(x):.{15 if wide else 6}g}"
    exact = (np.float64 if wide else np.float32)(short) == x
    return short if exact or x != x else f"{float(x):.{17 if wide else 9}g}"  # as many digits as tell floats apart


def assertion_error(op: str, name: str, attrs: Attrs, data: list[np.ndarray]) -> InvalidArgumentError:
    """Returns the error of an Assert whose condition is false."""
    return InvalidArgumentError(f"{op} '{name}': {_assertion_message(attrs, data)}", name)


def _assertion_message(attrs: Attrs, data: list[np.ndarray]) -> str:
    shown = " ".join(summary(x, attrs["summarize"]) for x in data)
    return f"assertion failed: {shown}; the condition must be true"


def _assert_shape(c: InferenceContext) -> list[Shape]:
    condition = c.shapes[0]
    if condition is not None and condition != ():
        raise c.late_error(f"condition has shape {format_shape(condition)}; it must be a scalar")
    return []


def _assert(attrs: Attrs, condition: np.ndarray, *data: np.ndarray) -> tuple[()]:
    if not condition:
        raise InvalidArgumentError(_assertion_message(attrs, list(data)))
    return ()


def _assert_errors() -> Iterator[ErrorSample]:
    false = Arg(values=False)
    numbers, text = (
        Arg(values=np.arange(10), dtype="int32"),
        Arg(values=np.array([b"too", b"many"], object), dtype="string"),
    )
    yield ErrorSample([false, [numbers]], r"assertion failed: \[0 1 2\.\.\.\]; the condition must be true")
    yield ErrorSample([false, [numbers, text]], r"assertion failed: \[0 1\.\.\.\] \[too many\]", {"summarize": 2})
    yield ErrorSample(
        [false, [Arg(values=[[1.5, 2.0], [0.25, 4.0]], dtype="float32")]], r"\[\[1.5 2\]\[0.25 4\]\]", {"summarize": -1}
    )
    yield ErrorSample([Arg(values=[True]), [numbers]], r"condition has shape \(1,\); it must be a scalar")


define_op(
    "Assert",
    inputs=["condition: bool", "data: T"],
    attrs=["T: list(type) >= 1", "summarize: int = 3"],
    doc="Fails unless the condition is true; the error shows the first `summarize` elements (-1: all) of each input.",
    shape=_assert_shape,
    reference=_assert,
    reports_to_host=True,
    gradient=NotDifferentiable("it has no output"),
    stateful=True,
    samples=lambda: [
        Sample([Arg(values=True), [Arg((3,), dtype="float32"), Arg((), dtype="int64")]], {"summarize": 2})
    ],
    errors=_assert_errors,
)
