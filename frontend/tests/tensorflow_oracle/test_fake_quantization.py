"""Ranges, roundings and gradients of tf.quantization.fake_quant_* are TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

X = np.linspace(-7.3, 8.1, 60, dtype=np.float32).reshape(4, 5, 3)
RANGES = [
    (-6.0, 6.0, 8, False), (-1.0, 2.0, 3, False), (0.25, 3.0, 4, True), (-5.0, -1.0, 16, False), (0.0, 0.0, 8, True)
]  # fmt: skip
GRAD = np.random.default_rng(0).random(X.shape).astype(np.float32)


@pytest.mark.parametrize(("low", "high", "bits", "narrow"), RANGES[:-1])
def test_ends_as_attrs(low: float, high: float, bits: int, narrow: bool, carry_over: Callable[[Any], int]) -> None:
    def build(tf: Any, feed: Callable[..., Any]) -> Any:
        x = feed(X)
        y = tf.quantization.fake_quant_with_min_max_args(x, low, high, bits, narrow)
        return [y, tf.gradients(y, x, GRAD)[0]]

    assert carry_over(build) == 2


@pytest.mark.parametrize(("low", "high", "bits", "narrow"), RANGES)
@pytest.mark.parametrize("per_channel", [False, True])
def test_ends_as_tensors(
    low: float, high: float, bits: int, narrow: bool, per_channel: bool, carry_over: Callable[[Any], int]
) -> None:
    def build(tf: Any, feed: Callable[..., Any]) -> Any:
        ends = [np.array([end, 1.5 * end, end], np.float32) if per_channel else np.float32(end) for end in (low, high)]
        x, smallest, largest = inputs = [feed(value) for value in (X, *ends)]
        kind = "fake_quant_with_min_max_vars" + "_per_channel" * per_channel
        y = getattr(tf.quantization, kind)(x, smallest, largest, bits, narrow)
        return [y, *tf.gradients(y, inputs, GRAD)]

    assert carry_over(build) == 4


@pytest.mark.parametrize("kind", ["Args", "Vars", "VarsPerChannel"])
def test_our_gradients(kind: str, compare: Callable[..., None]) -> None:
    ends = {} if kind == "Args" else {"min": np.float32(-3), "max": np.float32(5)}
    if kind == "VarsPerChannel":
        ends = {name: np.full(3, value) for name, value in ends.items()}
    compare(f"FakeQuantWithMinMax{kind}", {"inputs": X, **ends}, {"num_bits": 4})
