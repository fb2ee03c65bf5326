"""FractionalMaxPool and FractionalAvgPool: windows of sizes that differ by one, in an order drawn by chance.

B. Graham, Fractional Max-Pooling, 2014. Sequences are drawn as TensorFlow does, so that equal seeds give its windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.gradients import apply_op, shape_of
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.shape_functions import late_errors, merge_shapes
from timberframe_core.shapes import Shape, compatible, format_shape
from timberframe_ops.random.philox import Philox, to_float64

_TYPES = "T: {float, double, int32, int64}"
_OVERLAPPING = "overlapping: bool = false"
OUTSIDE = "a pooling sequence is {0} for a size of {1}; it must lie within it"
"""What is wrong about an input, for all devices."""
_LINEAR = MissingGradient("TensorFlow gives the gradient of fractional pooling none either")


def _pooled(size: int | None, ratio: float) -> int | None:
    return None if size is None else int(np.floor(np.float32(size) / np.float32(ratio)))


@late_errors
def _pool_shape(c: InferenceContext) -> list[Shape]:
    ratios = c.attrs["pooling_ratio"]
    if len(ratios) != 4 or ratios[0] != 1 or ratios[3] != 1 or min(ratios) < 1:
        raise c.error(f"pooling_ratio is {list(ratios)}; it must have 4 elements of 1 or more, the first and last 1")
    if not c.attrs["deterministic"] and (c.attrs["seed"] or c.attrs["seed2"]):
        raise c.late_error("seed or seed2 is set and deterministic is not; seeds need deterministic")
    batch, height, width, channels = c.require_rank(0, 4)
    rows, columns = _pooled(height, ratios[1]), _pooled(width, ratios[2])
    if 0 in (rows, columns):
        raise c.late_error(
            f"value has shape {format_shape(c.shapes[0])}; with this pooling_ratio nothing would be left"
        )
    return [(batch, rows, columns, channels), *[(None if n is None else n + 1,) for n in (rows, columns)]]


def _pseudo_random(size: int, wanted: int, philox: Philox) -> np.ndarray:
    """Ends of windows at multiples of the ratio, all shifted by one random number."""
    ratio, least = size / wanted, size // wanted
    largest = min((least + 2) / ratio - 1, (size + 1 - least) / ratio - (wanted - 1))
    shift = float(to_float64(philox.numbers(2))[0]) * largest
    ends = [1, *(math.ceil(ratio * (i + shift)) for i in range(1, wanted)), size + 1]
    return np.diff(np.array(ends, np.int64))


def _random(size: int, wanted: int, philox: Philox) -> np.ndarray:
    """Window sizes, shuffled."""
    sizes = np.full(wanted, size // wanted, np.int64)
    sizes[: size % wanted] += 1
    numbers = iter(philox.numbers(4 * wanted + 64).tolist())
    for i in range(wanted - 1):
        j = i + _below(wanted - i, numbers)
        sizes[[i, j]] = sizes[[j, i]]
    return sizes


def _below(count: int, numbers: Iterator[int]) -> int:
    """Returns a random number below `count`, each as likely as the other: what would favour some is drawn again."""
    if count & (count - 1) == 0:
        return next(numbers) & (count - 1)
    rest = (2**32 - 1) % count + 1
    return next(x for x in numbers if x <= 2**32 - 1 - rest) % count


def window_limits(attrs: Attrs, sizes: tuple[int, ...], wanted: list[int]) -> list[np.ndarray]:
    """Returns where the windows begin along rows and columns, and where the last one ends."""
    seeds = attrs["seed"], attrs["seed2"]
    if seeds == (0, 0):
        seeds = tuple(np.random.SeedSequence().generate_state(2, np.uint64).tolist())
    philox = Philox.seeded(*seeds)
    found = []
    for size, count in zip(sizes, wanted, strict=True):
        draw, numbers = (_pseudo_random, 2) if attrs["pseudo_random"] else (_random, count)
        found.append(np.concatenate([[0], np.cumsum(draw(size, count, philox))]).astype(np.int64))
        philox = philox.skip(-(-numbers // 4))
    return found


Windows = Iterator[tuple[int, int, slice, slice]]


def _windows(rows: np.ndarray, columns: np.ndarray, overlapping: bool, sizes: tuple[int, ...]) -> Windows:
    """Place in the output, and rows and columns of the input, of each window; overlapping ones share their borders."""
    more = int(overlapping)
    for i in range(len(rows) - 1):
        tall = slice(int(rows[i]), min(int(rows[i + 1]) + more, sizes[0]))
        for j in range(len(columns) - 1):
            yield i, j, tall, slice(int(columns[j]), min(int(columns[j + 1]) + more, sizes[1]))


def _pool(kind: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
    def reference(attrs: Attrs, value: np.ndarray) -> tuple[np.ndarray, ...]:
        sizes = value.shape[1:3]
        wanted = [_pooled(n, r) or 0 for n, r in zip(sizes, attrs["pooling_ratio"][1:3], strict=True)]
        rows, columns = window_limits(attrs, sizes, wanted)
        result = np.zeros((value.shape[0], *wanted, value.shape[3]), value.dtype)
        for i, j, tall, wide in _windows(rows, columns, attrs["overlapping"], sizes):
            result[:, i, j] = kind(value[:, tall, wide])
        return result, rows, columns

    return reference


def _mean(window: np.ndarray) -> np.ndarray:
    """Returns the mean; that of integers is truncated."""
    count = window.shape[1] * window.shape[2]
    total = window.sum((1, 2), dtype=window.dtype)
    return np.asarray(total / window.dtype.type(count) if window.dtype.kind == "f" else np.trunc(total / count))


def _samples() -> Iterator[Sample]:
    for shape, ratios in (((1, 6, 7, 2), (1.0, 1.44, 1.73, 1.0)), ((2, 8, 9, 1), (1.0, 2.0, 3.5, 1.0))):
        for flags in ({}, {"pseudo_random": True}, {"overlapping": True}):
            attrs = {"pooling_ratio": ratios, "deterministic": True, "seed": 7, "seed2": 11, **flags}
            yield Sample([Arg(shape, special=False, distinct=True)], attrs)


def _errors() -> Iterator[ErrorSample]:
    good = {"pooling_ratio": (1.0, 1.5, 1.5, 1.0)}
    yield ErrorSample([Arg((1, 4, 4, 1))], r"the first and last 1", {"pooling_ratio": (2.0, 1.5, 1.5, 1.0)})
    yield ErrorSample([Arg((1, 4, 4, 1))], "seeds need deterministic", {**good, "seed": 3})
    yield ErrorSample([Arg((4, 4, 1))], "it must have rank 4", good)


def _max_gradient(op: Any, grad: Any, *_: Any) -> list[Any]:
    x, (y, rows, columns) = op.inputs[0], op.outputs
    return [apply_op("FractionalMaxPoolGrad", [x, y, grad, rows, columns], {"overlapping": op.attrs["overlapping"]})]


def _average_gradient(op: Any, grad: Any, *_: Any) -> list[Any]:
    shape = apply_op("Cast", [shape_of(op.inputs[0])], {"DstT": op.outputs[1].dtype})
    inputs = [shape, grad, *op.outputs[1:]]
    return [apply_op("FractionalAvgPoolGrad", inputs, {"overlapping": op.attrs["overlapping"]})]


def _define_pool(name: str, kind: Callable[[np.ndarray], np.ndarray], gradient: Any, doc: str) -> None:
    define_op(
        f"Fractional{name}Pool",
        inputs=["value: T"],
        outputs=["output: T", "row_pooling_sequence: int64", "col_pooling_sequence: int64"],
        attrs=[
            "pooling_ratio: list(float) >= 4",
            "pseudo_random: bool = false",
            _OVERLAPPING,
            "deterministic: bool = false",
            "seed: int = 0",
            "seed2: int = 0",
            _TYPES,
        ],
        doc=f"The {doc} of windows whose sizes differ by one; also where the windows begin.",
        shape=_pool_shape,
        reference=_pool(kind),
        gradient=gradient,
        accuracy=Accumulation(
            lambda attrs, value: 2 + math.prod(math.ceil(r) + 2 for r in attrs["pooling_ratio"][1:3])
        ),
        samples=_samples,
        errors=_errors,
    )


_define_pool("Max", lambda window: window.max((1, 2)), _max_gradient, "maximum")
_define_pool("Avg", _mean, _average_gradient, "mean")


def _check_sequences(c: InferenceContext, grads: Shape, rows: Shape, columns: Shape) -> None:
    if grads is None:
        return
    for found, size in ((rows, grads[1]), (columns, grads[2])):
        if size is not None and not compatible(found, (size + 1,)):
            raise c.late_error(f"a pooling sequence has shape {format_shape(found)}; it must be ({size + 1},)")


@late_errors
def _max_grad_shape(c: InferenceContext) -> list[Shape]:
    given, grads = c.require_rank(0, 4), c.require_rank(2, 4)
    merge_shapes(c, c.shapes[1], grads, "orig_output and out_backprop")
    _check_rest(c, given, grads)
    _check_sequences(c, grads, c.shapes[3], c.shapes[4])
    return [given]


def _check_rest(c: InferenceContext, given: Shape, grads: Shape) -> None:
    """Batch and channels, which pooling leaves alone."""
    if given is None or grads is None:
        return
    if not compatible((given[0], given[3]), (grads[0], grads[3])):
        raise c.late_error(
            f"the input's shape is {format_shape(given)} and out_backprop's {format_shape(grads)}; batch and channels "
            "must be equal"
        )


def _limits(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, ...]) -> None:
    for sequence, size in ((rows, shape[1]), (columns, shape[2])):
        if (sequence < 0).any() or (sequence > size).any():
            raise InvalidArgumentError(OUTSIDE.format(sequence.tolist(), size))


def _max_grad(attrs: Attrs, x: np.ndarray, y: np.ndarray, grads: np.ndarray, rows: Any, columns: Any) -> np.ndarray:
    """Returns the gradient: each window's gradient goes to its first maximum."""
    _limits(rows, columns, x.shape)
    result = np.zeros(x.shape, grads.dtype)
    batch, channel = np.ix_(range(x.shape[0]), range(x.shape[3]))
    for i, j, tall, wide in _windows(rows, columns, attrs["overlapping"], x.shape[1:3]):
        window = x[:, tall, wide]
        first = window.reshape(x.shape[0], -1, x.shape[3]).argmax(1)
        down, across = np.divmod(first, window.shape[2])
        np.add.at(result, (batch, tall.start + down, wide.start + across, channel), grads[:, i, j])
    return result


