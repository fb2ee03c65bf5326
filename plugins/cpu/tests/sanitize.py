"""Builds the native module with a sanitizer and runs tests on it: `sanitize.py address|thread [pytest arguments]`.

`address` also has the undefined-behaviour checks. The build lies in plugins/cpu/build/<sanitizer>, apart from that of
the editable install, whose finder is put aside for the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
SANITIZERS = {"address": ("address,undefined", "libasan.so"), "thread": ("thread", "libtsan.so")}
# Races and most overruns show in any variant; one of them, lightly optimised, builds in a third of the time.
BUILD_OPTIONS = ("-Disas=scalar", "-Dbuildtype=debug", "-Doptimization=1", "-Db_lundef=false")
ENVIRONMENT = {
    # Python itself leaks by design; CPython reads a few bytes past strings in ways that only its allocator knows.
    "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "OPENBLAS_NUM_THREADS": "1",  # NumPy's own BLAS is not instrumented, so its threads look like races
    "TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0:report_signal_unsafe=0",
}
USE_BUILD = """
import os, sys
sys.meta_path = [f for f in sys.meta_path if type(f).__name__ != "MesonpyMetaFinder"]
sys.path.insert(0, os.environ["TIMBERFRAME_CPU_TESTED_SITE"])
import timberframe_cpu._native as native
assert native.__file__.startswith(sys.path[0]), native.__file__
"""
RUN = (
    USE_BUILD
    + """
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
)


def build(sanitizer: str) -> Path:
    """Compiles and installs into a folder of its own; returns where the package lies."""
    folder = PACKAGE / "build" / sanitizer
    flags = [f"-Db_sanitize={SANITIZERS[sanitizer][0]}", *BUILD_OPTIONS]
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", *flags, folder, PACKAGE], check=True)
    subprocess.run(["ninja", "-C", folder], check=True)
    stage = folder / "stage"
    subprocess.run(["meson", "install", "-C", folder, "--quiet", "--destdir", stage], check=True)
    return next(stage.rglob("timberframe_cpu")).parent


def main(sanitizer: str, *arguments: str) -> int:
    """Builds, then runs pytest with the sanitizer's runtime in front of everything."""
    site = build(sanitizer)
    runtime = subprocess.run(
        ["gcc", f"-print-file-name={SANITIZERS[sanitizer][1]}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    environment = {**os.environ, **ENVIRONMENT, "LD_PRELOAD": runtime, "TIMBERFRAME_CPU_TESTED_SITE": str(site)}
    tests = arguments or (str(PACKAGE / "tests"),)
    command = [sys.executable, "-c", RUN, "-p", "no:cacheprovider", "-q", "--import-mode=importlib", *tests]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
