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
