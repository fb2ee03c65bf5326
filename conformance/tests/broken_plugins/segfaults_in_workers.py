"""Is right in the first process that loads it, and ends each later one, as a driver for one process may."""

import ctypes
import os
from pathlib import Path

from broken_device import BrokenDevice, hooks, kernels

_first = Path(os.environ["BROKEN_PLUGIN_FIRST_PROCESS"])
if not _first.exists():
    _first.write_text(str(os.getpid()))
if _first.read_text() != str(os.getpid()):
    ctypes.string_at(0)

hooks(globals(), BrokenDevice("SEGFAULTS_IN_WORKERS"), kernels("SEGFAULTS_IN_WORKERS"))
