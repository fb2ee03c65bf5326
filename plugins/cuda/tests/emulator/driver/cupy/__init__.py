"""CuPy as far as timberframe_cuda calls it, on the CPU: GPUs whose memory is the host's and whose kernels are fibers.

Work is done when it is enqueued. What CuPy and CUDA refuse is refused here: a stream, a kernel or memory of another GPU
than the current one, scalars of another type than the kernel's.

EMULATED_GPUS is their number, EMULATED_CUPY the version of CuPy whose calls these are; EMULATED_FAULT is the kernel
that loses its GPU, and the error, such as ``tf_softmax:700``.
"""

from cupy import cuda as cuda
from cupy._version import __version__ as __version__
