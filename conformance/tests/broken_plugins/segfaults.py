"""Its kernel of Square reads address 0."""

import ctypes

from broken_device import BrokenDevice, hooks, kernels

hooks(
    globals(), BrokenDevice("SEGFAULTS"), kernels("SEGFAULTS", Square=lambda node: lambda x, out: ctypes.string_at(0))
)
