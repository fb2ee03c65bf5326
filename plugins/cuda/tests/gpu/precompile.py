"""Fills the cache of timberframe-cuda with the machine code of all kernels, on a machine without a GPU.

usage: TIMBERFRAME_CACHE=<folder> precompile.py [--arch sm_90] [op ...]
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "emulator"))
import nvrtc
from kernel_sources import kernel_sources
from timberframe_cuda import compiler
from timberframe_sdk import cache_folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("ops", nargs="*")
    given = parser.parse_args()
    sources = kernel_sources(1000, given.ops)

    def keep(source: str) -> None:
        compiler.compiled(source, given.arch)

    with nvrtc.as_cupy(), ThreadPoolExecutor() as pool:  # NVRTC works without Python's lock
        list(pool.map(keep, sources))
    print(f"NVRTC {nvrtc.version()}, {given.arch}: {len(sources)} sources in {cache_folder('cuda')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
