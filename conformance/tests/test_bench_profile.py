"""`conformance bench --models --profile`: where the time of a network goes."""

from __future__ import annotations

import io
import json
import platform
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from timberframe_conformance.bench import peaks
from timberframe_conformance.bench.models.catalogue import build
from timberframe_conformance.bench.models.profile import Profile, Work, describe_peaks, peaks_of, profiled, show
from timberframe_conformance.bench.models.sides import Sides
from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target

PEAKS = (1e12, 1e11)


@pytest.fixture(scope="module")
def target() -> Target:
    return open_target(Options("cpu"))


@pytest.fixture(scope="module")
def mlp(target: Target) -> Profile:
    model = build("MLP", batch=4, small=True, device=target.spec)
    with Sides(target, 1) as sides:
        return profiled("MLP", 4, "inference", sides.device_call(model), peaks_of(target, 1, {}, PEAKS))


def shown(profile: Profile) -> list[str]:
    text = io.StringIO()
    show(profile, Console(file=text, width=80))
    return text.getvalue().splitlines()


def test_all_nodes_of_an_op_and_kernel_are_one_line(mlp: Profile) -> None:
    products = [work for work in mlp.work if work.op == "MatMul"]
    assert [work.nodes for work in products] == [3]
    assert products[0].kernel == "timberframe_cpu.kernels.linalg._matmul"


def test_operations_are_those_of_the_network(mlp: Profile) -> None:
    weights = [
        op.inputs[1].shape for op in build("MLP", batch=4, small=True).graph.get_operations() if op.type == "MatMul"
    ]
    products = next(work for work in mlp.work if work.op == "MatMul")
    assert products.flops == sum(2 * 4 * shape.num_elements() for shape in weights)


def test_a_roof_is_the_least_time_by_the_peaks(mlp: Profile) -> None:
    for work in mlp.work:
        assert work.roof is not None
        assert work.roof >= max(work.nbytes / PEAKS[1], work.flops / PEAKS[0]) * (1 - 1e-12)


def test_the_longest_comes_first(mlp: Profile) -> None:
    assert [w.seconds for w in mlp.work] == sorted((w.seconds for w in mlp.work), reverse=True)


def test_a_table_has_shares_and_rates() -> None:
    work = [
        Work("MatMul", "timberframe_cpu.a", 3, 0.75, 10**9, 3 * 10**9, 0.375),
        Work("Relu", "", 2, 0.25, 10**9, 0, None),
    ]
    header, titles, *lines = shown(Profile("net", 1, "inference", 1.0, 1.5, work))
    assert header == "net, batch 1, inference: 1 s a run; traced 1.5 s"
    assert titles.split() == ["op", "kernel", "nodes", "time", "share", "GFLOP/s", "GB/s", "of", "roofline"]
    assert [line.split() for line in lines] == [
        ["MatMul", "cpu.a", "3", "750", "ms", "75.0%", "4.0", "1.3", "50%"],
        ["Relu", "2", "250", "ms", "25.0%", "4.0"],
    ]


def test_kernels_that_take_little_are_one_line() -> None:
    work = [Work("MatMul", "k", 1, 1.0, 0, 0, None), *(Work(f"Op{i}", "k", 2, 0.001, 0, 0, None) for i in range(3))]
    assert shown(Profile("net", 1, "inference", 1.0, 1.5, work))[-1].split()[:3] == ["others", "6", "3"]


def test_peaks_as_given_are_said(target: Target) -> None:
    assert describe_peaks(peaks_of(target, 1, {}, PEAKS)) == "peaks as given: 1000 GFLOP/s, 100.0 GB/s"


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_the_peak_is_that_of_the_device_s_instruction_set(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"avx2": 1e11, "avx512": 2e11}
    monkeypatch.setattr(peaks, "multiply_add_rate", rates.get)
    monkeypatch.setattr(peaks, "copy_rate", lambda *_: 1e10)
    device = SimpleNamespace(host_memory=True, attributes=SimpleNamespace(details={"isa": isa}))
    said = describe_peaks(peaks_of(SimpleNamespace(spec="/device:CPU:0", device=device), 2, {}))
    assert said.startswith(f"peaks on 2 thread(s): multiply-add {2 * rates[isa] / 1e9:.0f} GFLOP/s")


@pytest.mark.slow
def test_no_register_of_512_bits_is_in_the_loop_for_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    if platform.machine() != "x86_64" or shutil.which("objdump") is None or shutil.which("cc") is None:
        pytest.skip("there is no C compiler for x86-64, or no objdump")
    listings = []

    def loaded(path: str) -> Any:
        listings.append(subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=True).stdout)
        raise InterruptedError

    monkeypatch.setattr(peaks.ctypes, "CDLL", loaded)
    with pytest.raises(InterruptedError):
        peaks.multiply_add_rate("avx2")
    assert "vfmadd" in listings[0]
    assert "%ymm" in listings[0]
    assert "%zmm" not in listings[0]


def test_the_command_writes_what_it_shows(command: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONFORMANCE_CLEARED", "{}")
    report = tmp_path / "profile.json"
    given = ["bench", "--models", "--profile", "-k", "GRU", "--threads=1", "--peaks=1e12,1e11", f"--json={report}"]
    status, output, errors = command(*given)
    assert (status, errors) == (0, "")
    assert "GRU, batch 1, inference: " in output
    profile = json.loads(report.read_text())["profiles"][0]
    assert (profile["name"], profile["batch"]) == ("GRU", 1)
    assert {work["op"] for work in profile["work"]} >= {"StatelessWhile"}
