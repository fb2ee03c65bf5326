"""Suite guards: what cases say where no memory can be guarded."""

from __future__ import annotations

import pytest

from timberframe_conformance.case import Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target
from timberframe_core.ops.definition import registry
from timberframe_sdk.testing import guard


def judged(target: Target, op: str) -> list[Result]:
    return [judge_case(case, target) for case in SUITES["guards"](target, [registry.get(op)])]


@pytest.mark.parametrize("op", ["ReverseV2", "Assert"])
def test_results_that_hold_no_bytes_are_judged_by_their_values_alone(target: Target, op: str) -> None:
    """Strings are objects of Python, and no output has no bytes either: there is nothing to put zones around."""
    assert {r.verdict for r in judged(target, op)} == {"pass"}


def test_a_device_without_zones_is_not_judged_by_guards(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "check_zone", lambda *_: None)
    assert {r.verdict for r in judged(target, "Neg")} == {"not applicable"}
