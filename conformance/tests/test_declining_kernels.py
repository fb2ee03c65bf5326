"""Cases that a kernel declines are unsupported, with its reason, in every suite."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from timberframe_conformance.case import Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.reports.summary import failing
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_sdk import (
    DEPENDS,
    KernelDef,
    KernelNode,
    Launcher,
    Support,
    UnimplementedError,
    hookimpl,
    reference_launcher,
)
from timberframe_sdk.testing.loaded import loaded_plugin
from timberframe_sdk.testing.reference_device import ReferenceDevice

OPS = ("AddV2", "MatMul", "Sum", "Where", "Softmax", "Gather", "RandomUniform", "ResourceScatterAdd", "Split")
ACCEPTED = ("pass", "unsupported", "not applicable")
REASON = "the first dimension is even"


def odd_rows(node: KernelNode) -> Support:
    shape = node.inputs[-1].shape
    if any(d < 0 for d in shape):
        return DEPENDS
    return REASON if shape and shape[0] % 2 == 0 else None


class ChoosyDevice(ReferenceDevice):
    type, by_reference, priority = "CHOOSY", False, 0


@pytest.fixture(scope="module")
def choosy() -> Iterator[Target]:
    kernels = [KernelDef(op, "CHOOSY", reference_launcher, suits=odd_rows) for op in OPS]
    kernels.append(KernelDef("Identity", "CHOOSY", reference_launcher))
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [ChoosyDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    with loaded_plugin("choosy", plugin):
        yield open_target(Options("choosy"))


class BuildingDevice(ReferenceDevice):
    type, by_reference, priority = "BUILDING", False, 0


def build_odd_rows(node: KernelNode) -> Launcher:
    if odd_rows(node) is not None:
        raise UnimplementedError(REASON)
    return reference_launcher(node)


def no_images(node: KernelNode) -> Support:
    return "no windows" if node.attrs["ksize"] else None


@pytest.fixture(scope="module")
def building(plugin_path: Path) -> Iterator[Target]:
    """Its builders say what they cannot do; and `suits` of one kernel reads an attr that is not there."""
    kernels = [KernelDef(op, "BUILDING", build_odd_rows) for op in OPS]
    kernels += [
        KernelDef("Identity", "BUILDING", reference_launcher),
        KernelDef("Relu", "BUILDING", reference_launcher, suits=no_images),
    ]
    plugin = types.SimpleNamespace(
        timberframe_devices=hookimpl(lambda config: [BuildingDevice()]), timberframe_kernels=hookimpl(lambda: kernels)
    )
    with loaded_plugin("building", plugin):
        yield open_target(Options("building"))


def results(target: Target, suite: str) -> list[Result]:
    cases = list(SUITES[suite](target, [registry.get(op) for op in OPS]))
    return [judge_case(case, target) for case in cases[:: max(1, len(cases) // 60)]]


JUDGING = [s for s in SUITES if s not in ("device", "models", "soak", "variants")]


@pytest.mark.slow  # all together
@pytest.mark.parametrize("suite", JUDGING)
def test_declined_cases_are_unsupported(choosy: Target, suite: str) -> None:
    found = results(choosy, suite)
    assert [f"{r.id}: {r.message}" for r in found if r.verdict not in ACCEPTED] == []
    if suite in ("forward", "guards", "faults"):
        assert any(r.verdict == "pass" for r in found)
    if suite == "forward":  # the others try samples that the device takes
        assert any(REASON in r.message for r in found if r.verdict == "unsupported")


@pytest.mark.slow  # all together
@pytest.mark.parametrize("suite", ["forward", "errors", "guards", "aliasing", "faults", "gradient"])
def test_cases_that_a_builder_says_are_unimplemented_are_unsupported(building: Target, suite: str) -> None:
    found = results(building, suite)
    assert [f"{r.id}: {r.message}" for r in found if r.verdict not in ACCEPTED] == []
    if suite in ("forward", "guards", "faults"):
        assert any(REASON in r.message for r in found if r.verdict == "unsupported")


def failures(target: Target) -> list[Result]:
    cases = list(SUITES["forward"](target, [registry.get("Relu"), registry.get("AddV2")]))
    found = [judge_case(case, target) for case in cases if case.dtype_label == "float32"]
    assert any(r.op == "AddV2" and r.verdict == "pass" for r in found)
    return [r for r in found if r.verdict == "fail"]


def test_an_exception_in_suits_costs_its_kernel_and_is_named_once(building: Target) -> None:
    found = failures(building)
    assert {r.op for r in found} == {"Relu"}
    assert len(failing(found)) == 1
    words = r"suits of kernel .*reference_launcher of plugin 'building' raised KeyError: 'ksize'"
    assert re.search(words, found[0].message)


def test_an_exception_in_supports_of_a_device_is_one_failing_case(
    building: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    supports = building.device.supports

    def raises(node: KernelNode) -> Support:
        if node.op == "Relu":
            raise AttributeError("no attribute 'windows'")
        return supports(node)

    monkeypatch.setattr(building.device, "supports", raises)
    building.forget()
    found = failures(building)
    building.forget()
    assert [r.id for r in found] == ["forward/Relu/float32/supports"]
    words = (
        r"supports of .*BuildingDevice raised AttributeError: no attribute 'windows' \(test_declining_kernels.py:\d+\)"
    )
    assert re.search(words, found[0].message)
