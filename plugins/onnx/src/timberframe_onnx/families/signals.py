"""Fourier transforms, and what is made for sounds."""

from __future__ import annotations

from typing import Any

from timberframe_onnx.elements import NATIVE
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts, static
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor


@translates("DFT")
def _dft(node: Node, x: Tensor, length: Tensor = None, axis: Tensor = None) -> Tensor:
    rank = node.rank(x)
    along: Any = node.get("axis", 1) if node.opset < 20 else -2
    if axis is not None:
        known = static(axis)
        along = tf.cast(tf.reshape(axis, []), tf.int32) if known is None else int(known.reshape(()))
    along = tf.floormod(along, rank) if isinstance(along, tf.Tensor) else along % rank
    return transformed(x, along, length, inverse=bool(node.get("inverse", 0)), onesided=bool(node.get("onesided", 0)))


def transformed(x: Tensor, axis: Any, length: Tensor | None, inverse: bool, onesided: bool) -> Tensor:
    """Returns the Fourier transform of x [..., 1 or 2] along an axis, numbers as pairs along the last.

    axis: a number or a scalar of the graph, from 0.
    """
    parts: list[Any] = shape_parts(x)
    rank = len(parts)
    at = tf.range(rank - 1)
    dtype = x.dtype
    wide = dtype if dtype == tf.float64 else tf.float32
    last = rank - 2
    order = tf.concat([tf.where_v2(at < last, tf.where_v2(at < axis, at, at + 1), axis), [rank - 1]], 0)
    rows = tf.transpose(tf.cast(x, wide), order)
    number = tf.complex(rows[..., 0], rows[..., 1] if parts[-1] == 2 else tf.zeros_like(rows[..., 0]))
    size = tf.shape(number)[-1]
    count: Any = (
        (2 * (size - 1) if inverse and onesided else size)
        if length is None
        else tf.cast(tf.reshape(length, []), tf.int32)
    )
    kept = count // 2 + 1 if inverse and onesided else count
    number = number[..., :kept]
    missing = tf.maximum(kept - size, 0)
    zero = tf.constant([0, 0])
    number = tf.pad(number, tf.stack([*[zero] * (rank - 2), tf.stack([0, missing])]))
    if inverse and onesided:
        made = tf.spectral.irfft(number, tf.reshape(count, [1]))[..., None]
    else:
        made = tf.spectral.ifft(number) if inverse else tf.spectral.fft(number)
        made = made[..., : count // 2 + 1] if onesided else made
        made = tf.stack([tf.real(made), tf.imag(made)], -1)
    return tf.cast(tf.transpose(made, tf.invert_permutation(order)), dtype)


@translates("STFT")
def _stft(node: Node, signal: Tensor, step: Tensor, window: Tensor = None, length: Tensor = None) -> Tensor:
    rank = node.rank(signal)
    if rank == 2:
        signal = signal[..., None]
    size = shape_parts(signal)[1]
    if length is not None:
        frame: Any = tf.cast(tf.reshape(length, []), tf.int32)
    else:
        frame = size if window is None else shape_parts(window)[0]
    hop = tf.cast(tf.reshape(step, []), tf.int32)
    count = 1 + (size - frame) // hop
    places = (tf.range(count) * hop)[:, None] + tf.range(tf.cast(frame, tf.int32))
    frames = tf.gather(signal, places, axis=1)
    if window is not None:
        frames = frames * window[:, None]
    return transformed(frames, 2, None, inverse=False, onesided=bool(node.get("onesided", 1)))


@translates("MelWeightMatrix")
def _mel_weights(node: Node, mels: Tensor, length: Tensor, rate: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Triangles over the bins of a spectrum, at equal distances on the mel scale."""
    mels, length, rate = (tf.cast(tf.reshape(v, []), tf.int32) for v in (mels, length, rate))
    low, high = (tf.cast(tf.reshape(v, []), tf.float64) for v in (low, high))

    def mel(hertz: Tensor) -> Tensor:
        return 2595 * tf.math.log1p(hertz / 700) / tf.log(tf.constant(10.0, tf.float64))

    step = (mel(high) - mel(low)) / tf.cast(mels + 2, tf.float64)
    at = tf.cast(tf.range(mels + 2), tf.float64) * step + mel(low)
    hertz = 700 * tf.math.expm1(at / 2595 * tf.log(tf.constant(10.0, tf.float64)))
    edges = tf.floor(tf.cast(length + 1, tf.float64) * hertz / tf.cast(rate, tf.float64))
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    bins = tf.cast(tf.range(length // 2 + 1), tf.float64)[:, None]
    zero, one = tf.zeros_like(bins), tf.ones_like(bins)
    rise, fall = centre - left, right - centre
    up = tf.where_v2(
        tf.equal(rise, 0), tf.where_v2(tf.equal(bins, centre), one, zero), (bins - left) / tf.maximum(rise, 1.0)
    )
    up = tf.where_v2(tf.logical_and(bins >= left, bins <= centre), up, zero)
    down = tf.logical_and(fall > 0, tf.logical_and(bins >= centre, bins < right))
    made = tf.where_v2(down, (right - bins) / tf.maximum(fall, 1.0), up)
    return tf.cast(made, NATIVE[node.get("output_datatype", 1)])
