"""Fills the cache of timberframe-cuda with the machine code of all kernels, on a machine without a GPU.

usage: TIMBERFRAME_CACHE=<folder> precompile.py [--arch sm_90] [op ...]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "emulator"))
import nvrtc
from kernel_sources import kernel_sources
from timberframe_cuda.precompile import precompile
from timberframe_sdk import cache_folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("ops", nargs="*")
    given = parser.parse_args()
    with nvrtc.as_cupy():
        count, refused = precompile(kernel_sources(1000, given.ops), [given.arch], os.cpu_count() or 1)
    print(*refused, f"NVRTC {nvrtc.version()}, {given.arch}: {count} sources in {cache_folder('cuda')}", sep="\n")
    return int(bool(refused))


if __name__ == "__main__":
    sys.exit(main())
