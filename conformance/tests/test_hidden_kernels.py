"""Kernels that are chosen by label alone, or after others, are judged like those that are chosen first."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.case import Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_sdk import KernelDef, KernelNode, Support, hookimpl
from timberframe_sdk.numpy_device import NumpyDevice
from timberframe_sdk.testing.loaded import loaded_plugin


class HidingDevice(NumpyDevice):
    type, priority = "HIDING", 0


def right(node: KernelNode) -> Any:
    return lambda x, out: np.negative(x, out=out)


def wrong(node: KernelNode) -> Any:
    return lambda x, out: np.copyto(out, x)


def never(node: KernelNode) -> Support:
    return "it takes nothing"


@pytest.fixture(scope="module")
def hiding(plugin_path: Path) -> Iterator[Target]:
    floats = {"T": ("float32", "float64")}
    kernels = [
        KernelDef("Neg", "HIDING", right, floats, priority=1),
        KernelDef("Neg", "HIDING", wrong, floats),
        KernelDef("Neg", "HIDING", right, {"T": ("int32",)}),
        KernelDef("Neg", "HIDING", wrong, floats, label="fast"),
        KernelDef("Neg", "HIDING", right, floats, label="exact"),
        KernelDef("Neg", "HIDING", wrong, floats, label="none", suits=never),
    ]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [HidingDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    with loaded_plugin("hiding", plugin):
        yield open_target(Options("hiding"))


def judged(target: Target, suite: str) -> dict[str, Result]:
    return {case.id: judge_case(case, target) for case in SUITES[suite](target, [registry.get("Neg")])}


def forward_verdicts(target: Target) -> set[str]:
    return {r.verdict for r in judged(target, "forward").values() if r.dtypes["T"] == "float32"}


def test_other_suites_run_the_first_kernel_alone(hiding: Target) -> None:
    assert forward_verdicts(hiding) == {"pass"}


def test_each_hidden_kernel_is_judged_in_each_of_its_dtypes(hiding: Target) -> None:
    found = judged(hiding, "kernels")
    verdicts = {(case_id.split("/")[3].split("-")[0], r.dtypes["T"]): r.verdict for case_id, r in found.items()}
    assert verdicts == {
        ("priority=0", "float32"): "fail",
        ("priority=0", "float64"): "fail",
        ("label=fast", "float32"): "fail",
        ("label=fast", "float64"): "fail",
        ("label=exact", "float32"): "pass",
        ("label=exact", "float64"): "pass",
        ("label=none", "float32"): "unsupported",
        ("label=none", "float64"): "unsupported",
    }


def test_the_report_names_the_hidden_kernel(hiding: Target) -> None:
    failing = [r for r in judged(hiding, "kernels").values() if r.verdict == "fail"]
    assert {r.kernels for r in failing} == {(f"hiding: {wrong.__module__}.wrong",)}


def test_the_first_kernel_is_chosen_again_afterwards(hiding: Target) -> None:
    judged(hiding, "kernels")
    assert forward_verdicts(hiding) == {"pass"}