@late_errors
def _average_grad_shape(c: InferenceContext) -> list[Shape]:
    _check_sequences(c, c.require_rank(1, 4), c.shapes[2], c.shapes[3])
    shape = c.shape_value(0)
    if shape is not None and len(shape) != 4:
        raise c.late_error(f"orig_input_tensor_shape has {len(shape)} elements; it must have 4")
    _check_rest(c, shape, c.require_rank(1, 4))
    return [shape]


def _average_grad(attrs: Attrs, shape: np.ndarray, grads: np.ndarray, rows: Any, columns: Any) -> np.ndarray:
    """Returns the gradient: each window's gradient is shared by its elements."""
    sizes = tuple(int(n) for n in shape)
    _limits(rows, columns, sizes)
    result = np.zeros(sizes)
    for i, j, tall, wide in _windows(rows, columns, attrs["overlapping"], sizes[1:3]):
        count = (tall.stop - tall.start) * (wide.stop - wide.start)
        result[:, tall, wide] += (grads[:, i, j] / count)[:, None, None, :]
    return result.astype(grads.dtype)


_ROWS, _COLUMNS = np.array([0, 2, 3, 5], np.int64), np.array([0, 1, 4], np.int64)


def _grad_samples(head: Callable[[], list[Arg]]) -> Iterator[Sample]:
    for overlapping in (False, True):
        parts = [*head(), Arg((2, 3, 2, 2), special=False), Arg(values=_ROWS), Arg(values=_COLUMNS)]
        yield Sample(parts, {"overlapping": overlapping})


