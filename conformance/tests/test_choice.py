"""Which samples are tried: a device that takes one layout alone is judged by samples in that layout."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.cases.trials import samples_of, trials
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_sdk import KernelDef, KernelNode, Launcher, Support, hookimpl, reference_launcher
from timberframe_sdk.testing.loaded import loaded_plugin
from timberframe_sdk.testing.reference_device import ReferenceDevice

OPS = ("MaxPool", "AvgPool", "Conv2D", "FusedBatchNormV3")


def wrong(node: KernelNode) -> Launcher:
    launch = reference_launcher(node)

    def changed(*arrays: np.ndarray) -> Any:
        made = launch(*arrays)
        arrays[-1][...] += 1
        return made

    return changed


def takes_only(layout: str) -> Callable[[KernelNode], Support]:
    return lambda node: None if node.attrs["data_format"] == layout else f"{layout} is required"


class OneLayoutDevice(ReferenceDevice):
    type, by_reference, priority = "ONE_LAYOUT", False, 0


@pytest.fixture(params=["NHWC", "NCHW"])
def one_layout(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Its MaxPool takes one dtype and one layout, and is wrong."""
    kernels = [KernelDef("MaxPool", "ONE_LAYOUT", wrong, {"T": ("float16",)}, suits=takes_only(request.param))]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [OneLayoutDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    with loaded_plugin("one_layout", plugin):
        yield open_target(Options("one_layout"))


def verdicts(target: Target, suite: str) -> set[str]:
    return {judge_case(c, target).verdict for c in SUITES[suite](target, [registry.get("MaxPool")])}


def test_a_wrong_kernel_for_one_layout_of_one_dtype_fails(one_layout: Target) -> None:
    assert "fail" in verdicts(one_layout, "forward")


def test_guards_judges_samples_that_the_device_takes(one_layout: Target) -> None:
    assert verdicts(one_layout, "guards") == {"fail"}


@pytest.mark.parametrize("name", OPS)
def test_each_dtype_is_tried_in_each_layout(name: str) -> None:
    op = registry.get(name)
    layouts = {s.attrs["data_format"] for s in samples_of(op) if "data_format" in s.attrs}
    by_dtype = {t: [(("T", t), *((("U", "float32"),) if "U" in op.attrs else ()))] for t in ("float16", "bfloat16")}
    found: dict[str, set[str]] = {}
    for trial in trials(op, by_dtype):
        found.setdefault(trial.types[0][1], set()).add(trial.sample.attrs.get("data_format", "NHWC"))
    assert [layouts <= found.get(dtype, set()) for dtype in by_dtype] == [True, True]
