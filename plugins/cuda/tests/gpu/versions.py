"""Prints the versions of CuPy, CUDA and NVRTC, and what of CuPy is otherwise than the table of its declarations says.

usage: versions.py <folder of the emulator>     status 1 where something is
"""

from __future__ import annotations

import sys

import cupy
from cupy.cuda import nvrtc, runtime

sys.path.append(sys.argv[1])
from cupy_calls.installed import differences

print("CuPy", cupy.__version__, "runtime", runtime.runtimeGetVersion(), "driver", runtime.driverGetVersion())
print("NVRTC", nvrtc.getVersion(), "machine code for", nvrtc.getSupportedArchs())
attributes = getattr(cupy.cuda.Device(0), "attributes", {})  # the emulator has none
for name in ("PageableMemoryAccess", "PageableMemoryAccessUsesHostPageTables"):
    print(name, attributes.get(name, "unknown"))
found, compared = differences()
print(*found, f"{compared} names of CuPy compared with its declarations, {len(found)} differ", sep="\n")
sys.exit(bool(found))
