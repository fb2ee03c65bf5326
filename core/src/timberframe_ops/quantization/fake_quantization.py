"""FakeQuantWithMinMax*: floating numbers rounded to those that quantized integers stand for, and their gradients.

Jacob et al. 2018, Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference: the
range is moved until 0 is one of the numbers that the integers stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors
from timberframe_core.shapes import Shape, compatible, format_shape

_BITS = ["num_bits: int = 8", "narrow_range: bool = false"]
_ENDS = ["min: float = -6.0", "max: float = 6.0"]
_ONCE_ALONE = NotDifferentiable("gradients of it are steps, and TensorFlow gives none")

_DOC = (
    "The inputs, clamped to a range and rounded to the numbers that 2^num_bits integers stand for, evenly spaced; with "
    "narrow_range one integer less. The range is moved so that it has 0. "
)


def _limits(attrs: Attrs, low: Any, high: Any, kind: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the lowest and the highest number after the range is moved, and the distance of neighbours."""
    first, last = kind(attrs["narrow_range"]), kind(2 ** attrs["num_bits"] - 1)
    low, high = np.asarray(low, kind), np.asarray(high, kind)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (high - low) / (last - first)
        zero = np.clip(np.floor(first - low / scale + kind(0.5)), first, last)
    return np.asarray((first - zero) * scale), np.asarray((last - zero) * scale), scale


def _ranges(attrs: Attrs, ends: Sequence[np.ndarray]) -> Sequence[Any]:
    return ends or (attrs["min"], attrs["max"])


