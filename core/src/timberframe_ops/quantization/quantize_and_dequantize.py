"""QuantizeAndDequantizeV2 to V4: floating numbers rounded to those that integers of some bits stand for; 0 is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, compatible, format_shape
from timberframe_ops.quantization.ranges import along, check_axis, check_ends, ends_shape

_FLOATS = "T: {bfloat16, half, float, double}"
_ENDS = ("input_min", "input_max")
_MOST_BITS = 62
"""TensorFlow's limit: the integers are held in 64 bits."""


def _check_bits(attrs: Attrs, bits: int) -> str:
    """Returns what is wrong about the number of bits, "" where nothing is."""
    least = 1 + attrs["signed_input"]
    if least <= bits <= _MOST_BITS + attrs["signed_input"]:
        return ""
    return f"num_bits is {bits}; {least} to {_MOST_BITS + attrs['signed_input']} are required"


def _shape(bits_input: bool) -> Callable[[InferenceContext], Sequence[Shape]]:
    """Returns the shape function. bits_input: whether the number of bits is the last input, else it is an attr."""

    @late_errors
    def shape(c: InferenceContext) -> Sequence[Shape]:
        x = c.shapes[0]
        axis = check_axis(c, x)
        check_ends(c, 1, _ENDS, ends_shape(axis, x))
        if bits_input and not compatible(c.shapes[3], ()):
            raise c.error(f"num_bits has shape {format_shape(c.shapes[3])}; it must be a scalar")
        bits = c.value(3) if bits_input else c.attrs["num_bits"]
        wrong = "" if bits is None else _check_bits(c.attrs, int(bits))
        if wrong:
            raise c.error(wrong)
        return [x]

    return shape


def computing(dtype: DType) -> Any:
    """Returns the NumPy type in which numbers of a floating dtype are computed: float32, or float64 for its own."""
    return np.float64 if dtype.name == "float64" else np.float32


