"""CuPy as far as timberframe_cuda calls it, on the CPU: GPUs whose memory is the host's and whose kernels are fibers.

Work is done when it is enqueued, or with EMULATED_STREAMS=late by a thread for each stream, not before somebody waits
for it; then memory that is given back is overwritten and used again at once. What CuPy and CUDA refuse is refused here:
a stream, a kernel or memory of another GPU than the current one, scalars of another type than the kernel's.
EMULATED_GPUS is the number of GPUs, EMULATED_CUPY the version of CuPy whose calls these are: arguments that do not fit
its own declarations are a TypeError. EMULATED_FAULT is the kernel that loses its GPU, and the error, such as
``tf_softmax:700``.
"""

import sys

from cupy import cuda as cuda
from cupy._version import __version__ as __version__
from cupy_calls import check_calls

_default_memory_pool = cuda.MemoryPool()


def get_default_memory_pool() -> cuda.MemoryPool:
    return _default_memory_pool


check_calls(sys.modules[__name__], __version__)
