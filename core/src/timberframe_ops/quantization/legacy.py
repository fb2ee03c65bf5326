"""TensorFlow 1's Quantized* ops and Requantize, as in graphs that its tool `transform_graph` wrote.

Each tensor comes with the ends of the range that all integers of its dtype cover. The executor computes them by their
references: graphs of today have QuantizeV2, Dequantize and floating ops between, which devices fuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, OpDef, define_op, evaluate
from timberframe_core.shapes import Shape
from timberframe_ops.quantization.integers import (
    F32,
    centred,
    integer_of,
    integers,
    numbers,
    product_range,
    requantized,
)
from timberframe_ops.quantization.ranges import QUANTIZED

_NO_GRADIENT = MissingGradient("TensorFlow has none of quantized integers either")
_BIAS_ROOM, _SUM_ROOM = 1 << 17, 1 << 14
"""TensorFlow's room for sums in 32 bits: how often the largest end of the operands' ranges fits into the result's.

QuantizedBiasAdd gives TensorFlow's integers. Those of QuantizedAdd are within two steps of the sum; TensorFlow's own,
in fixed point, are some dozens off.
"""


def _with_defaults(op: OpDef, attrs: Attrs) -> Attrs:
    return {**{name: a.default for name, a in op.attrs.items() if not a.required}, **attrs}


def _computed(op: str, attrs: Attrs, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """Returns what a floating op computes by its reference."""
    floating = registry.get(op)
    (found,) = evaluate(floating, _with_defaults(floating, attrs), inputs)
    return found


def _inferred(op: str, inputs: Sequence[int]) -> Callable[[InferenceContext], list[Shape]]:
    """Returns the shape function of an op whose first output has the shape that a floating op gives for some inputs."""

    def shape(c: InferenceContext) -> list[Shape]:
        floating = registry.get(op)
        attrs = _with_defaults(floating, c.attrs)
        shapes, values = [c.shapes[i] for i in inputs], [c.values[i] for i in inputs]
        inner = InferenceContext(floating, c.name, attrs, shapes, values, [c.dtypes[i] for i in inputs])
        inner.op = c.op  # errors are this op's
        return [*floating.shape(inner), (), ()]

    return shape


def _end(x: np.ndarray) -> Any:
    """Returns the end of a range: a scalar, or the first of a few equal numbers."""
    return F32(x.reshape(-1)[0])


def _ordered(ends: Sequence[Any]) -> None:
    for low, high in zip(ends[::2], ends[1::2], strict=True):
        if not low <= high:
            raise InvalidArgumentError(f"a range is {low} to {high}; its first end must be at most its second")


def _ends(arrays: Sequence[np.ndarray]) -> list[Any]:
    found = [_end(x) for x in arrays]
    _ordered(found)
    return found


def _define(
    name: str,
    inputs: Sequence[str],
    attrs: Sequence[str],
    doc: str,
    shape: Callable[[InferenceContext], Sequence[Shape]],
    reference: Callable[..., Any],
    output: str = "output: out_type",
    ends: Sequence[str] = ("output_min", "output_max"),
    shape_inputs: tuple[str, ...] = (),
) -> None:
    define_op(
        name,
        inputs=inputs,
        outputs=[*([output] if output else []), *(f"{end}: float" for end in ends)],
        attrs=attrs,
        doc=doc,
        shape=shape,
        reference=reference,
        gradient=_NO_GRADIENT,
        shape_inputs=shape_inputs,
        on_host=True,
    )


def _same(c: InferenceContext) -> list[Shape]:
    return [c.shapes[0], (), ()]


def _used_range(x: np.ndarray, low: Any, high: Any) -> tuple[Any, Any]:
    """Returns the range of the numbers that occur, with 0 in it."""
    if not x.size:
        return F32(0), F32(0)
    least, most = numbers(np.array([x.min(), x.max()], x.dtype), low, high)
    return min(F32(0), least), most


def _range(attrs: Attrs, x: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
    return _used_range(x, *_ends(ends))


def _shrunk(attrs: Attrs, x: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
    low, high = _ends(ends)
    used = _used_range(x, low, high)
    return requantized(x, low, high, *used, attrs["out_type"].numpy), *used


def _requantize(attrs: Attrs, x: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
    low, high, new_low, new_high = _ends(ends)
    return requantized(x, low, high, new_low, new_high, attrs["out_type"].numpy), new_low, new_high


def _matmul(attrs: Attrs, a: np.ndarray, b: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
    given, out = _ends(ends), attrs["Toutput"].numpy
    x, y = centred(a, *given[:2]), centred(b, *given[2:])
    product = (x.T if attrs["transpose_a"] else x) @ (y.T if attrs["transpose_b"] else y)
    return product.astype(out), *product_range(given, (a.dtype, b.dtype), out)


def _conv2d(attrs: Attrs, x: np.ndarray, filters: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
    given, out = _ends(ends), attrs["out_type"].numpy
    exact = [centred(v, *pair).astype(np.float64) for v, pair in ((x, given[:2]), (filters, given[2:]))]
    sums = _computed("Conv2D", attrs, exact)  # integers below 2^53 are exact
    return sums.astype(np.int64).astype(out), *product_range(given, (x.dtype, filters.dtype), out)


def _multiply(attrs: Attrs, x: np.ndarray, y: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
    given, out = _ends(ends), attrs["Toutput"].numpy
    product = centred(x, *given[:2]) * centred(y, *given[2:])
    return product.astype(out), *product_range(given, (x.dtype, y.dtype), out)


def _sum(room: int, type_attr: str) -> Callable[..., tuple[Any, ...]]:
    def add(attrs: Attrs, x: np.ndarray, y: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
        given, out = _ends(ends), attrs[type_attr].numpy
        high = max(abs(end) for end in given) * F32(room)
        terms = [numbers(v, *pair) for v, pair in ((x, given[:2]), (y, given[2:]))]
        first, second, zero = (integer_of(t, -high, high, out) for t in (*terms, 0.0))
        return (first + second - zero).astype(out), -high, high  # which both terms have in them

    return add


def _relu(limit: float | None) -> Callable[..., tuple[Any, ...]]:
    def relu(attrs: Attrs, x: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
        low, high = _ends(ends[-2:])
        found = np.maximum(x, integers(np.zeros(()), low, high, x.dtype))
        most = limit if len(ends) == 2 else float(_end(ends[0]))
        if most is not None:
            found = np.minimum(found, integers(np.asarray(F32(most)), low, high, x.dtype))
        return found.astype(attrs["out_type"].numpy), low, high

    return relu


def _pool(op: str) -> Callable[..., tuple[Any, ...]]:
    def pool(attrs: Attrs, x: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
        found = _computed(op, attrs, [x.astype(np.float64)])
        return np.trunc(found + 1e-9 * np.sign(found)).astype(x.dtype), *_ends(ends)

    return pool


def _reshape(attrs: Attrs, x: np.ndarray, shape: np.ndarray, *ends: np.ndarray) -> tuple[Any, ...]:
    return x.reshape(tuple(shape)), *_ends(ends)


def _concat(attrs: Attrs, axis: np.ndarray, *rest: np.ndarray) -> tuple[Any, ...]:
    count = attrs["N"]
    values, given = rest[:count], [_end(x) for x in rest[count:]]
    lows, highs = given[:count], given[count:]
    low, high = min(F32(0), *lows), max(highs)
    if np.iinfo(values[0].dtype).min < 0:
        high = max(abs(low), abs(high))
        low = -high
    moved = [
        x if (a, b) == (low, high) else requantized(x, a, b, low, high, x.dtype)
        for x, a, b in zip(values, lows, highs, strict=True)
    ]
    return np.concatenate(moved, int(axis)), low, high


def _concat_shape(c: InferenceContext) -> list[Shape]:
    return _inferred("Concat", range(c.attrs["N"] + 1))(c)


_RANGE_OF_INPUT = ("input_min: float", "input_max: float")
_INPUT, _OUT = f"Tinput: {QUANTIZED}", f"out_type: {QUANTIZED}"
_SHIFTED = "; sums are of integers less the one that stands for 0, and one step of theirs is the product of both steps."
_WINDOW = ["ksize: list(int)", "strides: list(int)", "padding: {'SAME', 'VALID'}"]

_define(
    "RequantizationRange", ["input: Tinput", *_RANGE_OF_INPUT], [_INPUT],
    "The range of the numbers that occur in a quantized tensor, with 0 in it.",
    lambda c: [(), ()], _range, output="",
)  # fmt: skip
_define(
    "QuantizeDownAndShrinkRange", ["input: Tinput", *_RANGE_OF_INPUT], [_INPUT, _OUT],
    "A quantized tensor with fewer bits, and the range of the numbers that occur in it.", _same, _shrunk,
)  # fmt: skip
_define(
    "Requantize",
    ["input: Tinput", *_RANGE_OF_INPUT, "requested_output_min: float", "requested_output_max: float"], [_INPUT, _OUT],
    "A quantized tensor as integers that cover another range.", _same, _requantize,
)  # fmt: skip
_define(
    "QuantizedMatMul",
    ["a: T1", "b: T2", "min_a: float", "max_a: float", "min_b: float", "max_b: float"],
    [f"T1: {QUANTIZED}", f"T2: {QUANTIZED}", f"Toutput: {QUANTIZED} = DT_QINT32", "transpose_a: bool = false",
     "transpose_b: bool = false", f"Tactivation: {QUANTIZED} = DT_QUINT8"],
    "The product of two quantized matrices" + _SHIFTED,
    _inferred("MatMul", (0, 1)), _matmul, "out: Toutput", ("min_out", "max_out"),
)  # fmt: skip
_define(
    "QuantizedConv2D",
    ["input: Tinput", "filter: Tfilter", "min_input: float", "max_input: float", "min_filter: float",
     "max_filter: float"],
    [_INPUT, f"Tfilter: {QUANTIZED}", f"{_OUT} = DT_QINT32", "strides: list(int)", "padding: {'SAME', 'VALID'}",
     "dilations: list(int) = [1, 1, 1, 1]"],
    "A convolution of quantized images [batch, height, width, channels] with quantized filters" + _SHIFTED,
    _inferred("Conv2D", (0, 1)), _conv2d, ends=("min_output", "max_output"),
)  # fmt: skip
_define(
    "QuantizedBiasAdd",
    ["input: T1", "bias: T2", "min_input: float", "max_input: float", "min_bias: float", "max_bias: float"],
    [f"T1: {QUANTIZED}", f"T2: {QUANTIZED}", _OUT],
    f"A quantized tensor plus a quantized vector for its last axis, with room for {_BIAS_ROOM} such numbers.",
    _inferred("BiasAdd", (0, 1)), _sum(_BIAS_ROOM, "out_type"), ends=("min_out", "max_out"),
)  # fmt: skip
for _name, _reference, _doc in (
    (
        "QuantizedAdd",
        _sum(_SUM_ROOM, "Toutput"),
        f"The sum of two quantized tensors, with room for {_SUM_ROOM} such numbers.",
    ),
    ("QuantizedMul", _multiply, "The product of two quantized tensors" + _SHIFTED),
):
    _define(
        _name, ["x: T1", "y: T2", "min_x: float", "max_x: float", "min_y: float", "max_y: float"],
        [f"T1: {QUANTIZED}", f"T2: {QUANTIZED}", f"Toutput: {QUANTIZED} = DT_QINT32"],
        _doc, _inferred("Mul", (0, 1)), _reference, "z: Toutput", ("min_z", "max_z"),
    )  # fmt: skip
for _name, _most, _inputs, _doc in (
    ("QuantizedRelu", None, [], "The larger of each number and 0."),
    ("QuantizedRelu6", 6.0, [], "Each number, at least 0 and at most 6."),
    ("QuantizedReluX", None, ["max_value: float"], "Each number, at least 0 and at most max_value."),
):
    _define(
        _name, ["features: Tinput", *_inputs, "min_features: float", "max_features: float"],
        [_INPUT, f"{_OUT} = DT_QUINT8"], _doc, _same, _relu(_most), "activations: out_type",
        ("min_activations", "max_activations"),
    )  # fmt: skip
for _op, _doc in (("MaxPool", "The greatest"), ("AvgPool", "The mean, rounded towards 0,")):
    _define(
        f"Quantized{_op}", ["input: T", "min_input: float", "max_input: float"], [f"T: {QUANTIZED}", *_WINDOW],
        f"{_doc} of the integers in each window.", _inferred(_op, (0,)), _pool(_op), "output: T",
        ("min_output", "max_output"),
    )  # fmt: skip
_define(
    "QuantizedReshape", ["tensor: T", "shape: Tshape", *_RANGE_OF_INPUT],
    ["T: type", "Tshape: {int32, int64} = DT_INT32"], "A quantized tensor with another shape.",
    _inferred("Reshape", (0, 1)), _reshape, "output: T", shape_inputs=("shape",),
)  # fmt: skip
_define(
    "QuantizedConcat", ["concat_dim: int32", "values: N * T", "input_mins: N * float", "input_maxes: N * float"],
    ["N: int >= 2", "T: type"],
    "Quantized tensors joined along an axis, as integers that cover the ranges of all.", _concat_shape, _concat,
    "output: T", shape_inputs=("concat_dim",),
)  # fmt: skip
