"""The command `conformance bench`."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from timberframe_conformance.commands import (
    UsageError,
    add_device,
    cores,
    device_options,
    open_device,
    refuse_ignored,
    require_folders,
    split_names,
    whole,
)

BENDING = (
    "OPENBLAS_",
    "MKL_",
    "OMP_",
    "NVPL_",
    "GOTO_",
    "KMP_",
    "ONEDNN_",
    "DNNL_",
    "TF_ENABLE_",
    "TF_NUM_",
    "TF_XLA_",
)
"""Prefixes of environment variables that change how fast numerical libraries are."""
KEPT = ("ONEDNN_MAX_CPU_ISA",)
"""What a comparison of instruction sets gives TensorFlow; a device has its own such variable."""
PLANNING = "plan of 10,000 nodes"
"""The name of what is measured beside the measurements of kernels and of the executor."""
Progress = Callable[[float, str], None]
"""Called with the share that is done, and the name of what comes next."""
CLEARED = "CONFORMANCE_CLEARED"
"""Passes the names of the removed variables to the restarted process."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    add_device(parser, "cpu", " (default: cpu)", judges=False)
    parser.add_argument(
        "--vs",
        metavar="A,B",
        help="peers: numpy, torch, tensorflow, jax, pyopencl, clblast (default: numpy); "
        "of models: onnxruntime, tensorflow (default: both)",
    )
    parser.add_argument(
        "--growth", action="store_true", help="how cost grows with nodes, variables, nesting and shapes"
    )
    parser.add_argument("--peer-python", metavar="FILE", help="growth: the Python that has TensorFlow, for --vs")
    parser.add_argument(
        "--models",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="whole networks in place of executor and kernels; with files these, such as model.onnx",
    )
    parser.add_argument(
        "--sizes", type=_sizes, metavar="NAME=N,...", help="models: of dimensions that files leave open, but the batch"
    )
    parser.add_argument(
        "--profile", action="store_true", help="models: time, bytes and operations by op and kernel, without peers"
    )
    parser.add_argument(
        "--convolutions", action="store_true", help="models: their convolutions one by one, beside ONNX Runtime"
    )
    parser.add_argument("--batch", type=_batches, metavar="A,B", help="models: batch sizes of inference (default: 1,8)")
    parser.add_argument("--threads", type=whole(1), metavar="N", help="models: on every side (default: one a core)")
    parser.add_argument("--quick", action="store_true", help="models: few short samples, batch 1")
    parser.add_argument("--one-core", action="store_true", help="everything on one core")
    parser.add_argument(
        "-k", dest="keyword", default="", metavar="TEXT", help="only measurements whose name contains the text"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="models: write the tables for documents")
    parser.add_argument(
        "--peaks",
        type=_peaks,
        metavar="FLOPS,BYTES",
        help="what the device can do at best, a second, for the roofline: 4e12,3e11 (default: measured on the host)",
    )
    parser.add_argument("--check", action="store_true", help="status 1 when a target is missed; models have none")
    parser.set_defaults(command=bench)


def _peaks(text: str) -> tuple[float, float]:
    """Operations and bytes a second."""
    try:
        operations, transfers = map(float, text.split(","))
    except ValueError:
        operations = transfers = 0.0
    if not (0 < operations < math.inf and 0 < transfers < math.inf):
        raise argparse.ArgumentTypeError(f"{text!r} is given; operations and bytes a second are required: 4e12,3e11")
    return operations, transfers


def _sizes(text: str) -> dict[str, int]:
    return {name: whole(1)(number) for name, _, number in (part.partition("=") for part in text.split(","))}


def _batches(text: str) -> list[int]:
    return [whole(1)(part) for part in text.split(",")]


def bench(given: argparse.Namespace, console: Console) -> int:
    """Measures; status 1 where a target is missed with --check, or a model fails."""
    _check(given)
    if CLEARED not in os.environ:
        _start_again(given.one_core)
    from timberframe_conformance.bench.sides import installed
    from timberframe_conformance.bench.table import Figures, show
    from timberframe_conformance.reports.html import bench_html
    from timberframe_conformance.reports.terminal import waiting

    target = open_device(device_options(given))
    cleared = json.loads(os.environ[CLEARED])
    if given.growth:
        from timberframe_conformance.bench.growth import bench_growth

        return bench_growth(given, console)
    if given.models is not None:
        from timberframe_conformance.bench.models.command import bench_models

        return bench_models(given, console, target, cleared)
    peers, absent = installed(["numpy"] if given.vs is None else split_names(given.vs))
    figures = Figures(target.spec, cleared, cores(), host=target.device.host_memory, given_peaks=given.peaks)
    for reason in absent:
        console.print(f"left out: {reason}", highlight=False)
    with waiting(console, 1.0) as update:
        measure(figures, target, peers, given.keyword, update)
    show(figures, console, ["device", *peers])
    if given.json:
        given.json.write_text(json.dumps(figures.to_dict(), indent=2) + "\n")
    if given.html:
        given.html.write_text(bench_html([figures.to_dict()]), encoding="utf-8")
    return 1 if given.check and figures.missed else 0