_ROWS_INPUTS = ("row_pooling_sequence: int64", "col_pooling_sequence: int64")

define_op(
    "FractionalMaxPoolGrad",
    inputs=["orig_input: T", "orig_output: T", "out_backprop: T", *_ROWS_INPUTS],
    outputs=["output: T"],
    attrs=[_OVERLAPPING, _TYPES],
    doc="The gradient of FractionalMaxPool, given where its windows begin.",
    shape=_max_grad_shape,
    reference=_max_grad,
    gradient=_LINEAR,
    accuracy=Accumulation(
        lambda attrs, x, y, grads, rows, columns: 4, lambda attrs, x, y, g, r, c: _max_grad(attrs, x, y, abs(g), r, c)
    ),
    samples=lambda: _grad_samples(lambda: [Arg((2, 5, 4, 2), special=False, distinct=True), Arg((2, 3, 2, 2))]),
    errors=lambda: [
        ErrorSample(
            [Arg((2, 5, 4, 2)), Arg((2, 3, 2, 2)), Arg((2, 3, 2, 2)), Arg(values=_COLUMNS), Arg(values=_COLUMNS)],
            r"a pooling sequence has shape \(3,\); it must be \(4,\)",
        ),
        *(
            ErrorSample([Arg(x), Arg(y), Arg((2, 3, 2, 2)), Arg(values=_ROWS), Arg(values=_COLUMNS)], match)
            for x, y, match in (
                ((2, 5, 4, 2), (3, 3, 2, 2), r"orig_output and out_backprop have shapes \(3, 3, 2, 2\) and"),
                ((3, 5, 4, 2), (2, 3, 2, 2), r"the input's shape is \(3, 5, 4, 2\) and out_backprop's"),
            )
        ),
    ],
)

