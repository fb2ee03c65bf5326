"""Signals as overlapping frames, and their transforms: short-time Fourier, and modified cosine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import timberframe
from timberframe.signal.fourier import dct, irfft, rfft
from timberframe.signal.windows import hann_window, vorbis_window
from timberframe_core.errors import InvalidArgumentError

tf: Any = timberframe  # whose tensors have operators that types do not show

Window = Callable[..., Any]


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Any:
    """Returns the frames of an axis, frame_step apart: [..., frames, frame_length, ...].

    pad_end: whether frames that reach beyond the end are there, too, filled with pad_value.
    """
    with tf.name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        x = tf.convert_to_tensor(signal)
        rank = len(x.shape)
        along = axis % rank
        size = x.shape.as_list()[along]
        length, step = (_number(n) for n in (frame_length, frame_step))
        samples = tf.shape(x)[along] if size is None else size
        if pad_end:
            count = -(-samples // step)
            missing = tf.maximum(0, length + step * (count - 1) - samples)
            amounts = [[0, missing if i == along else 0] for i in range(rank)]
            x = tf.pad(x, amounts, constant_values=pad_value)
        else:
            count = _at_least_zero(1 + (samples - length) // step)
        starts = tf.range(count) * step
        return tf.gather(x, starts[:, None] + tf.range(length)[None], axis=along)


def _number(value: Any) -> Any:
    """Returns a number that is known before a run as such."""
    known = value if isinstance(value, int) else tf.get_static_value(tf.convert_to_tensor(value, tf.int32))
    return tf.convert_to_tensor(value, tf.int32) if known is None else int(known)


def _at_least_zero(count: Any) -> Any:
    return max(count, 0) if isinstance(count, int) else tf.maximum(count, 0)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Any:
    """Returns the sum of frames, [..., frames, frame_length], each frame_step after the one
    before it: [..., samples].
    """
    with tf.name_scope(name, "overlap_and_add", [signal, frame_step]):
        x = tf.convert_to_tensor(signal)
        sizes = x.shape.as_list()
        count, length = (n if n is not None else tf.shape(x)[i] for i, n in ((-2, sizes[-2]), (-1, sizes[-1])))
        step = _number(frame_step)
        samples = _at_least_zero((count - 1) * step + length)
        places = tf.range(count)[:, None] * step + tf.range(length)[None]
        last = len(sizes)
        flipped = tf.transpose(x, [last - 2, last - 1, *range(last - 2)])
        made = tf.unsorted_segment_sum(flipped, places, samples)
        return tf.transpose(made, [*range(1, last - 1), 0])


def _fft_length(frame_length: Any, fft_length: Any) -> Any:
    """Returns the given length, by default the least power of two that holds a frame."""
    if fft_length is not None:
        return _number(fft_length)
    length = _number(frame_length)
    if not isinstance(length, int):
        raise InvalidArgumentError("tf.signal.stft: frame_length is computed by a run; give fft_length")
    return 1 << max(length - 1, 0).bit_length()


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Window | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Any:
    """Returns the short-time Fourier transform of real signals, [..., samples]: [..., frames, fft_length // 2 + 1].

    fft_length: by default the least power of two that holds a frame. window_fn: makes the window from a length and a
    dtype; None means none.
    """
    with tf.name_scope(name, "stft", [signals, frame_length, frame_step]):
        x = tf.convert_to_tensor(signals, preferred_dtype=tf.float32)
        framed = frame(x, frame_length, frame_step, pad_end)
        if window_fn is not None:
            framed = framed * window_fn(frame_length, dtype=framed.dtype)
        return rfft(framed, [_fft_length(frame_length, fft_length)])


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Window | None = hann_window,
    name: str | None = None,
) -> Any:
    """Signals from their short-time Fourier transforms.

    With window_fn=inverse_stft_window_fn(frame_step) they are those that were transformed, where frames overlap.
    """
    with tf.name_scope(name, "inverse_stft", [stfts]):
        x = tf.convert_to_tensor(stfts)
        length = _number(frame_length)
        framed = irfft(x, [_fft_length(frame_length, fft_length)])[..., :length]
        missing = tf.maximum(0, length - tf.shape(framed)[-1])
        framed = tf.pad(framed, [*([[0, 0]] * (len(x.shape) - 1)), [0, missing]])
        framed.set_shape([*framed.shape.as_list()[:-1], length if isinstance(length, int) else None])
        if window_fn is not None:
            framed = framed * window_fn(frame_length, dtype=framed.dtype)
        return overlap_and_add(framed, frame_step)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Window = hann_window, name: str | None = None
) -> Callable[..., Any]:
    """Returns the window by which `inverse_stft` gives back what `stft` with forward_window_fn has transformed."""

    def window(frame_length: Any, dtype: Any) -> Any:
        with tf.name_scope(name, "inverse_stft_window_fn", [forward_window_fn]):
            length, step = _number(frame_length), _number(frame_step)
            forward = forward_window_fn(frame_length, dtype=dtype)
            overlaps = -(-length // step)
            energy = tf.reshape(tf.pad(tf.square(forward), [[0, overlaps * step - length]]), [overlaps, step])
            total = tf.tile(tf.reduce_sum(energy, 0, keepdims=True), [overlaps, 1])
            return forward / tf.reshape(total, [-1])[:length]

    return window


def mdct(
    signals: Any,
    frame_length: Any,
    window_fn: Window | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns the modified discrete cosine transform: of frames that overlap by half, [..., frames, frame_length // 2].

    frame_length: a multiple of 4.
    """
    with tf.name_scope(name, "mdct", [signals, frame_length]):
        x = tf.convert_to_tensor(signals, preferred_dtype=tf.float32)
        length = _number(frame_length)
        if isinstance(length, int) and length % 4:
            raise InvalidArgumentError(f"tf.signal.mdct: frame_length is {length}; it must be a multiple of 4")
        framed = frame(x, length, length // 2, pad_end)
        if window_fn is not None:
            framed = framed * window_fn(length, dtype=framed.dtype)
        else:
            framed = framed * tf.cast(tf.sqrt(0.5), framed.dtype)
        a, b, c, d = tf.split(framed, 4, -1)
        folded = tf.concat([-tf.reverse(c, [-1]) - d, a - tf.reverse(b, [-1])], -1)
        return dct(folded, 4, norm=norm)


def inverse_mdct(
    mdcts: Any, window_fn: Window | None = vorbis_window, norm: str | None = None, name: str | None = None
) -> Any:
    """Returns the inverse of `mdct`, for a window whose squares add up to one at half its length."""
    with tf.name_scope(name, "inverse_mdct", [mdcts]):
        x = tf.convert_to_tensor(mdcts, preferred_dtype=tf.float32)
        half = x.shape.as_list()[-1]
        if half is None:
            raise InvalidArgumentError(
                f"tf.signal.inverse_mdct: mdcts '{x.name}' has shape {x.shape}; its last size must be known"
            )
        made = dct(x, 4, norm=norm)
        if norm is None:
            made = made * (0.5 / half)
        first, second = tf.split(made, 2, -1)
        backward = [tf.reverse(p, [-1]) for p in (first, second)]
        framed = tf.concat([second, -backward[1], -backward[0], -first], -1)
        if window_fn is not None:
            framed = framed * window_fn(2 * half, dtype=framed.dtype)
        else:
            framed = framed * tf.cast(tf.sqrt(0.5), framed.dtype)
        return overlap_and_add(framed, half)
