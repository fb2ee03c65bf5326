"""What a device is asked while cases are collected: a question that hangs or crashes costs only the kernel it is about.

Each process writes down what it asks, and ends when the answer takes too long. Whoever outlives it learns so which
question that was, and processes that are started later do not ask it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from timberframe_conformance.isolation.journal import HANGS_BEFORE_GIVING_UP, Journal, open_entry, read_trace
from timberframe_conformance.isolation.loading import loading_journal

MOST_UNANSWERED = 3 * HANGS_BEFORE_GIVING_UP
"""After this many questions without an answer a run is given up: each costs a time limit."""

_UNANSWERED = "TIMBERFRAME_CONFORMANCE_UNANSWERED"
_PREFIX = "supports "
_journal: list[Journal] = []
"""The journal of this process while it is watched."""
_known: dict[str, Mapping[str, str]] = {}
"""What the variable's text says, for the latest text."""


class Question(NamedTuple):
    """A question that ended the process which asked it, and how. key: the op, and its dtypes after a space."""

    key: str
    reason: str


def question_key(op: str, dtypes: Sequence[str]) -> str:
    """Returns how journals and reports name the question whether a device takes an op in these dtypes."""
    return f"{op} {','.join(dtypes)}".rstrip()


def watch_questions(folder: Path, process: str, timeout: float) -> None:
    """Makes this process write into the folder what it asks, and end when an answer takes
    longer than `timeout` seconds.

    process: the name under which it watches its loading, too.
    """
    _journal[:] = [Journal(folder, loading_journal(process), timeout)]


def questions_over() -> None:
    """From now on what is asked has the time limit of the case that asks."""
    _journal.clear()


@contextmanager
def asked(key: str) -> Iterator[None]:
    """Notes that a question is asked within the block."""
    if not _journal:
        yield
        return
    journal = _journal[0]
    journal.begin(_PREFIX + key)
    try:
        yield
    finally:
        journal.end()


def find_question(folder: Path, process: str) -> Question | None:
    """Returns the question in which a process ended; None where it ran other code."""
    name = loading_journal(process)
    entry = open_entry(folder / f"{name}.journal")
    if entry is None or not entry.startswith(_PREFIX):
        return None
    death = read_trace(folder / f"{name}.trace")
    if death.verdict == "timeout":
        words = f"did not answer within {death.reason}"
    else:
        words = "ended the process" + (f": {death.reason}" if death.reason else "")
    return Question(entry.removeprefix(_PREFIX), words + (f", at {death.innermost}" if death.innermost else ""))


def leave_unasked(question: Question) -> bool:
    """Makes processes that are started from now on not ask it; False where too many had no answer already."""
    found = {**unanswered(), question.key: question.reason}
    if len(found) > MOST_UNANSWERED:
        return question.key in unanswered()
    os.environ[_UNANSWERED] = json.dumps(found)
    return True


def unanswered() -> Mapping[str, str]:
    """Returns the questions that had no answer, with the reasons."""
    text = os.environ.get(_UNANSWERED, "{}")
    if text not in _known:
        _known.clear()
        _known[text] = json.loads(text)
    return _known[text]


def why_unasked(op: str, key: str) -> str | None:
    """Returns why this process does not ask a question about an op; None if it may."""
    found = unanswered()
    if not found:
        return None
    if key in found:
        return f"supports of the device {found[key]}"
    of_op = [reason for other, reason in found.items() if other.split(" ")[0] == op]
    if len(of_op) < HANGS_BEFORE_GIVING_UP:
        return None
    return f"supports of the device is not asked again about {op} after {len(of_op)} questions: it {of_op[0]}"
