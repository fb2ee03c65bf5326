"""A process that uses one file after another: ``python -m timberframe_conformance.hostile.child FOLDER NAME LIMITS``.

It reads a line of JSON for each file (a case id, and a folder where the file is stored) and writes one with the
verdict. Its memory is limited; the journal's watchdog ends it when a file takes too long.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

from timberframe_conformance.hostile.case import HostileCase
from timberframe_conformance.hostile.kinds import PROCESS, Files, Limits
from timberframe_conformance.isolation.journal import Journal

MARK = "hostile-verdict "


def main(directory: str, worker: str, limits_text: str, prepare: Callable[[], None] = lambda: None) -> None:
    """Serves until its input ends. prepare: runs first; with it tests put defects into the library."""
    from timberframe_conformance.hostile.verdict import judge_case
    from timberframe_core import logging

    limits = Limits(**json.loads(limits_text))
    journal = Journal(Path(directory), worker, limits.seconds)
    logging.set_verbosity(logging.FATAL)
    prepare()
    _warm_up(limits)
    _limit_memory(PROCESS * limits.memory)
    for line in sys.stdin:
        case_id, name, folder = json.loads(line)
        files = stored_files(Path(folder)) if folder else HostileCase.parse(case_id).files()
        journal.begin(case_id)
        verdict = judge_case(case_id, name, files, limits)
        journal.end()
        print(MARK + json.dumps(dataclasses.asdict(verdict)), flush=True)


def stored_files(folder: Path) -> Files:
    """Returns the files below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _warm_up(limits: Limits) -> None:
    """Starts what takes address space once: threads and libraries."""
    import numpy as np

    import timberframe as tf
    from timberframe_conformance.hostile.uses import session_config
    from timberframe_core.errors import OpError

    with (
        contextlib.suppress(OpError),  # a device without a kernel of MatMul
        tf.Graph().as_default(),
        tf.Session(config=session_config(limits)) as session,
    ):
        session.run(tf.matmul(np.ones((300, 300), np.float32), np.ones((300, 300), np.float32)))


def _limit_memory(further: int) -> None:
    """Limits the process to this many further bytes of address space; does nothing where the system cannot."""
    try:
        import resource

        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + further, now + further))
    except (ImportError, OSError, ValueError):
        return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])
