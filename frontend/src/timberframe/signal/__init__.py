"""`tf.signal`: Fourier and cosine transforms, windows, frames and spectrograms."""

import sys as _sys

from timberframe.boundary import guard as _guard
from timberframe.signal.fourier import dct as dct
from timberframe.signal.fourier import fft as fft
from timberframe.signal.fourier import fft2d as fft2d
from timberframe.signal.fourier import fft3d as fft3d
from timberframe.signal.fourier import fftshift as fftshift
from timberframe.signal.fourier import idct as idct
from timberframe.signal.fourier import ifft as ifft
from timberframe.signal.fourier import ifft2d as ifft2d
from timberframe.signal.fourier import ifft3d as ifft3d
from timberframe.signal.fourier import ifftshift as ifftshift
from timberframe.signal.fourier import irfft as irfft
from timberframe.signal.fourier import irfft2d as irfft2d
from timberframe.signal.fourier import irfft3d as irfft3d
from timberframe.signal.fourier import rfft as rfft
from timberframe.signal.fourier import rfft2d as rfft2d
from timberframe.signal.fourier import rfft3d as rfft3d
from timberframe.signal.frames import frame as frame
from timberframe.signal.frames import inverse_mdct as inverse_mdct
from timberframe.signal.frames import inverse_stft as inverse_stft
from timberframe.signal.frames import inverse_stft_window_fn as inverse_stft_window_fn
from timberframe.signal.frames import mdct as mdct
from timberframe.signal.frames import overlap_and_add as overlap_and_add
from timberframe.signal.frames import stft as stft
from timberframe.signal.mel import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
from timberframe.signal.mel import mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms
from timberframe.signal.windows import hamming_window as hamming_window
from timberframe.signal.windows import hann_window as hann_window
from timberframe.signal.windows import kaiser_bessel_derived_window as kaiser_bessel_derived_window
from timberframe.signal.windows import kaiser_window as kaiser_window
from timberframe.signal.windows import vorbis_window as vorbis_window

_guard([_sys.modules[__name__]])
