"""The suites that judge a device through what surrounds its kernels, on devices that share nothing but the contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from timberframe_conformance.case import Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.mutants.prove import prove
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.loader import SELECTION_VARIABLE
from timberframe_sdk.testing import asynchronous_device
from timberframe_sdk.testing.loaded import loaded_plugin

SEAMS = ("prepared", "passes", "host-ops", "resources", "targets")
ONE_OF_EACH = (
    "weights-of-first-version",
    "form-outlives-version",
    "drops-control-edges",
    "one-staging-buffer",
    "given-up-elements-lost",
)


@pytest.fixture(scope="module")
def asynchronous() -> Iterator[Target]:
    with loaded_plugin("async", asynchronous_device):
        yield open_target(Options("async"))


def results(target: Target, suite: str) -> list[Result]:
    """Returns those of the suite's cases, of its cases by ops for MatMul alone."""
    return [judge_case(case, target) for case in SUITES[suite](target, [registry.get("MatMul")])]


@pytest.mark.slow
@pytest.mark.parametrize("suite", SEAMS)
def test_a_device_without_kernels_of_the_registry_passes(asynchronous: Target, suite: str) -> None:
    found = results(asynchronous, suite)
    assert [f"{r.id}: {r.message}" for r in found if r.verdict not in ("pass", "not applicable")] == []


@pytest.mark.slow
@pytest.mark.parametrize("suite", SEAMS)
def test_a_device_of_numpy_passes(target: Target, suite: str) -> None:
    found = results(target, suite)
    assert [f"{r.id}: {r.message}" for r in found if r.verdict not in ("pass", "not applicable")] == []


def test_suite_passes_leaves_the_device_as_it_was_whatever_plugins_are_chosen(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other devices would have other kernels than those that later suites look at."""
    monkeypatch.setenv(SELECTION_VARIABLE, "reference")
    chosen = open_target(Options("reference"))
    failing = [c for c in SUITES["passes"](chosen, []) if c.id.endswith("pass-raises-cluster")]
    assert [judge_case(c, chosen).verdict for c in failing] == ["pass"]
    assert open_target(Options("reference")).device is chosen.device


def test_devices_say_which_cases_do_not_apply_to_them(asynchronous: Target) -> None:
    found = Counter(r.message for r in results(asynchronous, "prepared") if r.verdict == "not applicable")
    assert list(found) == ["the device runs no kernels that this process registers"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_mutant_of_a_seam_is_noticed(target: Target, name: str) -> None:
    proof = prove(target, MUTANTS[name], Options("reference"))
    assert proof.caught
    assert proof.ok, proof.problems


def test_what_a_mutant_of_a_seam_replaced_is_back_after_it(target: Target) -> None:
    (case,) = [c for c in SUITES["resources"](target, []) if c.detail == "elements-stay"]
    prove(target, MUTANTS["queue-last-first"], Options("reference"))
    assert judge_case(case, target).verdict == "pass"


def test_a_mutant_of_a_seam_that_a_device_has_no_part_in_is_skipped(target: Target) -> None:
    assert prove(target, MUTANTS["fused-inputs-exchanged"], Options("reference")).skipped
