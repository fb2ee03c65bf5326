"""What a vendor's profile declares about real hardware, and what a run says of it."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.case import Case, CaseFailedError, Measured, Result
from timberframe_conformance.judge import judge_case
from timberframe_conformance.profile import Profile, ProfileError, Tolerance, Waiver, load_profile
from timberframe_conformance.reports.summary import Run, profile_remarks
from timberframe_conformance.target import Target
from timberframe_conformance.tolerance.compare import check
from timberframe_conformance.tolerance.declared import in_force
from timberframe_conformance.twin import Twin
from timberframe_core.dtypes import as_dtype
from timberframe_core.ops.definition import registry
from timberframe_sdk.reference import evaluate

LATER, EARLIER = datetime.date(2999, 1, 1), datetime.date(2001, 1, 1)
TANH = Tolerance("Tanh", 8, "a table of 1,024 entries", LATER, ("float32",))


def off_by(ulp: float, op: str = "Tanh") -> Measured:
    """Returns the verdict on results that are this far off."""
    x = np.array([0.3, 0.7], np.float32)
    (wide,) = evaluate(registry.get(op), {}, [x.astype(np.float64)])
    true = wide.astype(np.float32)
    got = true + np.float32(ulp) * np.spacing(true)
    return check(registry.get(op), {"T": as_dtype("float32")}, [x], [got], [x.dtype])


def test_a_declared_tolerance_widens_the_limit_of_its_op() -> None:
    with pytest.raises(CaseFailedError):
        off_by(7)
    with in_force(Profile(tolerances=[TANH])):
        assert off_by(7).waiver == "tolerance Tanh/float32"


def test_beyond_a_declared_tolerance_is_a_failure() -> None:
    with in_force(Profile(tolerances=[TANH])), pytest.raises(CaseFailedError, match="limit 8 ULP"):
        off_by(10)


def test_a_tolerance_that_is_not_needed_is_not_used() -> None:
    with in_force(Profile(tolerances=[TANH])):
        assert off_by(0).waiver == ""


@pytest.mark.parametrize(
    "changed", [{"expires": EARLIER}, {"dtypes": ("float64",)}, {"op": "Sigm*"}], ids=["expired", "dtype", "op"]
)
def test_a_tolerance_is_for_its_ops_and_dtypes_until_it_expires(changed: dict[str, Any]) -> None:
    with in_force(Profile(tolerances=[dataclasses.replace(TANH, **changed)])), pytest.raises(CaseFailedError):
        off_by(7)


def test_an_exact_op_may_have_a_tolerance() -> None:
    with in_force(Profile(tolerances=[Tolerance("Neg", 1, "by a table", LATER)])):
        assert off_by(1, "Neg").waiver == "tolerance Neg"


def test_flushed_inputs_lead_to_zeros_where_results_would_be_large() -> None:
    """1e-40 * 1e38 is 0.01: zero on hardware whose inputs are flushed."""
    op = registry.get("Mul")
    x, y = np.array([1e-40], np.float32), np.array([1e38], np.float32)
    zero = np.zeros(1, np.float32)
    check(op, {"T": as_dtype("float32")}, [x, y], [zero], [x.dtype], flushes_subnormals=True)


def test_flushing_in_between_costs_as_much_as_the_smallest_normal_number() -> None:
    op = registry.get("Tanh")
    x = np.array([2e-38], np.float32)
    got = np.array([1.2e-38], np.float32)
    with pytest.raises(CaseFailedError):
        check(op, {"T": as_dtype("float32")}, [x], [got], [x.dtype])
    check(op, {"T": as_dtype("float32")}, [x], [got], [x.dtype], flushes_subnormals=True)


@pytest.mark.parametrize("flushes", [False, True])
def test_graphs_may_flush_where_it_is_declared(target: Target, flushes: bool) -> None:
    judged = Target(target.name, target.device, Profile(flushes_subnormals=flushes))

    def flushed(target: Target) -> Measured:
        twin = Twin(target)
        value = twin.op("Mul", [twin.feed(np.array([1e-30], np.float32)), twin.feed(np.array([1e-9], np.float32))])
        zero = np.zeros(1, np.float32)
        return twin.check([dataclasses.replace(value, wide=zero.astype(np.float64), narrow=zero)])

    assert judge_case(Case("graphs", "Graph", (), "x", flushed), judged).verdict == ("pass" if flushes else "fail")


def failing_case(target: Target) -> Measured:
    raise CaseFailedError("wrong")


def run_with(target: Target, *waivers: Waiver, tolerances: tuple[Tolerance, ...] = (), fails: bool = True) -> Run:
    profile = Profile(waivers=waivers, tolerances=tolerances)
    judged = Target(target.name, target.device, profile)
    case = Case("forward", "Tanh", (), "x", failing_case if fails else (lambda target: None))
    return Run({}, {}, [judge_case(case, judged)], 0.0, profile=profile.as_dict())


def test_an_expired_waiver_is_said_with_what_fails_now(target: Target) -> None:
    run = run_with(target, Waiver("forward/Tanh/*", "old", EARLIER))
    assert run.results[0].verdict == "fail"
    assert run.results[0].message == "wrong; its waiver expired on 2001-01-01"
    expected = "expired waiver forward/Tanh/*, on 2001-01-01: 1 cases fail that it covers"
    assert profile_remarks(run) == [expected]


def test_unused_waivers_and_tolerances_are_said(target: Target) -> None:
    run = run_with(target, Waiver("forward/Exp/*", "a bug", LATER), tolerances=(TANH,), fails=False)
    assert profile_remarks(run) == [
        "unused waiver forward/Exp/*: no case of this run needs it",
        "unused tolerance Tanh/float32: no case of this run needs it",
    ]


def test_a_used_waiver_needs_no_remark(target: Target) -> None:
    assert profile_remarks(run_with(target, Waiver("forward/Tanh/*", "a bug", LATER))) == []


def test_a_waived_case_that_passes_is_said(target: Target) -> None:
    run = run_with(target, Waiver("forward/Tanh/*", "a bug", LATER), fails=False)
    assert profile_remarks(run) == ["unexpected pass forward/Tanh/-/x: one of 1 that waiver forward/Tanh/* covers"]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Any]:
    def write(text: str) -> Profile:
        path = tmp_path / "profile.toml"
        path.write_text(text)
        return load_profile(path)

    return write


def test_a_profile_is_read_from_toml(written: Any) -> None:
    profile = written(
        "fuses_arithmetic = true\n[[tolerance]]\nop = 'Tanh'\nulp = 8\ndtypes = ['float32']\n"
        "reason = 'a table of 1,024 entries'\nexpires = 2999-01-01\n"
    )
    assert not profile.keeps_bits
    assert profile.tolerances == (TANH,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "flushes = true",
            "known are flushes_subnormals, fuses_arithmetic, rewrites_arithmetic, orders_zeros, tolerance, waiver",
        ),
        ("[[tolerance]]\nop = 'Tanh'\nulp = 8\nexpires = 2999-01-01", "a tolerance lacks reason; it needs op, ulp"),
        ("[[tolerance]]\nop='Tanh'\nulp='8'\nreason='x'\nexpires=2999-01-01", "ulp '8'; a number above 0"),
        ("[[tolerance]]\nop='Tanh'\nulp=8\nreason='x'\nexpires='soon'", "expires 'soon'; a date such as"),
        ("[[tolerance]]\nop='Tanh'\nulp=8\nreason='x'\nexpires=2999-01-01T00:00:00", "a date such as 2027-03-01"),
        ("[[tolerance]]\nop='T'\nulp=8\nreason='x'\nexpires=2999-01-01\ndtype='half'", "known are .*expires, dtypes"),
        ("[[waiver]]\ncases='*'\nreason='x'\nexpires=2999-01-01\nop='Tanh'", "a waiver has op; known are cases"),
        ("[[waiver]]\ncases='*'\nreason='x'\nexpires=2999-01-01\ndtypes=['half']", "a waiver has dtypes; known are"),
        ("[waiver]\ncases='*'\nreason='x'\nexpires=2999-01-01", r"tables that begin with \[\[waiver\]\] are required"),
        ("tolerance = [8]", r"tolerance is \[8\]; tables that begin with"),
        (
            "[[waiver]]\ncases=['a/*']\nreason='x'\nexpires=2999-01-01",
            r"a waiver has cases \['a/\*'\]; a text is required",
        ),
        (
            "[[tolerance]]\nop='T'\nulp=8\nreason='x'\nexpires=2999-01-01\ndtypes=['flaot']",
            r"dtypes \['flaot'\]; a list",
        ),
        ("flushes_subnormals = 'no'", "flushes_subnormals is 'no'; true or false is required"),
    ],
)
def test_a_wrong_profile_is_refused(written: Any, text: str, words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        written(text)


def test_reports_hold_the_profile(target: Target, tmp_path: Path) -> None:
    run = run_with(target, Waiver("forward/Tanh/*", "a bug", LATER))
    assert isinstance(run.results[0], Result)
    assert run.profile["waivers"][0]["expires"] == "2999-01-01"
    assert '"profile"' in run.to_json()
