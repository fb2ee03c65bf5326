"""ONNX's own tests as a suite of conformance: the commit's share on the CPU, and what is said of other devices."""

from __future__ import annotations

import subprocess
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.case import Case, Result
from timberframe_conformance.commit import commit_number
from timberframe_conformance.judge import judge_case
from timberframe_conformance.mutants.activate import active
from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target
from timberframe_onnx.judging import collect
from timberframe_onnx.suite import FAILING
from timberframe_sdk import DeviceAttributes, KernelDef, hookimpl
from timberframe_sdk.numpy_device import NumpyAllocator, NumpyDevice
from timberframe_sdk.testing.loaded import loaded_plugin

SHARES = 12
COUNTS = {"Node": 1884, "PyTorchConverted": 82, "PyTorchOperator": 35, "Real": 9, "Simple": 23}
"""How many tests onnx 1.23.2 has of each family."""
pytestmark = pytest.mark.slow  # ONNX takes ten seconds to make its tests


@pytest.fixture(scope="module")
def cpu() -> Target:
    return open_target(Options("cpu"))


@pytest.fixture(scope="module")
def cases(cpu: Target) -> list[Case]:
    return list(collect(cpu, []))


def verdict(cases: list[Case], target: Target, name: str) -> Result:
    (case,) = [case for case in cases if case.detail == name]
    return judge_case(case, target)


def test_each_of_onnx_own_tests_is_a_case(cases: list[Case]) -> None:
    counts = Counter(case.op.removeprefix("onnx:") for case in cases)
    families = {family: counts[family] for family in COUNTS if family != "Node"}
    assert {**families, "Node": len(cases) - sum(families.values())} == COUNTS
    assert len({case.id for case in cases}) == len(cases)


def test_a_case_names_the_op_of_its_test_and_the_types_of_the_inputs(cases: list[Case]) -> None:
    ids = {case.id for case in cases}
    assert "onnx/onnx:Softmax/float/test_softmax_axis_0" in ids
    assert "onnx/onnx:Softmax/float/test_softmax_axis_0_expanded" in ids


def test_tests_fail_on_the_cpu_where_the_table_says_so_and_nowhere_else(cases: list[Case], cpu: Target) -> None:
    share = cases[commit_number(Path(__file__).parent) % SHARES :: SHARES]
    found = {case.detail: judge_case(case, cpu) for case in share}
    wrong = {name: result.message for name, result in found.items() if result.verdict != "pass" or result.fallback}
    assert set(wrong) == set(found) & set(FAILING), wrong


def test_the_table_of_failing_tests_does_not_grow() -> None:
    assert len(FAILING) == 19
    assert all(reason.strip() for reason in FAILING.values())


def test_what_fails_on_the_cpu_for_a_known_reason_says_nothing_of_a_device(cases: list[Case], cpu: Target) -> None:
    found = verdict(cases, cpu, "test_bernoulli")
    assert found.verdict == "not applicable"
    assert "drawn by another generator" in found.message


def test_a_kernel_with_a_known_bug_fails(cases: list[Case], cpu: Target) -> None:
    with active(cpu, "tail-skipped"):
        found = verdict(cases, cpu, "test_tanh_example")
    assert found.verdict == "fail"
    assert "Not equal to tolerance" in found.message
    assert found.repro == "conformance repro --device=cpu 'onnx/onnx:Tanh/float/test_tanh_example'"


class AddingDevice(NumpyDevice):
    """It adds, and has no other kernel."""

    type, priority = "ADDING", 0
    attributes = DeviceAttributes(memory=1 << 30, vendor="Acme", model="A1", dtypes=("float32",))

    def __init__(self) -> None:
        super().__init__(0)
        self.allocator = NumpyAllocator()


@pytest.fixture(scope="module")
def adding() -> Any:
    kernels = [KernelDef("AddV2", "ADDING", lambda node: lambda x, y, out: np.add(x, y, out=out))]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [AddingDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    with loaded_plugin("adding", plugin):
        yield open_target(Options("adding"))


@pytest.fixture(scope="module")
def cases_of_adding(adding: Target) -> list[Case]:
    return list(collect(adding, []))


@pytest.mark.parametrize(
    ("name", "expected", "fallback", "said"),
    [
        ("test_add", "pass", False, ""),
        ("test_exp", "unsupported", False, "none of its ops ran on the device; /device:CPU:0 ran Exp"),
        ("test_hardsigmoid_default", "pass", True, ""),
        ("test_softplus_expanded_ver18", "pass", True, ""),
    ],
)
def test_ops_that_another_device_runs_are_no_success_of_this_one(
    cases_of_adding: list[Case], adding: Target, name: str, expected: str, fallback: bool, said: str
) -> None:
    found = verdict(cases_of_adding, adding, name)
    assert (found.verdict, found.fallback) == (expected, fallback), found.message
    assert said in found.message


def test_a_fallback_names_the_ops_that_ran_elsewhere(cases_of_adding: list[Case], adding: Target) -> None:
    *_, kernels = verdict(cases_of_adding, adding, "test_softplus_expanded_ver18").kernels
    assert kernels == "/device:CPU:0 ran Exp, Log (fallback)"


def test_the_script_of_a_case_runs_without_conformance(cases: list[Case], tmp_path: Path) -> None:
    (case,) = [case for case in cases if case.detail == "test_relu"]
    assert case.script is not None
    file = tmp_path / "case.py"
    file.write_text(case.script("/device:CPU:0"))
    assert "conformance" not in file.read_text()
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "right, within ONNX's limits" in done.stdout
