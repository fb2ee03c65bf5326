"""A sixteenth of the mutants, the share of the commit, and those of files changed last, on the preferred device."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from timberframe import SessionConfig
from timberframe_conformance.commit import commit_number
from timberframe_conformance.mutants.catalogue import MUTANTS
from timberframe_conformance.mutants.prove import changed_mutants, prove
from timberframe_conformance.options import Options, in_share
from timberframe_conformance.target import Target, open_target
from timberframe_core.runtime.devices import devices_for

pytestmark = pytest.mark.slow

MOST_CHANGED = 12
SHARES = 16


def chosen_mutants() -> list[str]:
    """Returns the share of the commit, and mutants of files that the last commit changed; isolated ones last."""
    share = commit_number(Path(__file__).parent) % SHARES, SHARES
    chosen = [n for n in MUTANTS if in_share(n, share)]
    command = ["git", "diff", "--name-only", "HEAD~1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    chosen += changed_mutants(done.stdout.split())[:MOST_CHANGED]
    return sorted(set(chosen), key=lambda n: (MUTANTS[n].isolate, n))


@pytest.fixture(scope="module")
def best() -> Target:
    devices = [d for d in devices_for(SessionConfig()) if d.type != "REFERENCE"]
    if not devices:
        pytest.skip("no device plugin is installed")
    return open_target(Options(devices[0].type.lower()))


@pytest.mark.parametrize("name", chosen_mutants())
def test_mutant_of_the_commit_is_caught(best: Target, name: str) -> None:
    proof = prove(best, MUTANTS[name], Options(best.name))
    if proof.skipped:
        pytest.skip(proof.skipped)
    assert proof.ok, proof.problems
