"""Reports say which kernels ran, and what references computed counts for no level."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from timberframe_conformance.case import Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.reports.summary import Run
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import loader
from timberframe_sdk import KernelDef, hookimpl, reference_kernels
from timberframe_sdk.numpy_device import NumpyDevice, matmul


class UsedDevice(NumpyDevice):
    type, priority = "USED", 0


@pytest.fixture(scope="module")
def used(plugin_path: Path) -> Target:
    kernels = [KernelDef("MatMul", "USED", matmul), *reference_kernels("USED", ["Relu"])]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [UsedDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    loader.registry.add("used", plugin)
    return open_target(Options("used"))


def networks(target: Target, op: str) -> list[Result]:
    cases = [c for c in SUITES["networks"](target, [registry.get(op)]) if c.op == op]
    return [judge_case(case, target) for case in cases]


def test_a_result_names_plugin_and_builder_of_the_kernel(used: Target) -> None:
    assert {r.kernels for r in networks(used, "MatMul")} == {("used: timberframe_sdk.numpy_device.matmul",)}


def test_what_a_reference_computes_is_right_and_missing(used: Target) -> None:
    results = networks(used, "Relu")
    assert {(r.verdict, r.fallback, r.level) for r in results} == {("pass", True, "core"), ("pass", True, "inference")}
    assert Run({}, {}, results, 0.0).levels()["core"]["missing"] == [r.id for r in results if r.level == "core"]


def test_a_device_that_computes_all_by_references_reaches_nothing(target: Target) -> None:
    results = networks(target, "Relu")
    assert all(r.verdict == "pass" and r.fallback for r in results)
    assert not Run({}, {}, results, 0.0).reaches("core")