def _limits(attrs: Attrs, kind: Any, bits: int, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns the ends that are used, the steps of a unit, the width of one; the end that needs more steps decides."""
    signed = bits - 1 if attrs["signed_input"] else bits
    first = kind(-(2**signed) + attrs["narrow_range"]) if attrs["signed_input"] else kind(0)
    last, most = kind(2**signed - 1), kind(np.finfo(kind).max)
    by_low, by_high = (np.where(end * x > 0, end / x, most).astype(kind) for end, x in ((first, low), (last, high)))
    lower = by_low < by_high
    # first is 0 of unsigned integers, where the upper end decides.
    step = np.where(lower, low / (first or kind(1)), high / last).astype(kind)
    return np.where(lower, low, first * step), np.where(lower, last * step, high), np.minimum(by_low, by_high), step


def _rounded(attrs: Attrs, x: np.ndarray, *ends: np.ndarray, bits: int | None = None) -> np.ndarray:
    """Computes in float32, or float64 for its own, whatever it is given: every device gives the same bits."""
    kind, axis = computing(attrs["T"]), attrs["axis"]
    x, (low, high) = np.asarray(x, kind), (np.asarray(end, kind) for end in ends[:2])
    bits = attrs["num_bits"] if bits is None else bits
    if attrs["range_given"]:
        if (low > high).any():
            at = int(np.argmax(low > high))
            raise InvalidArgumentError(
                f"input_min is {low.flat[at]} and input_max {high.flat[at]}; input_min must be at most input_max"
            )
    else:
        axes = None if axis < 0 else tuple(i for i in range(x.ndim) if i != axis)
        low, high = np.min(x, axes, initial=np.inf), np.max(x, axes, initial=-np.inf)
    with np.errstate(all="ignore"):
        low, high, scale, step = (along(axis, x, np.asarray(y)) for y in _limits(attrs, kind, bits, low, high))
        within = np.maximum(np.minimum(x, high), low) if attrs["range_given"] else x
        steps = within * scale
        up = attrs.get("round_mode") == "HALF_UP"
        return np.asarray((np.floor(steps + kind(0.5)) if up else np.rint(steps)) * step)


def _rounded_by_input(attrs: Attrs, x: np.ndarray, low: np.ndarray, high: np.ndarray, bits: np.ndarray) -> np.ndarray:
    wrong = _check_bits(attrs, int(bits))
    if wrong:
        raise InvalidArgumentError(wrong)
    return _rounded(attrs, x, low, high, bits=int(bits))


def _passed(op: Any, grad: Any) -> list[Any]:
    return [grad, *[None] * (len(op.inputs) - 1)]


def _within(op: Any, grad: Any) -> list[Any]:
    inputs = [grad, *op.inputs[-3:]]
    return list(apply_op("QuantizeAndDequantizeV4Grad", inputs, {"axis": op.attrs["axis"]}))


def _within_again(op: Any, grad: Any, *ends: Any) -> list[Any]:
    return [_within(op, grad)[0], None, None, None]


_RANGES = ((-1.5, 3.25), (-6.0, 2.0), (0.0, 3.0))


def _samples(bits_input: bool) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for given in (True, False):
            for low, high in _RANGES:
                for bits, signed, narrow in ((8, True, False), (8, True, True), (3, False, False), (16, True, True)):
                    attrs: dict[str, Any] = {"signed_input": signed, "range_given": given, "narrow_range": narrow}
                    number = [Arg(values=np.int32(bits))] if bits_input else []
                    if not bits_input:
                        attrs |= {"num_bits": bits, "round_mode": "HALF_UP" if narrow else "HALF_TO_EVEN"}
                    ends = [Arg(values=np.float32(x)) for x in (low, high)]
                    yield Sample([Arg((2, 3, 5), special=False), *ends, *number], attrs)
                    each = [Arg(values=np.linspace(x, 2 * x, 3, dtype=np.float32)) for x in (low, high)]
                    yield Sample([Arg((2, 3, 5), special=False), *each, *number], {**attrs, "axis": 1})
        ends = [Arg(values=np.float32(x)) for x in (-1, 1)]
        for shape in ((), (7,), (4, 67)):
            yield Sample([Arg(shape), *ends, *[Arg(values=np.int32(8))] * bits_input], {"range_given": True})

    return samples


def _errors(bits_input: bool) -> Callable[[], Iterator[ErrorSample]]:
    def errors() -> Iterator[ErrorSample]:
        x, one, two = Arg((2, 3)), Arg(values=np.float32(1)), Arg(values=np.ones(2, np.float32))
        for bits, signed, least in ((1, True, 2), (64, True, 2), (0, False, 1), (63, False, 1)):
            number = [Arg(values=np.int32(bits))] if bits_input else []
            attrs = {"signed_input": signed} | ({} if bits_input else {"num_bits": bits})
            yield ErrorSample([x, one, one, *number], f"num_bits is {bits}; {least} to ", attrs)
        number = [Arg(values=np.int32(8))] * bits_input
        yield ErrorSample([x, one, one, *number], "axis is 2 for an input of rank 2", {"axis": 2})
        yield ErrorSample([x, two, two, *number], r"input_min has shape \(2,\); it must be \(3,\)", {"axis": 1})
        low = Arg(values=np.float32(0.5))
        yield ErrorSample([x, one, low, *number], "input_min is 1.0 and input_max 0.5; ", {"range_given": True})

    return errors


_DOC = (
    "The inputs, rounded to numbers that integers of num_bits bits stand for, evenly spaced with 0 among them; "
    "narrow_range leaves the least integer out. input_min and input_max are the range with range_given, where numbers "
    "outside become its ends; else the least and the greatest input are. With an axis each slice has a range. "
)

for _name, _bits_input, _gradient, _note in (
    ("QuantizeAndDequantizeV2", False, _passed, "The gradient passes to the inputs."),
    ("QuantizeAndDequantizeV3", True, _passed, "Halves become even. The gradient passes to the inputs."),
    ("QuantizeAndDequantizeV4", False, _within, "The gradient passes to inputs within the range."),
):
    define_op(
        _name,
        inputs=["input: T", "input_min: T", "input_max: T", *["num_bits: int32"] * _bits_input],
        outputs=["output: T"],
        attrs=[
            "signed_input: bool = true",
            *([] if _bits_input else ["num_bits: int = 8"]),
            f"range_given: bool = {'true' if _bits_input else 'false'}",
            _FLOATS,
            *([] if _bits_input else ["round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'"]),
            "narrow_range: bool = false",
            "axis: int = -1",
        ],
        doc=_DOC + _note,
        shape=_shape(_bits_input),
        reference=_rounded_by_input if _bits_input else _rounded,
        gradient=_gradient,
        gradient_notes=("leaves_rounding_out",),
        constant_inputs=_ENDS,
        shape_inputs=("num_bits",) if _bits_input else (),
        samples=_samples(_bits_input),
        errors=_errors(_bits_input),
    )


@late_errors
def _gradient_shape(c: InferenceContext) -> Sequence[Shape]:
    x = c.shapes[1]
    if not compatible(c.shapes[0], x):
        raise c.error(
            f"gradients have shape {format_shape(c.shapes[0])} and input {format_shape(x)}; they must be equal"
        )
    ends = ends_shape(check_axis(c, x), x)
    check_ends(c, 2, _ENDS, ends)
    return [x, ends, ends]


def _input_gradient(attrs: Attrs, grad: np.ndarray, x: np.ndarray, *ends: np.ndarray) -> tuple[np.ndarray, ...]:
    low, high = (along(attrs["axis"], x, end) for end in ends)
    return np.where((x >= low) & (x <= high), grad, grad.dtype.type(0)), *(np.zeros_like(end) for end in ends)


def _gradient_samples() -> Iterator[Sample]:
    ends = [Arg(values=np.float32(x)) for x in (-1.5, 2.0)]
    for shape in ((), (7,), (0, 3), (2, 3, 5)):
        yield Sample([Arg(shape), Arg(shape), *ends])
    each = [Arg(values=np.array(x, np.float32)) for x in ((-1, -2, -3), (1, 3, 2))]
    yield Sample([Arg((2, 3, 5)), Arg((2, 3, 5)), *each], {"axis": 1})


def _gradient_errors() -> Iterator[ErrorSample]:
    x, one = Arg((2, 3)), Arg(values=np.float32(1))
    yield ErrorSample([Arg((3, 2)), x, one, one], r"gradients have shape \(3, 2\) and input \(2, 3\)")
    yield ErrorSample([x, x, one, one], r"input_min has shape \(\); it must be \(3,\)", {"axis": 1})


define_op(
    "QuantizeAndDequantizeV4Grad",
    inputs=["gradients: T", "input: T", "input_min: T", "input_max: T"],
    outputs=["input_backprop: T", "input_min_backprop: T", "input_max_backprop: T"],
    attrs=[_FLOATS, "axis: int = -1"],
    doc="The gradients of QuantizeAndDequantizeV4: by the inputs those of the outputs where an input is in the range, "
    "0 elsewhere, and 0 by the ends.",
    shape=_gradient_shape,
    reference=_input_gradient,
    gradient=_within_again,
    constant_inputs=("input", *_ENDS),
    samples=_gradient_samples,
    errors=_gradient_errors,
)
