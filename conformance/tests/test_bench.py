"""Benchmarks: what is measured, and how it is reported."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from timberframe_conformance.bench import soak
from timberframe_conformance.bench.sides import (
    Measurement,
    executor_measurements,
    installed,
    kernel_measurements,
    transfer_measurements,
)
from timberframe_conformance.bench.soak import Memory, growth
from timberframe_conformance.bench.table import Figures, duration, show
from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target
from timberframe_core.plugin import loader
from timberframe_core.plugin.passes import PHASES, Pass, with_passes
from timberframe_sdk import DeviceAttributes
from timberframe_sdk.testing import asynchronous_device
from timberframe_sdk.testing.loaded import loaded_plugin


def figures(**rest: object) -> Figures:
    made = Figures("/device:X:0", {}, 1, **rest)  # type: ignore[arg-type]  # fields of Figures by name
    made.copy_rate, made.multiply_add_rate = 1e9, 1e10
    return made


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (3.3e-6, "3.3 us"), (1.65e-8, "16.5 ns")]
)
def test_duration_has_the_unit_that_reads_best(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_roof_is_the_slower_of_arithmetic_and_memory() -> None:
    assert figures().roof(Measurement("a", "device", lambda: None, flops=1e10, nbytes=1.0)) == pytest.approx(1.0)
    assert figures().roof(Measurement("a", "device", lambda: None, flops=1.0, nbytes=2e9)) == pytest.approx(2.0)


def test_a_device_that_is_not_the_host_has_no_roof_of_the_host() -> None:
    assert figures(host=False).roof(Measurement("a", "device", lambda: None, flops=1e10, nbytes=1.0)) is None


def test_given_peaks_are_the_roof() -> None:
    made = figures(host=False, given_peaks=(1e12, 1e11))
    assert made.roof(Measurement("a", "device", lambda: None, flops=2e12, nbytes=1.0)) == pytest.approx(2.0)
    assert made.roof(Measurement("a", "device", lambda: None, flops=1.0, nbytes=3e11)) == pytest.approx(3.0)


def shown(made: Figures, sides: list[str]) -> str:
    console = Console(record=True, width=200, emoji=False, file=io.StringIO())
    show(made, console, sides)
    return console.export_text()


def test_unknown_peaks_are_said_to_be_unknown() -> None:
    assert "no roofline: what /device:X:0 can do at best is not known; --peaks" in shown(
        figures(host=False), ["device"]
    )


def test_tables_and_columns_without_figures_are_left_out() -> None:
    made = figures(host=False)
    made.measurements, made.times = [Measurement("matmul", "device", lambda: None)], {("matmul", "device"): 0.25}
    lines = shown(made, ["device"]).splitlines()
    assert lines[0].split() == ["kernel", "device"]
    assert lines[1].split() == ["matmul", "250", "ms"]


def test_a_workload_without_a_kernel_has_a_row_and_a_reason() -> None:
    made = figures(without={"conv": "no kernel of Conv2D [T]"})
    made.measurements, made.times = [Measurement("conv", "numpy", lambda: None)], {("conv", "numpy"): 0.25}
    text = shown(made, ["device", "numpy"])
    assert re.search(r"conv +no kernel +250 ms", text)
    assert "not measured conv: no kernel of Conv2D [T]" in text


@pytest.fixture
def own_memory() -> Iterator[Target]:
    """A device with memory of its own."""
    with loaded_plugin("async", asynchronous_device):
        yield open_target(Options("async"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    """A device with kernels for AddV2, Neg and Mul."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    with loaded_plugin("small", importlib.import_module("small_device")):
        yield open_target(Options("small"))


def test_copies_are_measured_where_a_device_has_memory_of_its_own(own_memory: Target) -> None:
    found, without = transfer_measurements(own_memory)
    assert not without
    assert [m.name for m in found] == ["copy in, 4 bytes", "copy out, 4 bytes", "copy in, 64 MiB", "copy out, 64 MiB"]
    for m in found[:2]:
        m.call()


