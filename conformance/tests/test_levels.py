"""What a level requires of a device: its own dtypes, and no op that it leaves to the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from timberframe_conformance.case import LEVELS, Case, UnsupportedError
from timberframe_conformance.judge import judge_case
from timberframe_conformance.reports.summary import Run, describe_device, left_to_the_host
from timberframe_conformance.target import Target


def lacking(target: Target) -> Any:
    raise UnsupportedError("no kernel")


def run_of(target: Target, op: str) -> Run:
    results = [judge_case(Case("forward", op, (), "whole", lacking, LEVELS[0]), target)]
    return Run(describe_device(target.device), {}, results, 0.0)


def test_a_level_is_reached_without_the_ops_that_the_device_leaves_to_the_host(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsupported_ops = {"Qr": "a decomposition by the host's library"}
    monkeypatch.setattr(target.device, "attributes", replace(target.device.attributes, unsupported_ops=unsupported_ops))
    run = run_of(target, "Qr")
    assert run.levels()[LEVELS[0]]["reached"]
    assert left_to_the_host(run) == {"a decomposition by the host's library": ["Qr"]}
    assert not run_of(target, "MatMul").levels()[LEVELS[0]]["reached"]


def test_a_level_asks_only_for_dtypes_that_the_device_declares(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target.device, "attributes", replace(target.device.attributes, dtypes=("float32", "int32")))
    assert target.holds((("T", "float32"), ("Tidx", "int32")))
    assert not target.holds((("T", "complex64"), ("Tidx", "int32")))
