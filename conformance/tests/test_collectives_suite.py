"""The suite of collectives, on a device that has them, and on ones that have them wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.mutants.prove import prove
from timberframe_conformance.options import Options
from timberframe_conformance.target import open_target
from timberframe_sdk.testing import collective_device
from timberframe_sdk.testing.collective_device import Connections
from timberframe_sdk.testing.loaded import loaded_plugin

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with loaded_plugin("collective", collective_device):
        yield


def judge(command: Any) -> tuple[int, str]:
    status, output, _ = command("run", "--device=collective", "--suite=collectives", "--jobs=0")
    return status, output


def test_collectives_of_two_devices_pass(command: Any) -> None:
    status, output = judge(command)
    assert status == 0, output
    assert "6 cases" in output
    assert "6 pass" in output


def test_a_device_without_collectives_has_none_to_judge(command: Any) -> None:
    status, output, _ = command("run", "--device=reference", "--suite=collectives", "--jobs=0")
    assert status == 0, output
    assert "6 not applicable" in output


@pytest.mark.parametrize("name", [m.name for m in MUTANTS.values() if m.suites == ("collectives",)])
def test_mutants_of_collectives_are_noticed_as_they_should(name: str) -> None:
    options = Options("collective")
    proof = prove(open_target(options), MUTANTS[name], options)
    assert proof.caught, proof.skipped
    assert proof.ok, proof.problems


WRONG: dict[str, tuple[str, Any, str]] = {
    "the sum lacks a member": ("_sum", lambda parts: parts[0], "the sum of float32"),
    "the sum is written to what was given": ("_sum", lambda parts: np.add(*parts, out=parts[0]), "rank 0 gave"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_sums_fail(wrong: str, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name, function, complaint = WRONG[wrong]
    monkeypatch.setattr(collective_device, name, function)
    status, output = judge(command)
    assert status == 1
    assert complaint in output


def test_ranks_in_the_wrong_order_fail(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = Connections._exchange
    monkeypatch.setattr(Connections, "_exchange", lambda self, x: exchange(self, x)[::-1])
    status, output = judge(command)
    assert status == 1
    assert "what all have gathered" in output
    assert "has sent to all" in output


def test_a_close_that_leaves_others_waiting_fails(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(self: Connections, x: np.ndarray) -> list[np.ndarray]:
        try:
            return exchange(self, x)
        except OSError:
            return [x, x]

    exchange = Connections._exchange
    monkeypatch.setattr(Connections, "_exchange", answered)
    status, output = judge(command)
    assert status == 1
    assert "did not raise" in output
