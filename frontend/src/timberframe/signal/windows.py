"""Windows: weights of the samples of a frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import timberframe
from timberframe_core.errors import UnimplementedError

tf: Any = timberframe  # whose tensors have operators that types do not show


def hann_window(window_length: Any, periodic: bool = True, dtype: Any = tf.float32, name: str | None = None) -> Any:
    """0.5 - 0.5 cos(2 pi n / N): periodic windows have N = window_length, others one less."""
    return _cosine(window_length, periodic, dtype, 0.5, 0.5, name or "hann_window")


def hamming_window(window_length: Any, periodic: bool = True, dtype: Any = tf.float32, name: str | None = None) -> Any:
    """0.54 - 0.46 cos(2 pi n / N); see `hann_window`."""
    return _cosine(window_length, periodic, dtype, 0.54, 0.46, name or "hamming_window")


def _cosine(length: Any, periodic: bool, dtype: Any, a: float, b: float, name: str) -> Any:
    kind = tf.as_dtype(dtype)
    with tf.name_scope(name):
        count = tf.convert_to_tensor(length, tf.int32)
        last = count - tf.floormod(count, 2) if periodic else count - 1  # as TensorFlow has it for odd lengths
        angles = 2 * math.pi * tf.cast(tf.range(count), kind) / tf.cast(tf.maximum(last, 1), kind)
        made = a - b * tf.cos(angles)
        return tf.cond(tf.equal(count, 1), lambda: tf.ones([1], kind), lambda: made) if _may_be_one(length) else made


def _may_be_one(length: Any) -> bool:
    known = length if isinstance(length, int) else tf.get_static_value(tf.convert_to_tensor(length))
    return known is None or int(known) == 1


def _known(length: Any, what: str) -> int:
    known = tf.get_static_value(tf.convert_to_tensor(length))
    if known is None:
        raise UnimplementedError(f"tf.signal.{what}: window_length is computed by a run; it must be known before")
    return int(known)


def kaiser_window(window_length: Any, beta: float = 12.0, dtype: Any = tf.float32, name: str | None = None) -> Any:
    """Returns the Kaiser window: I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1. window_length must be known."""
    return tf.constant(np.kaiser(_known(window_length, "kaiser_window"), beta), dtype, name=name or "kaiser_window")


def kaiser_bessel_derived_window(
    window_length: Any, beta: float = 12.0, dtype: Any = tf.float32, name: str | None = None
) -> Any:
    """Returns the window of roots of sums of a Kaiser window, whose squares add up to one at half its length."""
    half = _known(window_length, "kaiser_bessel_derived_window") // 2
    sums = np.cumsum(np.kaiser(half + 1, beta))
    rising = np.sqrt(sums[:-1] / sums[-1])
    return tf.constant(np.concatenate([rising, rising[::-1]]), dtype, name=name or "kaiser_bessel_derived_window")


def vorbis_window(window_length: Any, dtype: Any = tf.float32, name: str | None = None) -> Any:
    """sin(pi / 2 sin^2(pi (n + 1/2) / N)), the window of Vorbis."""
    kind = tf.as_dtype(dtype)
    with tf.name_scope(name, "vorbis_window"):
        count = tf.convert_to_tensor(window_length, tf.int32)
        angles = math.pi * (tf.cast(tf.range(count), kind) + 0.5) / tf.cast(count, kind)
        return tf.sin(math.pi / 2 * tf.square(tf.sin(angles)))
