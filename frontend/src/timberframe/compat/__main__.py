"""`python -m timberframe.compat`: `run PROGRAM [ARGUMENTS]`, `run -m MODULE [ARGUMENTS]`, and `check PATH ...`."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from timberframe.compat.checking import check_files
from timberframe.compat.programs import run
from timberframe_core.errors import OpError


def _check(paths: Sequence[str]) -> int:
    """Prints what is missing, a line each; returns 1 where anything is."""
    lines = check_files(paths)
    print("\n".join(lines) or "nothing is missing")
    return min(len(lines), 1)


def _run(program: str, arguments: Sequence[str], module: bool) -> int:
    """Runs a program; 1 with the traceback of its error, as Python shows it, where that ends it."""
    try:
        run(program, arguments, module)
    except Exception as e:
        frames = _own_frames(e.__traceback__)
        sys.excepthook(type(e), e.with_traceback(frames), frames)
        return 1
    return 0


def _own_frames(frames: TracebackType | None) -> TracebackType | None:
    """Returns those of the program, without the ones that start it."""
    while frames is not None and _starts(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return frames


def _starts(file: str) -> bool:
    """Returns whether the code that starts programs is in this file."""
    return file in ("<frozen runpy>", runpy.__file__) or Path(file).parent == Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Carries out the command line and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m timberframe.compat", description="programs written for TensorFlow 1"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run a program, its imports of tensorflow answered by timberframe")
    running.add_argument("-m", dest="module", action="store_true", help="the program is the name of a module")
    running.add_argument("program")
    running.add_argument("arguments", nargs=argparse.REMAINDER)
    checking = commands.add_parser("check", help="list what programs use that is missing; runs nothing")
    checking.add_argument("programs", nargs="+", help="programs, notebooks, and folders of these")
    given = parser.parse_args(arguments)
    if given.command == "run":
        return _run(given.program, given.arguments, given.module)
    try:
        return _check(given.programs)
    except (OpError, OSError) as e:
        print(f"timberframe.compat: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
