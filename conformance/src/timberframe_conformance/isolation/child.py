"""One case in a process of its own: ``python -m timberframe_conformance.isolation.child OPTIONS`` and its caller."""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import subprocess
import sys

from timberframe_conformance.case import Case, Result
from timberframe_conformance.options import Options

MARK = "conformance-result "
_TIMED_OUT = "Timeout ("
"""How faulthandler's trace of a process begins that its watchdog ends."""
_START_SECONDS = 20
"""How long such a process may take until its case begins, and to end."""


def run_in_child(case: Case, options: Options) -> Result:
    """Runs a case in a new process; a crash or timeout is its verdict."""
    command = [sys.executable, "-m", "timberframe_conformance.isolation.child", options.to_json(), case.id]
    result, limit = Result.of(case, "crash"), case.time_limits * options.timeout
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit + _START_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return _timed_out(result, limit)
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return Result(**json.loads(line.removeprefix(MARK)))
    if _TIMED_OUT in done.stderr:
        return _timed_out(result, limit)
    result.message = f"the process of this case ended with status {done.returncode}: {last_line(done.stderr)}"
    return result


def last_line(text: str) -> str:
    """Returns the last line that is not blank, "" if there is none."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _timed_out(result: Result, limit: float) -> Result:
    result.verdict, result.message = "timeout", f"did not end within {limit:g} s, in a process of its own"
    return result


def main(options_text: str, case_id: str) -> None:
    """Runs the case and prints its result as a line of JSON."""
    from timberframe_conformance.collect import find_case
    from timberframe_conformance.commands import open_device
    from timberframe_conformance.judge import judge_case

    options = Options.from_json(options_text)
    target = open_device(options)
    case = find_case(target, case_id, options)
    faulthandler.dump_traceback_later(case.time_limits * options.timeout, exit=True)
    result = judge_case(case, target)
    faulthandler.cancel_dump_traceback_later()
    print(MARK + json.dumps(dataclasses.asdict(result)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
