"""Rewrites that may be left out: they make a run faster, and one that fails must never stop it.

Dense lists, simplification, fusion and loops as kernels are all of this kind: there is a general way that does the same
more slowly. Such a failure is a defect all the same, so it is logged, shown by `Session.explain`, and raised where the
environment variable TIMBERFRAME_STRICT_REWRITES is set, as it is in the tests and in conformance.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from timberframe_core import logging
from timberframe_core.errors import OpError

STRICT_VARIABLE = "TIMBERFRAME_STRICT_REWRITES"

T = TypeVar("T")

_logged: set[str] = set()
_noted: ContextVar[list[str] | None] = ContextVar("timberframe_left_out", default=None)


def attempt(rewrite: str, fast: Callable[[], T], general: Callable[[], T], errors: bool = False) -> T:
    """Returns what `fast` returns; if it fails, what `general` returns, and a report.

    rewrite: a name for the report. errors: whether an OpError of `fast` is a failure too; else it is the user's, and is
    raised. An error of `general` is raised as it is, since then the rewrite is not to blame.
    """
    try:
        return fast()
    except Exception as error:  # whatever it does wrong
        if isinstance(error, OpError) and not errors:
            raise
        made = general()
        report_failure(rewrite, error)
        return made


def report_failure(rewrite: str, error: Exception) -> None:
    """Reports that a rewrite failed and was skipped; raises the error where failures are to be found."""
    if os.environ.get(STRICT_VARIABLE, "0") not in ("", "0"):
        raise error
    text = f"{rewrite} failed and is skipped: {type(error).__name__}: {error}{_location(error)}"
    noted = _noted.get()
    if noted is not None:
        noted.append(text)
    if text not in _logged:
        _logged.add(text)
        logging.warning("%s; results are right, but slower than they could be. This is a defect of a library.", text)
        logging.debug("%s", text, exc_info=error)


@contextmanager
def failures_noted(failures: list[str]) -> Iterator[None]:
    """Adds to a list what is reported inside."""
    token = _noted.set(failures)
    try:
        yield
    finally:
        _noted.reset(token)


def _location(error: Exception) -> str:
    """Returns where the error was raised."""
    at = error.__traceback__
    if at is None:
        return ""
    while at.tb_next is not None:
        at = at.tb_next
    return f"  [{at.tb_frame.f_code.co_filename}:{at.tb_lineno}]"