def _rounded(attrs: Attrs, x: np.ndarray, *ends: np.ndarray) -> np.ndarray:
    kind = x.dtype.type
    low, high = _ranges(attrs, ends)
    lowest, highest, scale = _limits(attrs, low, high, kind)
    empty = (np.asarray(low) == 0) & (np.asarray(high) == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = kind(1) / scale
        zero = np.floor(-lowest * inverse + kind(0.5))
        steps = np.maximum(np.minimum(x, highest), lowest) - lowest
        found = np.floor(steps * inverse - zero + kind(0.5)) * scale
    return np.asarray(np.where(empty, kind(0), found), x.dtype)


def _sides(attrs: Attrs, x: np.ndarray, ends: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Returns where the inputs are below the range, and where above; nowhere if both ends are 0."""
    low, high = _ranges(attrs, ends)
    lowest, highest, _ = _limits(attrs, low, high, x.dtype.type)
    some = ~((np.asarray(low) == 0) & (np.asarray(high) == 0))
    return (x < lowest) & some, (x > highest) & some


def _input_gradient(attrs: Attrs, grad: np.ndarray, x: np.ndarray, *ends: np.ndarray) -> np.ndarray:
    below, above = _sides(attrs, x, ends)
    return np.where(below | above, grad.dtype.type(0), grad)


def _all_gradients(attrs: Attrs, grad: np.ndarray, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> Any:
    axes = tuple(range(x.ndim - low.ndim))
    sides = _sides(attrs, x, (low, high))
    sums = [np.asarray(np.where(side, grad, 0).sum(axes, np.float64)).astype(low.dtype) for side in sides]
    return (_input_gradient(attrs, grad, x, low, high), *sums)


def _check_bits(c: InferenceContext) -> None:
    if not 2 <= c.attrs["num_bits"] <= 16:
        raise c.error(f"num_bits is {c.attrs['num_bits']}; 2 to 16 are required")


def _shape(with_gradient: bool, ends: int) -> Callable[[InferenceContext], Sequence[Shape]]:
    """Returns the shape function. ends: the rank of the two ends of the range, -1 where they are attrs."""

    @late_errors
    def shape(c: InferenceContext) -> Sequence[Shape]:
        _check_bits(c)
        x = c.shapes[int(with_gradient)]
        if with_gradient and not compatible(c.shapes[0], x):
            raise c.error(
                f"gradients have shape {format_shape(c.shapes[0])} and inputs {format_shape(x)}; they must be equal"
            )
        if ends < 0:
            if c.attrs["min"] >= c.attrs["max"]:
                raise c.error(f"min is {c.attrs['min']} and max {c.attrs['max']}; min must be less than max")
            return [x]
        for i, name in ((1, "min"), (2, "max")):
            found, size = c.shapes[i + with_gradient], () if not ends else None if x is None else x[-1:]
            if ends and x == ():
                raise c.error("inputs are a scalar; one axis at least is required")
            if size is not None and not compatible(found, size):
                raise c.error(f"{name} has shape {format_shape(found)}; it must be {format_shape(size)}")
        own: Shape = () if not ends else (None,) if x is None else x[-1:]
        return [x, own, own] if with_gradient else [x]

    return shape


def _error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: np.ndarray, u: float) -> np.ndarray:
    """Returns the bound: each of some operations rounds a number of the size of the range."""
    ends = inputs[1:] or [np.asarray([attrs["min"], attrs["max"]])]
    return np.full(expected.shape, 8 * u * sum(float(np.abs(x).max(initial=0)) for x in ends))


def _sum_error(attrs: Attrs, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], u: float) -> Any:
    """Returns the gradients by the inputs are exact, those by the ends are sums in any order."""
    limit = inputs[0].size * u * float(np.abs(inputs[0]).sum())
    return [np.zeros(expected[0].shape), *(np.full(x.shape, limit) for x in expected[1:])]


# (lowest number, highest number, bits, whether there is one integer less)
_RANGES = (
    (-6.0, 6.0, 8, False), (-1.0, 2.0, 3, False), (0.25, 3.0, 4, True), (-5.0, -1.0, 16, False), (-2.0, 1.0, 2, True)
)  # fmt: skip
_SIZES = ((), (7,), (2, 3, 5), (0, 3))


def _values(shape: tuple[int, ...], low: float, high: float) -> Arg:
    """Returns numbers below, in and above a range, none of them halfway between two that integers stand for."""
    count = int(np.prod(shape))
    return Arg(values=np.linspace(low - 1.03, high + 1.07, count).reshape(shape).astype(np.float32), fixed=True)


def _samples(with_gradient: bool, ends: int) -> Callable[[], Iterator[Sample]]:
    def samples() -> Iterator[Sample]:
        for shape in _SIZES[ends > 0 :]:
            for low, high, bits, narrow in (*_RANGES, (0.0, 0.0, 8, False))[: None if ends >= 0 else -1]:
                attrs: dict[str, Any] = {"num_bits": bits, "narrow_range": narrow}
                inputs = [Arg(shape, special=False)] * with_gradient + [_values(shape, low, high)]
                if ends < 0:
                    attrs |= {"min": low, "max": high}
                else:
                    size = shape[-1:] if ends else ()
                    inputs += [Arg(values=np.full(size, x, np.float32), fixed=True) for x in (low, high)]
                yield Sample(inputs, attrs)

    return samples


def _errors(with_gradient: bool, ends: int) -> Callable[[], Iterator[ErrorSample]]:
    def errors() -> Iterator[ErrorSample]:
        x, one = Arg((2, 3)), Arg(values=np.float32(1))
        limits = [] if ends < 0 else [Arg(values=np.ones((3,) * ends, np.float32))] * 2
        before = [x] * with_gradient
        for bits in (1, 17):
            yield ErrorSample([*before, x, *limits], f"num_bits is {bits}; 2 to 16 are required", {"num_bits": bits})
        if with_gradient:
            yield ErrorSample([Arg((3, 2)), x, *limits], r"gradients have shape \(3, 2\) and inputs \(2, 3\)")
        if ends < 0:
            yield ErrorSample([*before, x], "min must be less than max", {"min": 2.0, "max": 1.0})
        elif ends:
            yield ErrorSample([*before, x, one, limits[0]], r"min has shape \(\); it must be \(3,\)")
        else:
            yield ErrorSample([*before, x, one, Arg((1,))], r"max has shape \(1,\); it must be \(\)")

    return errors


def _args_gradient(op: Any, grad: Any) -> list[Any]:
    return [apply_op("FakeQuantWithMinMaxArgsGradient", [grad, op.inputs[0]], dict(op.attrs))]


def _vars_gradient(op: Any, grad: Any) -> list[Any]:
    return list(apply_op(f"{op.type}Gradient", [grad, *op.inputs], dict(op.attrs)))


define_op(
    "FakeQuantWithMinMaxArgs",
    inputs=["inputs: float"],
    outputs=["outputs: float"],
    attrs=[*_ENDS, *_BITS],
    doc=_DOC + "min, max: the ends of the range.",
    shape=_shape(False, -1),
    reference=_rounded,
    gradient=_args_gradient,
    gradient_notes=("leaves_rounding_out",),
    accuracy=Bound(_error, "each of the few operations rounds a number of the size of the range"),
    samples=_samples(False, -1),
    errors=_errors(False, -1),
)
define_op(
    "FakeQuantWithMinMaxArgsGradient",
    inputs=["gradients: float", "inputs: float"],
    outputs=["backprops: float"],
    attrs=[*_ENDS, *_BITS],
    doc="The gradient of FakeQuantWithMinMaxArgs: gradients where the inputs are in the range, 0 elsewhere.",
    shape=_shape(True, -1),
    reference=_input_gradient,
    gradient=_ONCE_ALONE,
    samples=_samples(True, -1),
    errors=_errors(True, -1),
)
for _name, _rank, _ends_doc in (
    ("FakeQuantWithMinMaxVars", 0, "min, max: the ends of the range; all outputs are 0 where both are."),
    ("FakeQuantWithMinMaxVarsPerChannel", 1, "min, max: the ends of the range of each entry of the last axis."),
):
    define_op(
        _name,
        inputs=["inputs: float", "min: float", "max: float"],
        outputs=["outputs: float"],
        attrs=_BITS,
        doc=_DOC + _ends_doc,
        shape=_shape(False, _rank),
        reference=_rounded,
        gradient=_vars_gradient,
        gradient_notes=("leaves_rounding_out",),
        accuracy=Bound(_error, "each of the few operations rounds a number of the size of the range"),
        samples=_samples(False, _rank),
        errors=_errors(False, _rank),
    )
    define_op(
        f"{_name}Gradient",
        inputs=["gradients: float", "inputs: float", "min: float", "max: float"],
        outputs=["backprops_wrt_input: float", "backprop_wrt_min: float", "backprop_wrt_max: float"],
        attrs=_BITS,
        doc=f"The gradients of {_name}: by the inputs those of the outputs, where an input is in the range, by min and "
        "max the sums of the others, below it and above.",
        shape=_shape(True, _rank),
        reference=_all_gradients,
        gradient=_ONCE_ALONE,
        accuracy=Bound(_sum_error, "a sum of the gradients in any order"),
        samples=_samples(True, _rank),
        errors=_errors(True, _rank),
    )
