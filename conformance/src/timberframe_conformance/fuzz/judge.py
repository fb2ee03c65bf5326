"""Judges one program by the oracles."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import timberframe_conformance.fuzz.oracles as _oracles  # noqa: F401 - adds the oracles
from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.program import Program
from timberframe_conformance.fuzz.subject import ORACLES as ORACLES
from timberframe_conformance.fuzz.subject import InvalidProgramError, Subject
from timberframe_conformance.tolerance.declared import in_force
from timberframe_core.errors import NoKernelError, OpError

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

BUILD, RUN = "build", "run"
"""In place of an oracle's name: building the graph, and the first run."""


@dataclass
class Verdict:
    """The verdict on a program. failure: (oracle, message), None if it passes. compared: number of results by oracle.

    on_device: nodes that ran on the device under test, by op.
    """

    failure: tuple[str, str] | None = None
    compared: Counter[str] = field(default_factory=Counter)
    invalid: str = ""
    on_device: Counter[str] = field(default_factory=Counter)


def judge(
    program: Program, target: Target, host: Target | None = None, oracles: Sequence[str] | None = None, seed: int = 0
) -> Verdict:
    """Builds and runs a program. oracles: names; all if None. seed: for the oracles' random choices."""
    with in_force(target.profile):
        return _judge(program, target, host, oracles, seed)


def _judge(program: Program, target: Target, host: Target | None, oracles: Sequence[str] | None, seed: int) -> Verdict:
    verdict = Verdict()
    subject = Subject(program, target, host, seed)
    stage = BUILD
    try:
        assert subject.built is not None
        assert subject.expected is not None
        stage = RUN
        verdict.compared[RUN] = len(subject.first)
        for stage in ORACLES if oracles is None else oracles:
            if stage in ORACLES:
                verdict.compared[stage] += ORACLES[stage](subject)
    except InvalidProgramError as e:
        verdict.invalid = str(e)
    except CaseFailedError as e:
        verdict.failure = stage, str(e)
    except NoKernelError as e:
        if subject.may_decline(e.node):
            verdict.invalid = str(e)
        else:
            verdict.failure = stage, f"{type(e).__name__}: {e}"
    except OpError as e:
        verdict.failure = stage, f"{type(e).__name__}: {e}"
    except Exception as e:
        frame = traceback.extract_tb(e.__traceback__)[-1]
        verdict.failure = (
            stage,
            f"{type(e).__name__}: {e} (raised in {frame.name}, {frame.filename.rsplit('/', 1)[-1]})",
        )
    verdict.on_device = subject.on_device
    return verdict
