"""Runs conformance cases of small shapes on oclgrind, which sees accesses out of bounds and races of work-items.

    python plugins/opencl/tests/oclgrind.py                 every op of the core level
    python plugins/opencl/tests/oclgrind.py --share 3/16    the ops of one share

The status is 1 when a case fails or oclgrind reports anything, 2 when oclgrind is not installed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

LARGEST = 40
"""Dimensions above it are left out: the simulator takes a millisecond for a few work-items."""
CASES = 2
"""Cases of one op in the same dtypes."""
SIMULATOR = ("oclgrind", "--data-races", "--max-errors", "20", "--build-options", "-cl-opt-disable")
"""The optimiser would drop accesses, and call functions that oclgrind does not have (llvm.abs)."""


def small_cases(identifiers: list[str]) -> list[str]:
    """Returns the first few cases of each op and set of dtypes whose dimensions are small; the
    last few, for other attrs.
    """
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for identifier in identifiers:
        _, op, dtypes, detail = identifier.split("/", 3)
        numbers = [int(n) for n in re.findall(r"\d+", detail.partition("#")[0])]
        if max(numbers, default=0) <= LARGEST:
            found[op, dtypes].append(identifier)
    return [c for cases in found.values() for c in dict.fromkeys([*cases[: CASES - 1], *cases[-1:]])]


def run(level: str, share: str, jobs: int) -> int:
    """Status of the run: 0 when all cases pass and oclgrind has nothing to say."""
    from timberframe_conformance.options import Options

    selection = ["--device=opencl", f"--level={level}", "--suite=forward", f"--share={share}"]
    command = [sys.executable, "-m", "timberframe_conformance.cli"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {k: v for k, v in os.environ.items() if k != "OCL_ICD_VENDORS"}
        environment["TIMBERFRAME_CACHE"] = folder  # programs that were built without these options are in the usual one
        listed = subprocess.run(
            [SIMULATOR[0], *command, "list", *selection], env=environment, capture_output=True, text=True, check=True
        )
        wanted = [c for c in small_cases(listed.stdout.split()) if not c.endswith("/no-kernel")]
        print(f"{len(wanted)} cases", flush=True)
        logs, children = [Path(folder) / f"{k}.log" for k in range(jobs)], []
        for k, log in enumerate(logs):
            given = log.with_suffix(".json")
            given.write_text(Options("opencl", level=level, suites=("forward",), ids=tuple(wanted[k::jobs])).to_json())
            script = [*SIMULATOR, "--log", str(log), sys.executable, __file__, "--options", str(given)]
            children.append(subprocess.Popen(script, env=environment))
        failed = sum(child.wait() for child in children) > 0  # waits for all children
        output = "".join(log.read_text() for log in logs if log.exists())
    print(output[-20_000:] or "oclgrind reports nothing")
    return 1 if output.strip() or failed else 0


def run_here(path: Path) -> int:
    """Runs the cases in this process, where oclgrind has taken the driver's place."""
    from rich.console import Console

    from timberframe_conformance.options import Options
    from timberframe_conformance.reports.terminal import summary
    from timberframe_conformance.runner import run as run_cases
    from timberframe_conformance.target import open_target

    options = Options.from_json(path.read_text())
    result = run_cases(open_target(options), options, jobs=0)
    summary(Console(), result)
    return 1 if result.failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", default="breadth")
    parser.add_argument("--share", default="0/1", metavar="K/N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--options", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.options is not None:
        return run_here(given.options)
    if shutil.which("oclgrind") is None:
        print("oclgrind is not installed; Debian's package of that name has it")
        return 2
    return run(given.level, given.share, given.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
