"""The verdict on one file."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass

from timberframe_conformance.hostile.case import use
from timberframe_conformance.hostile.kinds import Limits

PASS, RAW, WRONG, CRASH, TIMEOUT = "pass", "raw exception", "wrong", "crash", "timeout"
VERDICTS = (PASS, RAW, WRONG, CRASH, TIMEOUT)


@dataclass
class Verdict:
    """location: file and line where an exception was raised; failures of equal verdict, type and location are the
    same."""

    id: str
    format: str
    verdict: str = PASS
    kind: str = ""
    location: str = ""
    message: str = ""

    @property
    def failed(self) -> bool:
        return self.verdict != PASS

    @property
    def signature(self) -> tuple[str, str, str]:
        """Equal for failures of the same cause."""
        return self.verdict, self.kind, self.location


def judge_case(case_id: str, name: str, files: Mapping[str, bytes], limits: Limits) -> Verdict:
    """Uses the files in this process."""
    from timberframe_conformance.hostile.attempts import WrongUseError

    result = Verdict(case_id, name)
    try:
        use(name, files, limits)
    except Exception as e:
        cause: BaseException = e
        while cause.__cause__ is not None:
            cause = cause.__cause__
        result.verdict = WRONG if isinstance(cause, WrongUseError) else RAW
        result.kind, result.message = type(cause).__name__, str(cause)[:500]
        result.location = _location(cause)
    return result


def _location(error: BaseException) -> str:
    """Returns the innermost line of Timberframe's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f"{os.sep}timberframe" in f.filename] or list(frames)
    last = ours[-1]
    _, found, inside = last.filename.rpartition(f"{os.sep}timberframe")
    return f"{found[1:]}{inside}:{last.lineno}" if found else f"{last.filename}:{last.lineno}"
