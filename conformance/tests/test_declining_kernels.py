"""Cases that a kernel declines are unsupported, with its reason, in every suite."""

from __future__ import annotations

import types

import pytest

from timberframe_conformance.case import Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import loader
from timberframe_sdk import DEPENDS, KernelDef, KernelNode, Support, hookimpl, reference_launcher
from timberframe_sdk.reference_device import ReferenceDevice

OPS = ("AddV2", "MatMul", "Sum", "Where", "Softmax", "Gather", "RandomUniform", "ResourceScatterAdd", "Split")
REASON = "the first dimension is even"


def odd_rows(node: KernelNode) -> Support:
    shape = node.inputs[-1].shape
    if any(d < 0 for d in shape):
        return DEPENDS
    return REASON if shape and shape[0] % 2 == 0 else None


class ChoosyDevice(ReferenceDevice):
    type, by_reference, priority = "CHOOSY", False, 0


@pytest.fixture(scope="module")
def choosy() -> Target:
    kernels = [KernelDef(op, "CHOOSY", reference_launcher, suits=odd_rows) for op in OPS]
    kernels.append(KernelDef("Identity", "CHOOSY", reference_launcher))
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [ChoosyDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    loader.registry.add("choosy", plugin)
    return open_target(Options("choosy"))


def results(target: Target, suite: str) -> list[Result]:
    cases = list(SUITES[suite](target, [registry.get(op) for op in OPS]))
    return [judge_case(case, target) for case in cases[:: max(1, len(cases) // 60)]]


@pytest.mark.parametrize("suite", [s for s in SUITES if s not in ("device", "models", "soak", "variants")])
def test_declined_cases_are_unsupported(choosy: Target, suite: str) -> None:
    found = results(choosy, suite)
    assert [f"{r.id}: {r.message}" for r in found if r.verdict not in ("pass", "unsupported")] == []
    if suite in ("forward", "guards", "faults"):
        assert any(r.verdict == "pass" for r in found)
        assert any(REASON in r.message for r in found if r.verdict == "unsupported")
