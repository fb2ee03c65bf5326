"""Ops that make tensors: of a stored value, of what is fed, of one repeated element, and of arithmetic sequences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.dtypes import as_dtype, string
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, reshape_like, sum_all
from timberframe_core.ops.definition.host_values import HostValue, checked, static_output, to_dtype
from timberframe_core.ops.definition.opdef import UNKNOWN, Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import unchanged
from timberframe_core.shapes import MAX_ELEMENTS, Shape, compatible, format_shape

_SHAPES = ((), (1,), (0,), (3, 0, 2), (7, 13), (65_537,), (2, 1, 3, 1, 2, 1, 3, 1))


def _const_shape(c: InferenceContext) -> list[Shape]:
    value, dtype = c.attrs["value"], c.attrs["dtype"]
    if value.dtype != dtype.numpy and not (dtype is string and value.dtype.kind in "SU"):
        raise c.error(f"value has dtype {value.dtype}; attr dtype says {dtype.name}")
    return [value.shape]


def _const_samples() -> Iterator[Sample]:
    for name in ("float32", "int64", "bool", "complex64", "bfloat16", "uint8"):
        for shape in ((), (0,), (3, 5)):
            value = np.arange(math.prod(shape)).reshape(shape).astype(as_dtype(name).numpy)
            yield Sample([], {"value": value, "dtype": as_dtype(name)})
    yield Sample([], {"value": np.array([b"", b"a\x00b", b"timber"], object), "dtype": string})


define_op(
    "Const",
    outputs=["output: dtype"],
    attrs=["value: tensor", "dtype: type"],
    doc="The tensor that the attr `value` holds.",
    shape=_const_shape,
    reference=lambda attrs: attrs["value"],
    value=lambda c: [c.attrs["value"]],
    role="constant",
    gradient=NotDifferentiable("it has no input"),
    samples=_const_samples,
)

define_op(
    "Placeholder",
    outputs=["output: dtype"],
    attrs=["dtype: type", "shape: shape = { unknown_rank: true }"],
    doc="Stands for a tensor that each run is fed.",
    shape=lambda c: [c.attrs["shape"]],
    role="placeholder",
    gradient=NotDifferentiable("it has no input"),
)

define_op(
    "PlaceholderV2",
    outputs=["output: dtype"],
    attrs=["dtype: type", "shape: shape"],
    doc="Stands for a tensor that each run is fed.",
    shape=lambda c: [c.attrs["shape"]],
    role="placeholder",
    gradient=NotDifferentiable("it has no input"),
)


def _default_shape(c: InferenceContext) -> list[Shape]:
    """Returns the attr's shape: what is fed may differ from the default in the sizes that the attr leaves open."""
    declared = c.attrs["shape"]
    if not compatible(declared, c.shapes[0]):
        raise c.error(
            f"the default has shape {format_shape(c.shapes[0])}; it must be compatible with {format_shape(declared)}"
        )
    return [declared]


def _default_samples() -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample([Arg(shape)], {"shape": shape})


define_op(
    "PlaceholderWithDefault",
    inputs=["input: dtype"],
    outputs=["output: dtype"],
    attrs=["dtype: type", "shape: shape"],
    doc="Stands for a tensor that a run may be fed; the input where it is not.",
    shape=_default_shape,
    reference=lambda attrs, x: x,
    passes_through=True,
    gradient=lambda op, grad: [grad],
    gradient_takes_slices=True,
    alias=((0, 0),),
    samples=_default_samples,
)


def _shape_from_dims(c: InferenceContext) -> list[Shape]:
    """Returns the shape that the first input spells; a vector, or a scalar that stands for a vector of one."""
    dims = c.shapes[0]
    if dims is not None and len(dims) > 1:
        raise c.error(f"{c.op.inputs[0].name} has shape {format_shape(dims)}; it must be a vector")
    value = c.values[0]
    if value is None:
        return [(None,) if dims == () else c.shape_value(0)]
    sizes = [None if d is UNKNOWN else int(d) for d in value.reshape(-1)]
    if any(d is not None and d < 0 for d in sizes):
        raise c.error(f"{c.op.inputs[0].name} is {format_shape(tuple(sizes))}; sizes must be zero or more")
    return [checked(c, tuple(sizes))]


def _fill_shape(c: InferenceContext) -> list[Shape]:
    value = c.shapes[1]
    if value is not None and any(d not in (None, 1) for d in value):
        raise c.error(f"value has shape {format_shape(value)}; it must be a scalar")
    return _shape_from_dims(c)


