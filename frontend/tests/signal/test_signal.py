"""tf.signal beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import timberframe as tf

RNG = np.random.default_rng(5)
REALS = RNG.normal(size=(2, 4, 6, 12)).astype(np.float32)
COMPLEXES = (REALS + 1j * REALS[::-1]).astype(np.complex64)


def value(x: object) -> np.ndarray:
    with tf.Session() as session:
        found: np.ndarray = session.run(x)
        return found


@pytest.mark.parametrize(
    ("name", "rank"), [("fft", 1), ("ifft", 1), ("fft2d", 2), ("ifft2d", 2), ("fft3d", 3), ("ifft3d", 3)]
)
def test_transforms_of_complex_numbers_are_numpys(name: str, rank: int) -> None:
    wanted = getattr(np.fft, f"{name[: name.index('t') + 1]}n")(COMPLEXES, axes=range(-rank, 0))
    np.testing.assert_allclose(value(getattr(tf.signal, name)(COMPLEXES)), wanted, atol=1e-3)


@pytest.mark.parametrize("size", [12, 7, 16])
def test_transforms_of_reals_cut_or_extend_as_numpys(size: int) -> None:
    np.testing.assert_allclose(value(tf.signal.rfft(REALS, [size])), np.fft.rfft(REALS, size), atol=1e-4)
    np.testing.assert_allclose(value(tf.signal.irfft(COMPLEXES, [size])), np.fft.irfft(COMPLEXES, size), atol=1e-4)


def test_short_time_transforms_are_inverted() -> None:
    signals = RNG.normal(size=(3, 64)).astype(np.float32)
    stfts = tf.signal.stft(signals, 16, 4)
    assert stfts.shape.as_list() == [3, 13, 9]
    back = value(tf.signal.inverse_stft(stfts, 16, 4, window_fn=tf.signal.inverse_stft_window_fn(4)))
    np.testing.assert_allclose(back[:, 16:-16], signals[:, 16:-16], atol=1e-5)


def test_cosine_transforms_are_orthonormal_where_asked() -> None:
    there = tf.signal.dct(REALS, norm="ortho")
    np.testing.assert_allclose(value(tf.signal.idct(there, norm="ortho")), REALS, atol=1e-5)
    np.testing.assert_allclose(value(tf.reduce_sum(there**2)), (REALS**2).sum(), rtol=1e-5)


def test_frames_follow_each_other_by_the_step() -> None:
    assert value(tf.signal.frame(np.arange(7), 3, 2)).tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert value(tf.signal.frame(np.arange(4), 3, 2, pad_end=True, pad_value=9)).tolist() == [[0, 1, 2], [2, 3, 9]]


def test_gradient_of_a_power_spectrum() -> None:
    x = tf.constant(REALS[0, 0, 0])
    grad = tf.gradients(tf.reduce_sum(tf.abs(tf.signal.fft(tf.cast(x, tf.complex64))) ** 2), x)[0]
    np.testing.assert_allclose(value(grad), 2 * 12 * REALS[0, 0, 0], rtol=1e-4)  # Parseval's theorem


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="type is 5; 1, 2, 3 or 4 is required"):
        tf.signal.dct(REALS, 5)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"RFFT2D 'rfft2d': fft_length has 1 elements; it must have 2"
    ):
        tf.raw_ops.RFFT2D(input=REALS, fft_length=[3], name="rfft2d")
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"the last dimensions of the input are \(12,\); they must be at least \(13,\)",
    ):
        value(tf.raw_ops.RFFT(input=REALS, fft_length=[13]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="within"):
        tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=9000.0)