def _check(given: argparse.Namespace) -> None:
    """Refuses options that the measurements asked for do not read, and files that could not be written after them."""
    if given.growth:
        refuse_ignored(given, ("models", "html", "peaks"), "with --growth")
    else:
        refuse_ignored(given, ("peer_python",), "without --growth")
    if given.models is None:
        of_models = ("profile", "convolutions", "batch", "threads", "quick", "markdown", "sizes")
        refuse_ignored(given, of_models, "without --models")
    elif given.profile:
        refuse_ignored(given, ("convolutions", "vs", "quick", "html", "markdown", "check"), "with --models --profile")
    elif given.convolutions:
        refuse_ignored(given, ("vs", "quick", "html", "peaks", "check"), "with --models --convolutions")
    else:
        refuse_ignored(given, ("peaks", "check"), "with --models")
    if given.models:
        refuse_ignored(given, ("convolutions", "keyword"), "with --models FILE")
    else:
        refuse_ignored(given, ("sizes",), "without --models FILE")
    if given.one_core and not hasattr(os, "sched_setaffinity"):
        raise UsageError(f"--one-core: {sys.platform} binds no process to a core; leave it out")
    require_folders(given.json, given.html, given.markdown)


def measure(figures: Any, target: Any, peers: list[str], keyword: str, progress: Progress = lambda *_: None) -> None:
    """Runs all measurements and fills the figures."""
    from timberframe_conformance.bench import peaks, training
    from timberframe_conformance.bench.sides import (
        PLANNING_LIMIT,
        executor_measurements,
        kernel_measurements,
        pipeline_measurements,
        planning_seconds,
        training_measurements,
        transfer_measurements,
    )

    plans = keyword in PLANNING
    parts = [
        executor_measurements(target, "" if plans else keyword),
        transfer_measurements(target, keyword),
        kernel_measurements(target, peers, keyword),
    ]
    if keyword in training.NAME:
        parts.append(training_measurements(target, peers))
    parts.append((pipeline_measurements(target, peers, keyword), {}))
    wanted = [m for found, _ in parts for m in found if keyword in m.name]
    figures.without = {name: why for _, without in parts for name, why in without.items() if keyword in name}
    if not (wanted or figures.without or plans):
        raise UsageError(f"-k {keyword!r}: no measurement has such a name; a part of one is required, as in -k matmul")
    figures.measurements = wanted
    isa = target.device.attributes.details.get("isa", "")
    before = peaks.copy_rate(), peaks.multiply_add_rate(isa) or 0.0
    figures.times = run_benchmarks(wanted, progress)
    figures.copy_rate = max(before[0], peaks.copy_rate())
    figures.memory_rate = peaks.copy_rate(peaks.MEMORY_BYTES)
    figures.multiply_add_rate = max(before[1], peaks.multiply_add_rate(isa) or 0.0) or None
    if plans and "executor" not in parts[0][1]:
        figures.planning = planning_seconds(target)
        figures.planning_limit = PLANNING_LIMIT if target.device.host_memory else math.inf


def run_benchmarks(measurements: list[Any], progress: Progress) -> dict[tuple[str, str], float]:
    """Returns the fastest time of each (name, side) in seconds, by pytest-benchmark."""
    import pytest

    from timberframe_conformance.bench import measurements as module

    if not measurements:
        return {}
    plan = module.Plan(measurements, progress)

    class PassesPlan:
        """Gives the plan to the measuring module."""

        @pytest.hookimpl(trylast=True)
        def pytest_configure(self, config: pytest.Config) -> None:
            config.stash[module.KEY] = plan
            terminal = config.pluginmanager.getplugin("terminalreporter")
            if terminal is not None:
                config.pluginmanager.unregister(terminal)

    file = Path(str(module.__file__))
    status = pytest.main(
        [str(file), f"--rootdir={file.parent}", "-c/dev/null", "-pno:cacheprovider", "-pno:xdist", "-qq",
         "--benchmark-quiet", "--benchmark-only", "--benchmark-max-time=0.15", "--benchmark-min-time=0.0001",
         "--benchmark-min-rounds=5",
         "--benchmark-disable-gc", "--import-mode=importlib", "--no-header", "--no-summary",
         "-opython_files=measurements.py"],
        plugins=[PassesPlan()],
    )  # fmt: skip
    if status != 0:
        raise RuntimeError(f"the benchmarks ended with pytest status {int(status)}")
    return plan.fastest


def _start_again(one_core: bool) -> None:
    """Replaces this process by one without the variables that change libraries' speed, on one core if requested."""
    removed = {k: v for k, v in os.environ.items() if k.startswith(BENDING) and k not in KEPT}
    # With an outer pytest's variables, pytest-benchmark would think that it runs in a worker, and do nothing.
    environment = {k: v for k, v in os.environ.items() if k not in removed and not k.startswith("PYTEST_")}
    environment[CLEARED] = json.dumps(removed)
    if one_core:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", "timberframe_conformance.cli", *sys.argv[1:]], environment)
