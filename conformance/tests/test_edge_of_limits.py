"""A device that is off by exactly what the limits allow passes everything; one that is off by twice that does not."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from timberframe_conformance.collect import collect
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.target import Target, open_target
from timberframe_sdk.testing.loaded import loaded_plugin

pytestmark = pytest.mark.slow

OPS = ("Tanh", "MatMul", "Conv2D", "Softmax")
SUITES = ("forward", "networks", "shapes", "prepared", "aliasing")
MOST = 12
"""Cases of each suite and op that are tried."""


@pytest.fixture
def edge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    with loaded_plugin("edge", importlib.import_module("edge_device")):
        yield open_target(Options("edge"))


def verdicts(target: Target, op: str, *suites: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for suite in suites:
        cases = list(collect(target, Options("edge", ops=(op,), suites=(suite,), level="training")))
        for case in cases[:: max(1, len(cases) // MOST)]:
            result = judge_case(case, target)
            found[case.id] = result.verdict if result.verdict != "fail" else f"fail: {result.message}"
    return found


@pytest.mark.parametrize("op", OPS)
def test_a_device_at_the_edge_of_all_limits_passes(edge: Target, op: str) -> None:
    found = verdicts(edge, op, *SUITES)
    assert {case: v for case, v in found.items() if v.startswith("fail")} == {}
    assert "pass" in found.values()


@pytest.mark.parametrize("op", OPS)
def test_a_device_off_by_twice_the_limits_fails(edge: Target, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_DEVICE_FACTOR", "2")
    found = verdicts(edge, op, "forward")
    assert sum(v.startswith("fail") for v in found.values()) > len(found) / 2
