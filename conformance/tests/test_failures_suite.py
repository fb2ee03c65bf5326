"""The suites `failures` and `traces`: right drivers pass, and each mutant of errors and of times is noticed."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import timberframe_sdk as sdk
from timberframe_conformance.case import Result
from timberframe_conformance.collect import collect
from timberframe_conformance.judge import judge_case
from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.mutants.prove import prove
from timberframe_conformance.mutants.strangers.base import Stranger
from timberframe_conformance.mutants.strangers.hosts import HOSTS
from timberframe_conformance.options import Options
from timberframe_conformance.target import open_target
from timberframe_sdk.numpy_device import NumpyDevice
from timberframe_sdk.testing.loaded import loaded_plugin

OF_DRIVERS = [n for n, m in MUTANTS.items() if isinstance(m, Stranger) and m.concerns in ("failures", "traces")]


def results(host: str, *suites: str) -> list[Result]:
    target = HOSTS[host].open()
    return [judge_case(c, target) for c in collect(target, Options(target.name, suites=suites))]


@pytest.mark.parametrize("host", ["python", "npu", "compiler"])
def test_right_drivers_pass(host: str) -> None:
    found = results(host, "failures", "traces")
    assert [(r.id, r.message) for r in found if r.verdict not in ("pass", "not applicable")] == []
    assert sum(r.verdict == "pass" for r in found) >= (20 if host != "compiler" else 10)


def test_a_driver_that_cannot_fail_reaches_no_level_training(monkeypatch: Any) -> None:
    device: Any = HOSTS["python"].open().device
    monkeypatch.setattr(device.failures, "kinds", frozenset({"compile"}))
    found = [r for r in results("python", "failures") if r.id.endswith("launch-fetched")]
    assert [(r.verdict, r.level, r.expected) for r in found] == [("unsupported", "training", True)]
    assert "nobody can see whether errors of the driver arrive" in found[0].message


class WaitingDevice(NumpyDevice):
    """A device that has done its work when a call returns, and asks its allocator for all that it gives."""

    type, priority, by_reference = "WAITING", 0, True

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        found: np.ndarray = self.array(self.allocator.allocate(dtype.itemsize * math.prod(shape)), 0, dtype, shape)
        return found


def test_a_device_that_waits_for_its_work_raises_what_comes_once() -> None:
    plugin = SimpleNamespace(timberframe_devices=sdk.hookimpl(lambda config: [WaitingDevice()]))
    with loaded_plugin("waiting_device", plugin):
        target = open_target(Options("waiting"))
        found = [judge_case(c, target) for c in collect(target, Options("waiting", suites=("failures",)))]
    assert [(r.id, r.message) for r in found if r.verdict not in ("pass", "not applicable")] == []
    assert sum(r.verdict == "pass" for r in found) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_DRIVERS)
def test_errors_and_times_that_are_wrong_are_noticed(name: str) -> None:
    proof = prove(HOSTS["npu"].open(), MUTANTS[name], Options("npu"))
    assert proof.ok, proof.problems
    assert proof.first.split("/")[0] == MUTANTS[name].concerns  # type: ignore[attr-defined]  # strangers' have it
