"""Known bugs of a provider are found, and what is wrong is plain from the message.

Each takes some seconds: the commit chooses a share, TIMBERFRAME_ALL_MUTANTS=1 has them all tried.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from mutants import MUTANTS, Mutant, altered

from timberframe_conformance.commit import commit_number
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import Target, open_target
from timberframe_core.ops.definition import registry
from timberframe_onnxruntime import device

MOST_CASES = 60
SHARES = 5
CHOSEN = (
    MUTANTS
    if os.environ.get("TIMBERFRAME_ALL_MUTANTS")
    else MUTANTS[commit_number(Path(__file__).parent) % SHARES :: SHARES]
)


def failures(target: Target, op: str) -> list[Any]:
    """Returns the first failures of an op in float32."""
    cases = [c for c in SUITES["forward"](target, [registry.get(op)]) if "float32" in dict(c.types).values()]
    found = []
    for case in cases[:MOST_CASES]:
        result = judge_case(case, target)
        if result.verdict == "fail" and "ReorderOutput" not in result.message:
            found.append(result)
            if len(found) == 8:
                break
    return found


@pytest.mark.slow
@pytest.mark.parametrize("mutant", CHOSEN, ids=lambda m: m.name)
def test_a_known_bug_is_found_and_its_cause_is_plain(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    own = device.open_session
    monkeypatch.setattr(device, "open_session", lambda model, proto, *rest: own(model, altered(mutant, proto), *rest))
    target = open_target(Options("ort:CPUExecutionProvider", settings=(("optimization", "none"), ("run", mutant.name))))
    found = failures(target, mutant.op)
    assert found
    assert [r.message for r in found if re.search(mutant.says, r.message)], [r.message for r in found]