def _fill(attrs: Attrs, dims: np.ndarray, value: np.ndarray) -> np.ndarray:
    out = np.empty(tuple(int(d) for d in dims.reshape(-1)), value.dtype)
    out[...] = value.reshape(())
    return out


def _fill_value(c: InferenceContext) -> list[HostValue]:
    shape, value = static_output(c), c.values[1]
    if shape is None or value is None:
        return [None]
    return [to_dtype(np.full(shape, value.reshape(-1)[0], value.dtype), c.dtypes[1])]


def _fill_samples() -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample([Arg(values=np.array(shape, np.int64)), Arg(())])
    yield Sample([Arg(values=5), Arg((1,))])


def _fill_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg(values=[2, -1]), Arg(())], r"dims is \(2, -1\); sizes must be zero or more")
    yield ErrorSample([Arg(values=[[2, 1]]), Arg(())], r"dims has shape \(1, 2\); it must be a vector")
    yield ErrorSample([Arg(values=[2]), Arg((2,))], r"value has shape \(2,\); it must be a scalar")
    huge = Arg(values=[2**40, 2**40])
    yield ErrorSample([huge, Arg(())], r"must fit 63 bits", types={"index_type": ("int64",)})


define_op(
    "Fill",
    inputs=["dims: index_type", "value: T"],
    outputs=["output: T"],
    attrs=["T: type", "index_type: {int32, int64} = DT_INT32"],
    doc="A tensor of the sizes `dims` with every element `value`.",
    shape=_fill_shape,
    reference=_fill,
    value=_fill_value,
    gradient=lambda op, grad: [None, reshape_like(sum_all(grad), op.inputs[1])],
    shape_inputs=("dims",),
    sized_by_values=True,
    samples=_fill_samples,
    errors=_fill_errors,
)


def _empty(attrs: Attrs, shape: np.ndarray) -> np.ndarray:
    dtype = attrs["dtype"]
    return np.full(tuple(int(d) for d in shape), b"" if dtype is string else 0, dtype.numpy)


def _empty_samples() -> Iterator[Sample]:
    for name in ("float32", "int8", "complex128", "bool", "bfloat16"):
        attrs: dict[str, Any] = {"dtype": as_dtype(name)}
        yield Sample([Arg(values=(3, 5))], attrs | {"init": True})
        yield Sample([Arg(values=(0, 5))], attrs | {"init": False})
        yield Sample([Arg(values=(2, 3))], attrs | {"init": False}, implementation_defined="init is false")


define_op(
    "Empty",
    inputs=["shape: int32"],
    outputs=["output: dtype"],
    attrs=["dtype: type", "init: bool = false"],
    doc="A tensor of these sizes: zeros if `init` is set, otherwise of any content.",
    shape=_shape_from_dims,
    reference=_empty,
    gradient=NotDifferentiable("no input is differentiable"),
    shape_inputs=("shape",),
    stateful=True,
    samples=_empty_samples,
    errors=lambda: [ErrorSample([Arg(values=[-3])], r"shape is \(-3,\)", {"dtype": as_dtype("float32")})],
)


def _like_value(fill: int) -> Any:
    def value(c: InferenceContext) -> list[HostValue]:
        shape = static_output(c)
        dtype = c.dtypes[0].numpy
        return [None if shape is None or dtype.hasobject else np.full(shape, fill, dtype)]

    return value


def _zeros_like(attrs: Attrs, x: np.ndarray) -> np.ndarray:
    return np.full(x.shape, b"", object) if x.dtype == object else np.zeros(x.shape, x.dtype)


def _like_samples() -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample([Arg(shape)])


define_op(
    "ZerosLike",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["T: type"],
    doc="Zeros (empty strings) in the shape and dtype of x.",
    shape=unchanged,
    reference=_zeros_like,
    value=_like_value(0),
    gradient=NotDifferentiable("the output does not depend on the values of the input", constant=True),
    samples=_like_samples,
)

define_op(
    "OnesLike",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=[
        "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
        "complex128, bool}"
    ],
    doc="Ones (true) in the shape and dtype of x.",
    shape=unchanged,
    reference=lambda attrs, x: np.ones(x.shape, x.dtype),
    value=_like_value(1),
    gradient=NotDifferentiable("the output does not depend on the values of the input", constant=True),
    samples=_like_samples,
)


