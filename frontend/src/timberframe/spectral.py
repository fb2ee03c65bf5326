"""`tf.spectral`: the transforms of `tf.signal` under their older names."""

from timberframe.signal import dct as dct
from timberframe.signal import fft as fft
from timberframe.signal import fft2d as fft2d
from timberframe.signal import fft3d as fft3d
from timberframe.signal import idct as idct
from timberframe.signal import ifft as ifft
from timberframe.signal import ifft2d as ifft2d
from timberframe.signal import ifft3d as ifft3d
from timberframe.signal import irfft as irfft
from timberframe.signal import irfft2d as irfft2d
from timberframe.signal import irfft3d as irfft3d
from timberframe.signal import rfft as rfft
from timberframe.signal import rfft2d as rfft2d
from timberframe.signal import rfft3d as rfft3d
