"""Integers, ranges, roundings and gradients of tf.quantization.quantize and quantize_and_dequantize: TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

X = np.linspace(-7.3, 8.1, 60, dtype=np.float32).reshape(4, 5, 3)
GRAD = np.random.default_rng(0).random(X.shape).astype(np.float32)
ROUNDINGS = [
    ("MIN_COMBINED", "HALF_AWAY_FROM_ZERO"), ("MIN_FIRST", "HALF_AWAY_FROM_ZERO"),
    ("SCALED", "HALF_AWAY_FROM_ZERO"), ("SCALED", "HALF_TO_EVEN"),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "rounding"), ROUNDINGS)
@pytest.mark.parametrize("dtype", ["qint8", "quint8", "qint16", "quint16"])
@pytest.mark.parametrize("ends", [(-6.0, 6.0), (-1.0, 2.0), (0.25, 3.0), (-5.0, -1.0), (0.0, 0.0)])
def test_integers(
    mode: str, rounding: str, dtype: str, ends: tuple[float, float], carry_over: Callable[[Any], int]
) -> None:
    def build(tf: Any, feed: Callable[..., Any]) -> Any:
        made = tf.quantization.quantize(feed(X), *ends, getattr(tf, dtype), mode, rounding)
        plain = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16"}[dtype]
        return [tf.bitcast(made.output, getattr(tf, plain)), made.output_min, made.output_max]

    assert carry_over(build) == 3


@pytest.mark.parametrize("axis", [None, 0, 2])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(("bits", "signed", "narrow"), [(8, True, False), (3, True, True), (16, False, False)])
@pytest.mark.parametrize("kind", ["quantize_and_dequantize", "quantize_and_dequantize_v2"])
def test_there_and_back(
    axis: int | None, given: bool, bits: int, signed: bool, narrow: bool, kind: str, carry_over: Callable[[Any], int]
) -> None:
    def build(tf: Any, feed: Callable[..., Any]) -> Any:
        x, shape = feed(X), () if axis is None else X.shape[axis]
        ends = [np.full(shape, end, np.float32) for end in (-3.0, 5.0)]
        y = getattr(tf.quantization, kind)(
            x, *ends, signed, bits, given, "HALF_UP" if narrow else "HALF_TO_EVEN", None, narrow, axis
        )
        return [y, tf.gradients(y, x, GRAD)[0]]

    assert carry_over(build) == 2


@pytest.mark.parametrize(("low", "high"), [(-2.0, 5.96875), (-0.3, 4.0), (0.0, 6.0)])
def test_quantized_ops(low: float, high: float, carry_over: Callable[[Any], int]) -> None:
    def build(tf: Any, feed: Callable[..., Any]) -> Any:
        raw = tf.raw_ops

        def quantized(*shape: int) -> Any:
            given = np.float32(np.random.default_rng(len(shape)).uniform(low, high, shape))
            return raw.QuantizeV2(input=feed(given), min_range=low, max_range=high, T=tf.quint8, mode="MIN_FIRST")

        def ends(a: str, x: Any, b: str, y: Any) -> dict[str, Any]:
            return {f"min_{a}": x[1], f"max_{a}": x[2], f"min_{b}": y[1], f"max_{b}": y[2]}

        def integers(result: Any, plain: Any) -> list[Any]:
            return [tf.bitcast(result[0], plain), *result[1:]]

        matrix, row, images, filters = quantized(6, 6), quantized(6), quantized(1, 4, 6, 1), quantized(3, 2, 1, 2)
        window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
        pooled = {"input": images[0], "min_input": images[1], "max_input": images[2], **window}
        product = raw.QuantizedMatMul(a=matrix[0], b=matrix[0], **ends("a", matrix, "b", matrix), Toutput=tf.qint32)
        given = {"input": product[0], "input_min": product[1], "input_max": product[2]}
        wide = [
            product,
            raw.QuantizedMul(x=matrix[0], y=row[0], **ends("x", matrix, "y", row)),
            raw.QuantizedBiasAdd(
                input=matrix[0], bias=row[0], **ends("input", matrix, "bias", row), out_type=tf.qint32
            ),
            raw.QuantizedConv2D(
                input=images[0], filter=filters[0], **ends("input", images, "filter", filters), strides=[1, 1, 1, 1],
                padding="VALID", out_type=tf.qint32,
            ),
        ]  # fmt: skip
        small = [
            raw.QuantizedRelu6(features=matrix[0], min_features=matrix[1], max_features=matrix[2]),
            raw.QuantizedMaxPool(**pooled),
            raw.QuantizedAvgPool(**pooled),
            raw.QuantizeDownAndShrinkRange(**given, out_type=tf.quint8),
        ]
        ranges = list(raw.RequantizationRange(**given))
        return [
            *ranges,
            *(y for result in wide for y in integers(result, tf.int32)),
            *(y for result in small for y in integers(result, tf.uint8)),
        ]

    assert carry_over(build) == 26
