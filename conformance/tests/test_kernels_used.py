"""Reports say which kernels ran, and what references computed counts for no level."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance import kernels_used
from timberframe_conformance.case import Case, Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.reports.summary import Run
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_conformance.todo import items
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import loader
from timberframe_sdk import KernelDef, KernelNode, hookimpl, reference_kernels
from timberframe_sdk.numpy_device import NumpyDevice, matmul


class UsedDevice(NumpyDevice):
    type, priority = "USED", 0


def by_the_definition(node: KernelNode) -> Any:
    """A kernel that has its op computed by the definition's reference."""

    def launch(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        out[...] = registry.get(node.op).reference(node.attrs, x, y)  # type: ignore[misc]  # the op has one

    return launch


def by_another_device(node: KernelNode) -> Any:
    """A kernel that has its op computed by another device."""

    def launch(x: np.ndarray, out: np.ndarray) -> None:
        with tf.Graph().as_default(), tf.device("/device:CPU:0"), tf.Session() as session:
            fed = tf.placeholder(tf.float32, x.shape)
            out[...] = session.run(tf.sqrt(fed), {fed: x})

    return launch


@pytest.fixture(scope="module")
def used(plugin_path: Path) -> Target:
    kernels = [KernelDef("MatMul", "USED", matmul), *reference_kernels("USED", ["Relu"])]
    kernels += [KernelDef("BiasAdd", "USED", by_the_definition), KernelDef("Sqrt", "USED", by_another_device)]
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


@pytest.mark.parametrize(
    ("op", "by"), [("BiasAdd", "the op's reference (fallback)"), ("Sqrt", "/device:CPU:0 (fallback)")]
)
def test_a_kernel_that_leaves_its_work_to_others_counts_for_nothing_and_they_are_named(
    used: Target, op: str, by: str
) -> None:
    results = networks(used, op)
    assert {(r.verdict, r.fallback, r.kernels[-1]) for r in results} == {("pass", True, by)}
    assert {item.why for item in items(results)} == {f"computed by {by}"}


def test_a_case_that_runs_no_kernel_of_its_op_is_no_fallback(used: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one whose error is found while the graph is built, though other dtypes are computed by a reference."""
    monkeypatch.setattr(kernels_used, "computed_ops", lambda device: frozenset({"MatMul"}))
    assert not judge_case(Case("errors", "MatMul", (), "x", lambda target: None), used).fallback
