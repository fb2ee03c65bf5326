"""Known bugs of a plugin, and of a translation, are found, and what is wrong is plain from the message.

Each takes some seconds: the commit chooses a share, TIMBERFRAME_ALL_MUTANTS=1 has them all tried.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="a PJRT device is judged where JAX is: make peers installs it")

from pjrt_mutants import MUTANTS, Mutant  # importable where jax is

from timberframe_conformance.commit import commit_number
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry

PROFILE = str(Path(__file__).parents[1] / "profiles/cpu.toml")
MOST_CASES = 60
SHARES = 4
CHOSEN = (
    MUTANTS
    if os.environ.get("TIMBERFRAME_ALL_MUTANTS")
    else MUTANTS[commit_number(Path(__file__).parent) % SHARES :: SHARES]
)


def failures(target: Target, mutant: Mutant) -> list[Any]:
    """Returns the first failures of an op in float32."""
    cases = [c for c in SUITES[mutant.suite](target, [registry.get(mutant.op)]) if "float32" in dict(c.types).values()]
    found = []
    for case in cases[:MOST_CASES]:
        result = judge_case(case, target)
        if result.verdict == "fail":
            found.append(result)
            if len(found) == 8:
                break
    return found


@pytest.mark.slow
@pytest.mark.parametrize("mutant", CHOSEN, ids=lambda m: m.title)
def test_a_known_bug_is_found_and_its_cause_is_plain(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    target = open_target(Options("pjrt:cpu", profile=PROFILE))
    target.device.close()  # programs of other tests are dropped
    mutant.place(monkeypatch)
    found = failures(target, mutant)
    target.device.close()
    assert found
    assert [r.message for r in found if re.search(mutant.says, r.message)], [r.message for r in found]
