"""Its kernel of Square never returns."""

import threading

from broken_device import BrokenDevice, hooks, kernels

hooks(globals(), BrokenDevice("HANGS"), kernels("HANGS", Square=lambda node: lambda x, out: threading.Event().wait()))
