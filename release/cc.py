"""A C compiler for wheels: GCC compiles, and zig links against an old glibc, so that the result runs on any newer one.

``python release/cc.py ARCHITECTURE GLIBC ARGUMENTS...``, as a build file names its compiler. zig has the symbols of
every version of glibc; GCC's code is faster than that of zig's clang where kernels multiply matrices. GCC's own runtime
library comes first: zig's would bring an exp, log and memcpy of its own along, which are slower and round otherwise.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence

DROPPED = ("-Wl,-O1", "-Wl,--start-group", "-Wl,--end-group")
"""What meson gives the linker, and zig's does not want, or wants once around all."""


def gcc(architecture: str) -> str:
    """Returns the compiler for an architecture: this machine's own, or Debian's cross compiler."""
    return "gcc" if architecture == platform.machine() else f"{architecture}-linux-gnu-gcc"


def command(architecture: str, glibc: str, arguments: Sequence[str]) -> list[str]:
    """Returns what to run: only the link of a library is zig's."""
    compiler = gcc(architecture)
    if "-c" in arguments:
        return [*(["ccache"] if shutil.which("ccache") else []), compiler, *arguments]
    if "-shared" not in arguments:
        return [compiler, *arguments]
    asked = [compiler, "-print-libgcc-file-name"]
    runtime = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    given = [a for a in arguments if a not in DROPPED]
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture}-linux-gnu.{glibc}"]
    return [*zig, "-Wl,--start-group", *given, runtime, "-Wl,--end-group"]


if __name__ == "__main__":
    made = command(sys.argv[1], sys.argv[2], sys.argv[3:])
    os.execvp(made[0], made)
