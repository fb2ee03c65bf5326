"""Proves that the suite notices a mutant of a stranger at the level that the rule gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from timberframe_conformance.case import FAILING, LEVELS, SUBJECTS, Case, Result
from timberframe_conformance.collect import NoSuchCaseError, collect, collectors, find_case
from timberframe_conformance.judge import judge_case
from timberframe_conformance.mutants.strangers.base import BROKEN, Stranger
from timberframe_conformance.mutants.strangers.hosts import HOSTS
from timberframe_conformance.options import Options
from timberframe_conformance.suites import programs
from timberframe_conformance.target import NoSuchDeviceError, Target

if TYPE_CHECKING:
    from timberframe_conformance.mutants.prove import Proof


def prove_stranger(proof: Proof, mutant: Stranger) -> Proof:
    """Runs the cases of the mutant's level until one notices; that one must pass without the mutant."""
    try:
        with mutant.planted() as target:
            noticed = _first_failure(proof, mutant, target)
    except NoSuchDeviceError as e:
        proof.skipped = str(e)
        return proof
    if noticed is None:
        proof.problems.append(f"none of {proof.tried} cases up to level {mutant.level} noticed")
        return proof
    proof.noticed, proof.first, proof.message = 1, noticed.id, noticed.message
    if BROKEN in noticed.message:
        proof.problems.append(noticed.message)
    again = _without(mutant, noticed)
    if again is not None and again.verdict in FAILING:
        proof.problems.append(f"{again.id} fails without the mutant, too: {again.message}")
    return proof


def _first_failure(proof: Proof, mutant: Stranger, target: Target) -> Result | None:
    for case in cases_of(mutant, target):
        proof.tried += 1
        result = judge_case(case, target)
        if result.verdict in FAILING:
            return result
    return None


def cases_of(mutant: Stranger, target: Target) -> Iterator[Case]:
    """Yields the cases of the mutant's level that may notice it, those of the suite about its part first.

    Of the last level, which no network asks for, those of the mutant's ops and of what programs are kept by.
    """
    level = mutant.level if mutant.level != LEVELS[-1] else "all"
    graphs = () if level == "all" else SUBJECTS[1:]
    options = Options(target.name, level=level, ops=(*mutant.ops, *graphs) if mutant.ops else ())
    if not mutant.ops:
        first = tuple(s for s in (mutant.concerns, "device") if s in collectors())
        yield from collect(target, replace(options, suites=first))
        options = replace(options, suites=tuple(s for s in collectors() if s not in first))
    yield from collect(target, options)
    if level == "all":
        yield from collect(target, replace(options, ops=SUBJECTS[1:2], suites=(programs.SUITE,)))


def _without(mutant: Stranger, noticed: Result) -> Result | None:
    """Returns the same case on the host as it is; None where it has no such case, such as one of a
    kernel for several nodes.
    """
    target = HOSTS[mutant.host].open()
    try:
        return judge_case(find_case(target, noticed.id, Options(target.name)), target)
    except NoSuchCaseError:
        return None
