"""Fourier and cosine transforms of the last dimensions, and where their elements lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import timberframe
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op

tf: Any = timberframe  # whose tensors have operators that types do not show

_NAMES = {1: "", 2: "2D", 3: "3D"}
_PRECISION = {"complex64": "float32", "complex128": "float64", "float32": "complex64", "float64": "complex128"}


def _complex(rank: int, inverse: bool) -> Callable[..., Any]:
    op = f"{'I' if inverse else ''}FFT{_NAMES[rank]}"

    def transform(input: Any, name: str | None = None) -> Any:
        return apply_op(op, [input], None, name)

    transform.__name__ = transform.__qualname__ = op.lower()
    what = "inverse discrete" if inverse else "discrete"
    transform.__doc__ = f"The {what} Fourier transform of complex numbers along the last {rank} dimensions."
    return transform


fft, fft2d, fft3d = (_complex(rank, inverse=False) for rank in _NAMES)
ifft, ifft2d, ifft3d = (_complex(rank, inverse=True) for rank in _NAMES)


def _of_reals(rank: int) -> Callable[..., Any]:
    def transform(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
        with tf.name_scope(name, op.lower(), [input_tensor, fft_length]) as scope:
            x = tf.convert_to_tensor(input_tensor, preferred_dtype=tf.float32)
            lengths = tf.shape(x)[-rank:] if fft_length is None else tf.convert_to_tensor(fft_length, tf.int32)
            if fft_length is not None:
                x = _extended(x, lengths, rank)
            return apply_op(op, [x, lengths], {"Tcomplex": _PRECISION[x.dtype.name]}, scope)

    op = f"RFFT{_NAMES[rank]}"
    transform.__name__ = transform.__qualname__ = op.lower()
    transform.__doc__ = f"""The discrete Fourier transform of the last {rank} dimensions of real numbers.

    Of the last dimension fft_length // 2 + 1 elements are given, since the others are their conjugates. fft_length: how
    many elements each dimension has, by default those of the input, which is cut or filled with zeros.
    """
    return transform


def _to_reals(rank: int) -> Callable[..., Any]:
    def transform(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
        with tf.name_scope(name, op.lower(), [input_tensor, fft_length]) as scope:
            x = tf.convert_to_tensor(input_tensor, preferred_dtype=tf.complex64)
            if fft_length is None:
                now = tf.shape(x)[-rank:]
                lengths = tf.concat([now[:-1], tf.maximum(2 * (now[-1:] - 1), 0)], 0)
            else:
                lengths = tf.convert_to_tensor(fft_length, tf.int32)
                x = _extended(x, tf.concat([lengths[:-1], lengths[-1:] // 2 + 1], 0), rank)
            return apply_op(op, [x, lengths], {"Treal": _PRECISION[x.dtype.name]}, scope)

    op = f"IRFFT{_NAMES[rank]}"
    transform.__name__ = transform.__qualname__ = op.lower()
    transform.__doc__ = f"""The inverse of `{op[1:].lower()}`: real numbers in the last {rank} dimensions.

    fft_length: how many elements each dimension gets, by default those of the input, and 2 (n - 1) of its last one.
    """
    return transform


rfft, rfft2d, rfft3d = (_of_reals(rank) for rank in _NAMES)
irfft, irfft2d, irfft3d = (_to_reals(rank) for rank in _NAMES)


def _extended(x: Any, lengths: Any, rank: int) -> Any:
    """x with zeros at the ends of its last dimensions where they are shorter than that."""
    known, sizes = tf.get_static_value(lengths), x.static_shape
    if (
        known is not None
        and sizes is not None
        and all(n is not None and n >= wanted for n, wanted in zip(sizes[-rank:], known, strict=True))
    ):
        return x
    missing = tf.maximum(lengths - tf.shape(x)[-rank:], 0)
    amounts = tf.concat([tf.zeros([tf.rank(x) - rank], tf.int32), missing], 0)
    padded = tf.pad(x, tf.stack([tf.zeros_like(amounts), amounts], 1))
    if known is not None and sizes is not None:
        ends = [None if n is None else max(n, int(w)) for n, w in zip(sizes[-rank:], known, strict=True)]
        padded.set_shape([*sizes[:-rank], *ends])
    return padded


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Returns the element of frequency zero moved to the middle of each axis; axes: by default all."""
    return _shifted(x, axes, lambda n: n // 2, name or "fftshift")


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Returns the inverse of `fftshift`."""
    return _shifted(x, axes, lambda n: -(n // 2), name or "ifftshift")


def _shifted(x: Any, axes: Any, by: Callable[[Any], Any], name: str) -> Any:
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x)
        if axes is None:
            axes = list(range(len(x.shape)))
        along: Sequence[int] = [axes] if isinstance(axes, int) else list(axes)
        return tf.roll(x, [by(tf.shape(x)[axis]) for axis in along], along)


def dct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Any:
    """Returns the discrete cosine transform of the last dimension of real numbers, of type 1, 2, 3 or 4.

    n: how many elements, by default those of the input, which is cut or filled with zeros. norm: "ortho" makes the
    transform orthonormal (types 2, 3 and 4). axis: must be -1.
    """
    _check_dct(type, axis, n, norm)
    with tf.name_scope(name, "dct", [input]):
        x = tf.convert_to_tensor(input, preferred_dtype=tf.float32)
        if n is not None:
            x = _extended(x[..., :n], tf.convert_to_tensor([n], tf.int32), 1)
        return _DCT[type](x, norm == "ortho")


def idct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Any:
    """Returns the inverse of `dct` of this type, but for a factor of 2 n (2 (n - 1) for
    type 1) without norm="ortho".
    """
    _check_dct(type, axis, n, norm)
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}[type], n, axis, norm, name or "idct")


def _check_dct(kind: int, axis: int, n: Any, norm: str | None) -> None:
    if kind not in _DCT:
        raise InvalidArgumentError(f"tf.signal.dct: type is {kind!r}; 1, 2, 3 or 4 is required")
    if axis != -1:
        raise InvalidArgumentError(f"tf.signal.dct: axis is {axis}; it must be -1")
    if norm not in (None, "ortho") or (kind == 1 and norm):
        raise InvalidArgumentError(f"tf.signal.dct: norm is {norm!r}; None or 'ortho' (not for type 1) is required")
    if isinstance(n, int) and n < 1:
        raise InvalidArgumentError(f"tf.signal.dct: n is {n}; it must be positive")


def _size(x: Any) -> Any:
    """Returns how many elements the last dimension has."""
    known = x.static_shape
    return tf.shape(x)[-1] if known is None or known[-1] is None else known[-1]


def _phases(x: Any, sign: float) -> Any:
    """2 exp(sign i pi k / 2N) for the N elements of the last dimension."""
    size = _size(x)
    angles = tf.cast(tf.range(size), x.dtype) * sign * math.pi * 0.5 / tf.cast(size, x.dtype)
    return 2.0 * tf.exp(tf.complex(tf.zeros([], x.dtype), angles))


def _first(x: Any, size: Any) -> Any:
    return x[..., :size]


def _type_1(x: Any, ortho: bool) -> Any:
    return tf.real(rfft(tf.concat([x, x[..., -2:0:-1]], -1)))


def _type_2(x: Any, ortho: bool) -> Any:
    size = _size(x)
    made = tf.real(_first(rfft(x, [2 * size]), size) * _phases(x, -1.0))
    return made * _weights(x, 0.5, math.sqrt(0.5), -0.5) if ortho else made


def _type_3(x: Any, ortho: bool) -> Any:
    size = _size(x)
    given = x * _weights(x, 1.0, math.sqrt(0.5), 0.5) if ortho else x * tf.cast(size, x.dtype)
    return _first(irfft(tf.complex(given, tf.zeros_like(given)) * _phases(x, 1.0), [2 * size]), size)


def _type_4(x: Any, ortho: bool) -> Any:
    size = _size(x)
    made = _type_2(_extended(x, tf.stack([2 * size]), 1), False)[..., 1::2]
    return made * math.sqrt(0.5) * tf.rsqrt(tf.cast(size, x.dtype)) if ortho else made


def _weights(x: Any, first: float, others: float, power: float) -> Any:
    """For each element of the last dimension the factor of an orthonormal transform, times size ** power."""
    size = _size(x)
    factors = tf.where(
        tf.equal(tf.range(size), 0), tf.fill([size], np.array(first, x.dtype.numpy)),
        tf.fill([size], np.array(others, x.dtype.numpy)),
    )  # fmt: skip
    return factors * tf.cast(size, x.dtype) ** power


_DCT: dict[int, Callable[[Any, bool], Any]] = {1: _type_1, 2: _type_2, 3: _type_3, 4: _type_4}