def test_copies_are_of_what_a_small_device_can_hold(own_memory: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_memory.device, "attributes", DeviceAttributes(memory=64 << 20))
    found, _ = transfer_measurements(own_memory, "copy in")
    assert [m.name for m in found if "copy in" in m.name] == ["copy in, 4 bytes", "copy in, 16 MiB"]


def test_copies_for_which_memory_does_not_suffice_have_a_reason(
    own_memory: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_memory.device.allocator, "limit", 1 << 20)
    found, without = transfer_measurements(own_memory)
    assert [m.name for m in found] == ["copy in, 4 bytes", "copy out, 4 bytes"]
    assert "bytes was refused by the limit" in without["copy in, 64 MiB"]


def test_workloads_whose_name_is_not_asked_for_are_not_built(small: Target) -> None:
    found, without = kernel_measurements(small, [], "add 1M")
    assert [m.name for m in found] == ["add 1M"]
    assert not without
    assert executor_measurements(small, "add 1M") == ([], {})


def test_a_device_without_tanh_has_no_figures_of_the_executor(small: Target) -> None:
    found, without = executor_measurements(small)
    assert not found
    assert "Tanh" in without["executor"]


def test_a_kernel_that_is_missing_is_reported_with_the_reason(small: Target) -> None:
    found, without = kernel_measurements(small, [])
    assert {m.name for m in found} == {"add 1M", "mul 1M"}
    assert "MatMul" in without["matmul 64"]


def test_peers_that_cannot_be_measured_are_left_out_with_a_reason() -> None:
    present, absent = installed(["numpy", "fortran"])
    assert present == ["numpy"]
    assert "fortran" in absent[0]


@pytest.mark.slow
def test_bench_removes_variables_that_change_the_speed_of_libraries(plugin_path: Path, tmp_path: Path) -> None:
    report = tmp_path / "bench.json"
    command = [sys.executable, "-m", "timberframe_conformance.cli", "bench", "--device=reference", "-k", "matmul 64"]
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Prescott", "ONEDNN_MAX_CPU_ISA": "AVX2", "ONEDNN_VERBOSE": "1"}
    done = subprocess.run([*command, f"--json={report}"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    data = json.loads(report.read_text())
    assert data["environment"]["cleared"].items() >= {"OPENBLAS_CORETYPE": "Prescott", "ONEDNN_VERBOSE": "1"}.items()
    assert data["environment"]["variables"]["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert {m["side"] for m in data["measurements"]} == {"device", "numpy"}
    assert all(m["seconds"] > 0 for m in data["measurements"])
    assert "matmul 64" in done.stdout


def test_all_steps_of_a_soak_are_run() -> None:
    assert [memory.steps for memory in soak.run_steps(open_target(Options("cpu")), 25, parts=2)] == [12, 25]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--device=cpu --steps=10", "'10' is given; a whole number of at least 20 is required"),
        ("--device=acme", "device 'acme' does not exist"),
    ],
)
def test_a_soak_that_would_run_nothing_is_a_wrong_call(
    options: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["soak", *options.split()])
    with pytest.raises(SystemExit) as ended:
        soak.main()
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_leak_over_training_steps_is_reported() -> None:
    first, leaked = Memory(100, 1 << 24, 2, 512), Memory(200, 1 << 24, 3, 576)
    assert growth([first, first]) is None
    assert growth([first, leaked]) == "live allocations rose from 2 (512 bytes) to 3 (576 bytes)"
    assert "resident memory rose" in str(growth([first, Memory(200, 1 << 25, 2, 512)]))


def test_no_pass_changes_the_nodes_whose_cost_is_measured() -> None:
    ran: list[str] = []
    noted = [Pass(f"noted_{phase}", phase, lambda rewriter, phase=phase: ran.append(phase), "") for phase in PHASES]  # type: ignore[misc]  # mypy cannot see through the default
    with with_passes(loader.registry.passes, noted):
        executor_measurements(open_target(Options("cpu")))[0][0].call()
    assert ran == []
