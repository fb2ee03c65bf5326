"""Measures what compiling a network's kernels costs its first run, by NVRTC and without a GPU: docs/performance.md.

    python plugins/cuda/tests/emulator/compile_times.py [network]

A network of `conformance bench --models`, by default MobileNetV2, with one image. Before: its convolutions are kernels
of their own, and one source is compiled after the other.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence

import nvrtc
import timberframe as tf
from kernel_figures import ARCHITECTURE
from kernel_sources import RecordingPlugin
from timberframe_conformance.bench.models import catalogue
from timberframe_core.plugin import loader
from timberframe_cuda.precompile import precompile


def sources_of(network: str, library: bool) -> list[str]:
    """Returns the sources that the first run of a network asks for.

    library: whether the device has one for products.
    """
    plugin = RecordingPlugin()
    plugin.device.library = library
    loader.registry.add("recording", plugin)
    try:
        model = catalogue.build(network, device=plugin.device.spec)
        with tf.Session(graph=model.graph, config=tf.SessionConfig(plugins=("recording",))) as session:
            session.run(model.fetches, model.feeds)
    finally:
        loader.registry.remove("recording")
    return list(plugin.device.sources)


def seconds(sources: Sequence[str], jobs: int) -> tuple[float, float]:
    """Returns seconds of processor time, of all threads, and seconds that pass while sources are
    compiled or found compiled.
    """
    processor, passed = time.process_time(), time.perf_counter()
    _, refused = precompile(sources, [ARCHITECTURE], jobs)
    assert not refused, refused
    return time.process_time() - processor, time.perf_counter() - passed


def main() -> None:
    """Prints the page's table."""
    network = sys.argv[1] if len(sys.argv) > 1 else "MobileNetV2"
    cores = os.cpu_count() or 1
    before, now = sources_of(network, False), sources_of(network, True)
    rows: list[tuple[str, Sequence[str], int, bool]] = [
        ("before: one source after the other", before, 1, False),
        ("convolutions by cuBLAS, one source after the other", now, 1, False),
        (f"the same, {cores} sources at a time", now, cores, False),
        ("the same again, or after `python -m timberframe_cuda precompile`: all are in the cache", now, cores, True),
    ]
    print(f"{network}, NVRTC {nvrtc.version()}, {ARCHITECTURE}")
    print("|what|sources|processor time|time that passes|\n|-|-|-|-|")
    with nvrtc.as_cupy(), tempfile.TemporaryDirectory() as folder:
        for i, (what, sources, jobs, again) in enumerate(rows):
            os.environ["TIMBERFRAME_CACHE"] = f"{folder}/{i - again}"
            processor, passed = seconds(sources, jobs)
            print(f"|{what}|{len(sources)}|{processor:.2f} s|{passed:.2f} s|", flush=True)


if __name__ == "__main__":
    main()