def range_length(start: Any, limit: Any, delta: Any) -> int:
    """Returns how many elements a Range has; raises ValueError with fact and requirement for arguments that make none.

    Integers are exact. Floats follow TensorFlow: the quotient is taken in float64 and rounded up.
    """
    low, high, step = (x.item() if x.dtype.kind in "iu" else float(x) for x in (start, limit, delta))
    if step == 0:
        raise ValueError("delta is 0; it must not be zero")
    if not (low <= high if step > 0 else low >= high):
        relation = "at most" if step > 0 else "at least"
        raise ValueError(f"start is {low} and limit {high} with delta {step}; start must be {relation} the limit")
    if isinstance(step, int):
        return int(-((high - low) // -step))
    quotient: float = abs((high - low) / step)
    if not quotient <= MAX_ELEMENTS:
        raise ValueError(f"(limit - start) / delta is {quotient}; it must be at most 2^63 - 1")
    return math.ceil(quotient)


def _range_shape(c: InferenceContext) -> list[Shape]:
    for i, arg in enumerate(c.op.inputs):
        shape = c.shapes[i]
        if shape is not None and any(d not in (None, 1) for d in shape):
            raise c.error(f"{arg.name} has shape {format_shape(shape)}; it must be a scalar")
    values = [c.value(i) for i in range(3)]
    if any(v is None for v in values):
        return [(None,)]
    try:
        length = range_length(*(np.asarray(v).reshape(-1)[0] for v in values))
    except ValueError as e:
        raise c.error(str(e)) from None
    return [checked(c, (length,))]


def _range(attrs: Attrs, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    first, last, step = (x.reshape(-1)[0] for x in (start, limit, delta))
    length = range_length(first, last, step)
    if start.dtype.kind in "iu":
        values = np.arange(length) * step.astype(np.int64) + first.astype(np.int64)
        return np.asarray(values.astype(start.dtype))
    wide = start.dtype if start.dtype.itemsize >= 4 else np.dtype(np.float32)
    steps = np.arange(length, dtype=np.float64).astype(wide)
    return np.asarray((first.astype(wide) + steps * step.astype(wide)).astype(start.dtype))


def _range_value(c: InferenceContext) -> list[HostValue]:
    values = [c.value(i) for i in range(3)]
    if any(v is None for v in values) or static_output(c) is None:
        return [None]
    return [_range(c.attrs, *(np.asarray(v) for v in values))]


_INTEGERS = ("int32", "int64")
_FLOATS = ("bfloat16", "float16", "float32", "float64")


def _range_samples() -> Iterator[Sample]:
    def sample(start: float, limit: float, delta: float, types: tuple[str, ...]) -> Sample:
        return Sample([Arg(values=start), Arg(values=limit), Arg(values=delta)], types={"Tidx": types})

    everything = _INTEGERS + _FLOATS
    for arguments in ((0, 7, 1), (3, 18, 3), (3, 19, 3), (5, 5, 1), (5, 5, -1), (10, -3, -4), (-5, 6, 2), (0, 1, 9)):
        yield sample(*arguments, everything)
    yield sample(0, 65_537, 1, (*_INTEGERS, "float32", "float64"))
    yield sample(0, 10, 0.1, _FLOATS)
    yield sample(1.5, -2.25, -0.3, _FLOATS)
    yield sample(-(2**31), 2**31 - 1, 2**28, ("int32",))
    yield sample(-(2**63), 2**63 - 1, 2**60, ("int64",))


def _range_errors() -> Iterator[ErrorSample]:
    def wrong(start: Any, limit: Any, delta: Any, match: str, *types: str) -> ErrorSample:
        return ErrorSample(
            [Arg(values=start), Arg(values=limit), Arg(values=delta)], match, types={"Tidx": types or _INTEGERS}
        )

    yield wrong(0, 5, 0, "delta is 0; it must not be zero")
    yield wrong(5, 0, 1, "start must be at most the limit")
    yield wrong(0, 5, -1, "start must be at least the limit")
    yield wrong([0, 1], 5, 1, r"start has shape \(2,\); it must be a scalar")
    yield wrong(0.0, math.inf, 1.0, r"it must be at most 2\^63 - 1", "float32", "float64")
    yield wrong(0.0, math.nan, 1.0, "start must be at most the limit", "float32", "float64")


def _sequence_error(attrs: Attrs, inputs: Any, expected: np.ndarray, unit: float) -> np.ndarray:
    """Returns two roundings, of the product and of the sum, for each element; and those of the step in LinSpace."""
    ends = np.abs(np.stack([np.asarray(x, np.float64).reshape(()) for x in inputs[:2]]))
    largest = float(np.max(ends, initial=0.0, where=np.isfinite(ends)))
    return np.asarray(unit * (np.abs(expected) + 4 * largest))


define_op(
    "Range",
    inputs=["start: Tidx", "limit: Tidx", "delta: Tidx"],
    outputs=["output: Tidx"],
    attrs=[
        "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = DT_INT32",
    ],
    doc="start + i * delta for i = 0, 1, ... while it has not reached the limit.",
    shape=_range_shape,
    reference=_range,
    value=_range_value,
    gradient=NotDifferentiable("its arguments decide the number of elements"),
    shape_inputs=("start", "limit", "delta"),
    sized_by_values=True,
    accuracy=Bound(_sequence_error, "one rounding each of product and sum"),
    samples=_range_samples,
    errors=_range_errors,
)


def _linspace_shape(c: InferenceContext) -> list[Shape]:
    for i, arg in enumerate(c.op.inputs):
        shape = c.shapes[i]
        if shape is not None and any(d not in (None, 1) for d in shape):
            raise c.error(f"{arg.name} has shape {format_shape(shape)}; it must be a scalar")
    num = c.value(2)
    if num is None:
        return [(None,)]
    count = int(num.reshape(-1)[0])
    if count < 1:
        raise c.error(f"num is {count}; it must be at least 1")
    return [(count,)]


def _linspace(attrs: Attrs, start: np.ndarray, stop: np.ndarray, num: np.ndarray) -> np.ndarray:
    count = int(num.reshape(-1)[0])
    first, last = start.reshape(-1)[0], stop.reshape(-1)[0]
    wide = start.dtype if start.dtype.itemsize >= 4 else np.dtype(np.float32)
    if count == 1:
        return np.array([first], start.dtype)
    step = (last.astype(wide) - first.astype(wide)) / wide.type(count - 1)
    out = np.asarray((first.astype(wide) + step * np.arange(count).astype(wide)).astype(start.dtype))
    out[0], out[-1] = first, last  # also where the step is infinite
    return out


def _linspace_gradient(op: Any, grad: Any) -> list[Any]:
    """Returns the gradient: each element is a mean of both ends, whose weights are evenly spaced, too."""
    start, _, num = op.inputs
    zero, one = apply_op("ZerosLike", [start]), apply_op("OnesLike", [start])
    ends = (one, zero), (zero, one)
    weights = [apply_op("LinSpace", [*pair, num]) for pair in ends]
    return [*(reshape_like(sum_all(grad * w), x) for w, x in zip(weights, op.inputs, strict=False)), None]


def _linspace_samples() -> Iterator[Sample]:
    for num in (1, 2, 3, 7, 100, 65_537):
        yield Sample([Arg((), special=False), Arg((), special=False), Arg(values=num)])
    yield Sample([Arg(values=2.5), Arg(values=2.5), Arg(values=5)])
    yield Sample([Arg(values=4.0), Arg(values=-1.0), Arg(values=6)])
    for start, stop in ((1.0, -math.inf), (math.inf, 1.0), (math.inf, math.inf), (1.0, math.nan)):
        yield Sample([Arg(values=start), Arg(values=stop), Arg(values=3)])


def _linspace_errors() -> Iterator[ErrorSample]:
    yield ErrorSample([Arg(()), Arg(()), Arg(values=0)], "num is 0; it must be at least 1")
    yield ErrorSample([Arg(()), Arg(()), Arg(values=-1)], "num is -1; it must be at least 1")
    yield ErrorSample([Arg((2,)), Arg(()), Arg(values=3)], r"start has shape \(2,\); it must be a scalar")


define_op(
    "LinSpace",
    inputs=["start: T", "stop: T", "num: Tidx"],
    outputs=["output: T"],
    attrs=["T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32"],
    doc="`num` values at equal distances from start to stop, both included.",
    shape=_linspace_shape,
    reference=_linspace,
    gradient=_linspace_gradient,
    shape_inputs=("num",),
    accuracy=Bound(_sequence_error, "roundings of the step, the product and the sum"),
    samples=_linspace_samples,
    errors=_linspace_errors,
)
