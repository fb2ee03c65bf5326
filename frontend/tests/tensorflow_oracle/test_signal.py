"""tf.signal beside TensorFlow's: values, shapes and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe

RNG = np.random.default_rng(5)
REALS = RNG.normal(size=(2, 4, 6, 12)).astype(np.float32)
COMPLEXES = (REALS + 1j * REALS[::-1, ::-1]).astype(np.complex64)
SIGNALS = RNG.normal(size=(2, 100)).astype(np.float32)

Build = Callable[[Any], list[Any]]


def complex_transforms(tf: Any) -> list[Any]:
    names = ("fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d")
    made = [getattr(space, name)(COMPLEXES) for space in (tf.signal, tf.spectral, tf) for name in names]
    return [*made, tf.signal.fft(COMPLEXES.astype(np.complex128))]


def transforms_of_reals(tf: Any) -> list[Any]:
    lengths: dict[str, tuple[list[int], ...]] = {
        "rfft": ([12], [7], [16]), "rfft2d": ([6, 12], [5, 9], [8, 13]), "rfft3d": ([4, 6, 12], [3, 5, 9], [5, 7, 14]),
    }  # fmt: skip
    made = []
    for name, sizes in lengths.items():
        forward, backward = getattr(tf.signal, name), getattr(tf.signal, f"i{name}")
        made += [forward(REALS), backward(COMPLEXES)]
        made += [f for size in sizes for f in (forward(REALS, size), backward(COMPLEXES, size))]
    return [*made, tf.signal.rfft(tf.constant(REALS.astype(np.float64)))]


def shifts(tf: Any) -> list[Any]:
    return [f(REALS, axes) for f in (tf.signal.fftshift, tf.signal.ifftshift) for axes in (None, 1, [0, -1])]


def cosine_transforms(tf: Any) -> list[Any]:
    made = [tf.signal.dct(REALS, 1), tf.signal.idct(REALS, 1)]
    for kind in (2, 3, 4):
        for norm in (None, "ortho"):
            made += [tf.signal.dct(REALS, kind, norm=norm), tf.signal.idct(REALS, kind, norm=norm)]
            if kind != 4:
                made += [tf.signal.dct(REALS, kind, n, norm=norm) for n in (5, 15)]
    return [*made, tf.spectral.dct(REALS)]


def windows(tf: Any) -> list[Any]:
    made = []
    for length in (1, 2, 5, 8):
        made += [f(length, p) for f in (tf.signal.hann_window, tf.signal.hamming_window) for p in (True, False)]
        made += [tf.signal.vorbis_window(length), tf.signal.kaiser_window(length, 8.0)]
    made += [tf.signal.kaiser_bessel_derived_window(8), tf.signal.hann_window(8, dtype=tf.float64)]
    return [*made, tf.signal.hann_window(tf.constant(6))]


def frames(tf: Any) -> list[Any]:
    made = [tf.signal.frame(SIGNALS, 16, step, pad_end) for step in (5, 16, 20) for pad_end in (True, False)]
    made += [tf.signal.frame(REALS, 3, 2, axis=1), tf.signal.frame(SIGNALS, 200, 3)]
    return [*made, tf.signal.overlap_and_add(REALS, 5), tf.signal.overlap_and_add(REALS, 15)]


def short_time_transforms(tf: Any) -> list[Any]:
    made = [tf.signal.stft(SIGNALS, 24, 8), tf.signal.stft(SIGNALS, 24, 8, 24, None, pad_end=True)]
    made.append(tf.signal.stft(SIGNALS, 24, 10, window_fn=tf.signal.hamming_window))
    inverse = tf.signal.inverse_stft_window_fn(8)
    return [*made, tf.signal.inverse_stft(made[0], 24, 8), tf.signal.inverse_stft(made[0], 24, 8, window_fn=inverse)]


def modified_cosine_transforms(tf: Any) -> list[Any]:
    made = []
    for norm in (None, "ortho"):
        for window in (tf.signal.vorbis_window, None):
            made.append(tf.signal.mdct(SIGNALS, 16, window, norm=norm))
            made.append(tf.signal.inverse_mdct(made[-1], window, norm=norm))
    return made


def mel_spectrograms(tf: Any) -> list[Any]:
    weights = tf.signal.linear_to_mel_weight_matrix(10, 33, 16000, 80.0, 7600.0)
    mel = tf.tensordot(tf.abs(tf.signal.stft(SIGNALS, 64, 16)), weights, 1)
    return [weights, mel, tf.signal.mfccs_from_log_mel_spectrograms(tf.log(mel + 1e-6))]


def gradients(tf: Any) -> list[Any]:
    x, z, s = tf.constant(REALS), tf.constant(COMPLEXES), tf.constant(SIGNALS)
    made = []
    for name, sizes in (("fft", None), ("fft2d", None), ("ifft3d", None), ("rfft", [12]), ("rfft2d", [6, 12])):
        given = z if sizes is None else x
        y = getattr(tf.signal, name)(*([given] if sizes is None else [given, sizes]))
        made += tf.gradients(tf.reduce_sum(tf.abs(y) ** 2 * np.arange(int(y.shape[-1]))), [given])
    made += tf.gradients(tf.reduce_sum(tf.signal.irfft(z) ** 3), [z])
    made += tf.gradients(tf.reduce_sum(tf.abs(tf.signal.stft(s, 24, 8)) ** 2), [s])
    return [*made, *tf.gradients(tf.reduce_sum(tf.signal.dct(x) ** 3), [x])]


def run(tf: Any, build: Build) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        found: list[Any] = session.run(build(tf))
        return found


BUILDS = (
    complex_transforms, transforms_of_reals, shifts, cosine_transforms, windows, frames, short_time_transforms,
    modified_cosine_transforms, mel_spectrograms, gradients,
)  # fmt: skip


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_signals_are_tensorflows(build: Build, tensorflow: Any) -> None:
    expected = run(tensorflow, build)
    for i, (got, want) in enumerate(zip(run(timberframe, build), expected, strict=True)):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), f"result {i}"
        scale = float(np.abs(want).max()) if want.size else 0.0
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * max(scale, 1e-3), err_msg=f"result {i}")


def test_static_shapes_are_tensorflows(tensorflow: Any) -> None:
    for build in (transforms_of_reals, frames, short_time_transforms):
        shapes = []
        for tf in (tensorflow, timberframe):
            with tf.Graph().as_default():
                shapes.append([x.shape.as_list() for x in build(tf)])
        assert shapes[0] == shapes[1], build.__name__
