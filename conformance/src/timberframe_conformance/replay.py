"""Runs one case by its id, for the scripts that `conformance repro` prints."""

from __future__ import annotations

from timberframe_conformance.collect import find_case
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.target import open_target


def replay(case_id: str, device: str) -> None:
    """Runs the case in this process and prints its verdict; ends the program with status 1 when it failed."""
    options = Options(device)
    target = open_target(options)
    result = judge_case(find_case(target, case_id, options), target)
    print(f"{result.verdict}: {result.message or case_id}")
    if result.verdict == "fail":
        raise SystemExit(1)
