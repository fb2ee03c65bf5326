"""Which exceptions of a case mean that the device has no kernel, and which that it failed."""

from __future__ import annotations

from typing import Any

import pytest

from timberframe_conformance import judge
from timberframe_conformance.case import Case, CaseFailedError, Result, WrongValuesError
from timberframe_conformance.judge import judge_case
from timberframe_conformance.target import Target
from timberframe_core.errors import NoKernelError, UnimplementedError


def result(target: Target, *errors: Exception | None) -> Result:
    """Of a case that raises these errors, one in each run."""
    left = list(errors)

    def run(target: Any) -> None:
        error = left.pop(0)
        if error is not None:
            raise error

    return judge_case(Case("forward", "Neg", (), "", run), target)


def verdict(target: Target, error: Exception) -> str:
    return result(target, error).verdict


def test_no_kernel_is_unsupported(target: Target) -> None:
    assert verdict(target, NoKernelError("Neg 'x': declined")) == "unsupported"


@pytest.mark.parametrize("text", ["no kernel", "half of it"])
def test_what_a_kernel_does_not_support_is_a_failure_whatever_its_message(target: Target, text: str) -> None:
    assert verdict(target, UnimplementedError(f"Neg 'x': {text}")) == "fail"


FIRST = "2 of 4 elements differ; at [1]"
OTHER = "; another result at a second run: "
CAUSE = "; work is probably not ordered, or memory is read before it is written"


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (WrongValuesError("1 of 4 elements differ; at [3]"), "1 of 4 elements differ; at [3]"),
        (CaseFailedError("no zones"), "no zones"),
        (UnimplementedError("Neg 'x': half of it"), "UnimplementedError: Neg 'x': half of it"),
        (None, "the right one"),
    ],
)
def test_wrong_values_that_differ_from_run_to_run_are_reported_as_such(
    target: Target, second: Exception | None, words: str
) -> None:
    found = result(target, WrongValuesError(FIRST), second)
    assert (found.verdict, found.message) == ("fail", f"{FIRST}{OTHER}{words}{CAUSE}")


def test_wrong_values_that_stay_the_same_are_reported_as_they_are(target: Target) -> None:
    assert result(target, WrongValuesError(FIRST), WrongValuesError(FIRST)).message == FIRST


def test_failures_that_differ_from_run_to_run_have_causes_of_their_own(target: Target) -> None:
    steady = result(target, WrongValuesError(FIRST), WrongValuesError(FIRST))
    one, other = (result(target, WrongValuesError(FIRST), e) for e in (None, WrongValuesError("no zones")))
    assert steady.cause != one.cause == other.cause


def test_other_failures_are_not_tried_again(target: Target) -> None:
    assert result(target, CaseFailedError("no zones")).message == "no zones"


def test_a_case_that_takes_long_is_not_tried_again(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "LONGEST_FOR_A_SECOND_RUN", 0)
    assert result(target, WrongValuesError(FIRST)).message == FIRST
