"""What compilers do that kernels do not: they look at attrs of nodes, and compute several ops by another formula."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import timberframe_sdk as sdk
from timberframe_conformance.case import Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.profile import Profile
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_sdk.testing.loaded import loaded_plugin

ROUNDING = np.float32(2.0**-22)


class Tensor:
    def __init__(self, x: np.ndarray) -> None:
        self.value, self.dtype, self.shape = x, x.dtype, x.shape


class Compiler(sdk.CompilerDevice):
    """Computes by references; a program of several nodes is off by `error`, as if by another formula."""

    type, priority = "REWRITING", 0
    attributes = sdk.DeviceAttributes(memory=1 << 30)
    error = ROUNDING
    cached_programs = 0

    def __init__(self) -> None:
        super().__init__()
        self.allocator = sdk.Allocator()

    def supports(self, node: sdk.KernelNode) -> str | None:
        if node.op == "Conv2D":
            return None if node.attrs["padding"] == "VALID" else f"padding is {node.attrs['padding']}"
        return None if node.op in ("AddV2", "Identity") else "no translation"

    def build(self, function: sdk.ClusterFunction) -> sdk.Program:
        factor = 1 + self.error if len(function.cluster.nodes) > 2 else np.float32(1)

        def run(arrays: Sequence[Tensor]) -> list[Tensor]:
            found = function(lambda node, x: list(sdk.compute(node, x)), [a.value for a in arrays])
            return [Tensor(np.asarray(x * factor, x.dtype)) for x in found]

        return sdk.Program(run)

    def upload(self, x: np.ndarray) -> Tensor:
        return Tensor(x.copy())

    def copy_out(self, a: Tensor) -> np.ndarray:
        return a.value.copy()


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    make: Any = sdk.hookimpl(lambda config: [Compiler()] if sdk.device_count(config, "REWRITING", 1) else [])
    with loaded_plugin("rewriting", types.SimpleNamespace(timberframe_devices=make)):
        yield open_target(Options("rewriting"))


def chains(target: Target, profile: Profile) -> list[Result]:
    judged = Target(target.name, target.device, profile)
    cases = SUITES["aliasing"](judged, [registry.get("AddV2")])
    return [judge_case(c, judged) for c in cases if "chain" in c.id and "/float32/" in c.id]


def test_another_rounding_of_several_ops_fails(target: Target) -> None:
    found = chains(target, Profile())
    assert found
    assert {r.verdict for r in found} == {"fail"}


@pytest.mark.parametrize("declared", [Profile(rewrites_arithmetic=True), Profile(fuses_arithmetic=True)])
def test_another_rounding_of_several_ops_passes_where_it_is_declared(target: Target, declared: Profile) -> None:
    found = chains(target, declared)
    assert [r.message for r in found if r.verdict != "pass"] == []
    assert found


def test_a_wrong_result_of_several_ops_fails_where_rewriting_is_declared(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Compiler, "error", np.float32(1e-3))
    assert {r.verdict for r in chains(target, Profile(rewrites_arithmetic=True))} == {"fail"}


def test_devices_are_asked_about_ops_with_every_attr(target: Target) -> None:
    convolution = registry.get("Conv2D")
    assert target.supports(convolution, (("T", "float32"),)) is None  # samples have VALID among their paddings