define_op(
    "FractionalAvgPoolGrad",
    inputs=["orig_input_tensor_shape: int64", "out_backprop: T", *_ROWS_INPUTS],
    outputs=["output: T"],
    attrs=[_OVERLAPPING, _TYPES],
    doc="The gradient of FractionalAvgPool, given where its windows begin.",
    shape=_average_grad_shape,
    reference=_average_grad,
    gradient=_LINEAR,
    accuracy=Accumulation(lambda attrs, shape, grads, rows, columns: 8),
    shape_inputs=("orig_input_tensor_shape",),
    samples=lambda: (
        *_grad_samples(lambda: [Arg(values=np.array((2, 5, 4, 2), np.int64))]),
        Sample(  # NaN and infinities stay in their windows
            [Arg(values=np.array((2, 5, 4, 2), np.int64)), Arg((2, 3, 2, 2)), Arg(values=_ROWS), Arg(values=_COLUMNS)],
            {"overlapping": True},
            {"T": ("float32", "float64")},
        ),
    ),
    errors=lambda: [
        ErrorSample(
            [Arg(values=np.array((2, 5, 4), np.int64)), Arg((2, 3, 2, 2)), Arg(values=_ROWS), Arg(values=_COLUMNS)],
            "orig_input_tensor_shape has 3 elements",
        ),
        ErrorSample(
            [Arg(values=np.array((2, 5, 4, 3), np.int64)), Arg((2, 3, 2, 2)), Arg(values=_ROWS), Arg(values=_COLUMNS)],
            r"the input's shape is \(2, 5, 4, 3\) and out_backprop's \(2, 3, 2, 2\)",
        ),
    ],
)
