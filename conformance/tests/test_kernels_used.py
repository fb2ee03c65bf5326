"""Reports say which kernels ran, and what references computed counts for no level."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance.case import Case, Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.reports.summary import Run
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_conformance.todo import items
from timberframe_core.ops.definition import registry
from timberframe_sdk import KernelDef, KernelNode, hookimpl, reference_kernels
from timberframe_sdk.numpy_device import NumpyDevice, matmul
from timberframe_sdk.testing import asynchronous_device
from timberframe_sdk.testing.loaded import loaded_plugin


class UsedDevice(NumpyDevice):
    type, priority = "USED", 0


def by_the_definition(node: KernelNode) -> Any:
    """Returns a kernel that has its op computed by the definition's reference."""

    def launch(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        out[...] = registry.get(node.op).reference(node.attrs, x, y)  # type: ignore[misc]  # the op has one

    return launch


def by_another_device(node: KernelNode) -> Any:
    """Returns a kernel that has its op computed by another device."""

    def launch(x: np.ndarray, out: np.ndarray) -> None:
        with tf.Graph().as_default(), tf.device("/device:CPU:0"), tf.Session() as session:
            fed = tf.placeholder(tf.float32, x.shape)
            out[...] = session.run(tf.sqrt(fed), {fed: x})

    return launch


@pytest.fixture(scope="module")
def used(plugin_path: Path) -> Iterator[Target]:
    kernels = [KernelDef("MatMul", "USED", matmul), *reference_kernels("USED", ["Relu"])]
    kernels += [KernelDef("BiasAdd", "USED", by_the_definition), KernelDef("Sqrt", "USED", by_another_device)]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [UsedDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    with loaded_plugin("used", plugin):
        yield open_target(Options("used"))


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


@pytest.fixture
def compiler() -> Iterator[Target]:
    """A device without kernels, whose translations have references compute."""
    with loaded_plugin("async", asynchronous_device):
        yield open_target(Options("async"))


def asinh(target: Target) -> None:
    with tf.Graph().as_default() as graph, tf.device(target.spec), target.session(graph) as session:
        session.run(tf.asinh(tf.constant([1.0, 2.0])))


def test_what_a_translation_has_a_reference_compute_is_a_fallback(compiler: Target) -> None:
    assert judge_case(Case("forward", "Asinh", (), "x", asinh), compiler).fallback


def test_a_case_that_runs_nothing_of_its_op_is_no_fallback(compiler: Target) -> None:
    """Such as one whose error is found while the graph is built, though a reference computed others of the op."""
    judge_case(Case("forward", "Asinh", (), "x", asinh), compiler)
    assert not judge_case(Case("errors", "Asinh", (), "x", lambda target: None), compiler).fallback
