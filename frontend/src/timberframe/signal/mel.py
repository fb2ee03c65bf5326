"""Spectrograms on the mel scale, and their cepstral coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

import timberframe
from timberframe.signal.fourier import dct
from timberframe_core.errors import InvalidArgumentError

tf: Any = timberframe  # whose tensors have operators that types do not show

_BREAK_HERTZ, _HIGH_Q = 700.0, 1127.0  # HTK's mel scale


def _mel(hertz: Any) -> Any:
    return _HIGH_Q * np.log1p(hertz / _BREAK_HERTZ)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = tf.float32,
    name: str | None = None,
) -> Any:
    """Returns the weights of frequencies in the triangular bands of HTK's mel scale:
    [num_spectrogram_bins, num_mel_bins].

    Frequencies are in hertz; those of the spectrogram reach from 0 to half the sample rate.
    """
    rate = float(tf.get_static_value(tf.convert_to_tensor(sample_rate)))
    if num_mel_bins <= 0:
        raise InvalidArgumentError(f"linear_to_mel_weight_matrix: num_mel_bins is {num_mel_bins}; it must be positive")
    if not 0 <= lower_edge_hertz < upper_edge_hertz <= rate / 2:
        raise InvalidArgumentError(
            f"linear_to_mel_weight_matrix: the edges are {lower_edge_hertz} and {upper_edge_hertz} Hz; they must rise "
            f"within [0, {rate / 2}]"
        )
    frequencies = _mel(np.linspace(0.0, rate / 2, num_spectrogram_bins)[1:])[:, None]
    edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (frequencies - lower) / (center - lower), (upper - frequencies) / (upper - center)
    weights = np.maximum(0, np.minimum(rising, falling))
    return tf.constant(np.pad(weights, ((1, 0), (0, 0))), dtype, name=name or "linear_to_mel_weight_matrix")


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Any:
    """Returns the mel-frequency cepstral coefficients of logarithms of mel spectrograms, as HTK scales them."""
    with tf.name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        x = tf.convert_to_tensor(log_mel_spectrograms)
        bins = x.shape.as_list()[-1]
        if not bins:
            raise InvalidArgumentError(
                f"mfccs_from_log_mel_spectrograms: shape {x.shape} given; the number of mel bins must be known"
            )
        return dct(x, 2) * (2.0 * bins) ** -0.5
