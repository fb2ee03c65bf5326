"""One case in a process of its own whose device records its programs, for a script without Timberframe.

``python -m timberframe_conformance.isolation.recording OPTIONS CASE FOLDER``, and its caller.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import Case
from timberframe_conformance.cases import values
from timberframe_conformance.isolation.child import last_line
from timberframe_conformance.options import Options
from timberframe_conformance.tolerance import compare
from timberframe_conformance.tolerance.rounding import round_to
from timberframe_sdk import Judged
from timberframe_sdk.recording import note_draw

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

_JUDGED, _MESSAGE = "judged.npz", "message.txt"
_START_SECONDS = 60
"""Seconds that such a process may take until its case begins, and to end."""


def vendor_script(target: Target, case: Case, options: Options) -> str | None:
    """Returns a script of a case in the words of the device's vendor; None where it writes none, or ran nothing.

    The case runs in a process of its own, which it may end, or keep from ending.
    """
    with tempfile.TemporaryDirectory() as folder:
        if not target.device.record(folder):
            return None
        command = [
            sys.executable, "-m", "timberframe_conformance.isolation.recording", options.to_json(), case.id, folder,
        ]  # fmt: skip
        limit = case.time_limits * options.timeout
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit + _START_SECONDS, check=False)
            ended = f"the process ends with status {done.returncode}: {last_line(done.stderr)}"
        except subprocess.TimeoutExpired:
            ended = f"did not end within {limit:g} s"
        judged, message = _read(Path(folder))
        return target.device.script(folder, f"{case.id}\n\n{message or ended}", judged) or None


def _read(folder: Path) -> tuple[list[Judged], str]:
    """Returns what a process has judged first, and the verdict; no message where it has ended before."""
    file = folder / _MESSAGE
    if not file.exists():
        return [], ""
    judged = []
    if (folder / _JUDGED).exists():
        with np.load(folder / _JUDGED) as saved:
            for i in range(len([n for n in saved.files if n.startswith("got")])):
                allowed = saved[f"allowed{i}"] if f"allowed{i}" in saved.files else None
                judged.append(Judged(saved[f"got{i}"], saved[f"expected{i}"], allowed))
    return judged, file.read_text()


@contextmanager
def watched() -> Iterator[list[list[Judged]]]:
    """Gives a list to which, within the block, what is compared with the truth is added."""
    found: list[list[Judged]] = []

    def note(
        got: Sequence[Any], expected: Sequence[np.ndarray], allowed: Sequence[np.ndarray | None],
        dtypes: Sequence[np.dtype],
    ) -> None:  # fmt: skip
        outputs = zip(got, expected, allowed, dtypes, strict=True)
        found.append([_judged(np.asarray(g), e, a, t) for g, e, a, t in outputs])

    compare.watchers.append(note)
    try:
        yield found
    finally:
        compare.watchers.remove(note)


def _judged(got: np.ndarray, expected: np.ndarray, allowed: np.ndarray | None, dtype: np.dtype) -> Judged:
    if allowed is None:
        return Judged(got, round_to(expected, dtype))
    return Judged(got, expected, np.broadcast_to(allowed, expected.shape))


def main(options_text: str, case_id: str, folder: str) -> None:
    """Runs the case, and writes beside its programs what was judged and the verdict."""
    from timberframe_conformance.collect import find_case
    from timberframe_conformance.commands import open_device
    from timberframe_conformance.judge import judge_case

    options = Options.from_json(options_text)
    target = open_device(options)
    case = find_case(target, case_id, options)
    target.device.record(folder)
    values.watchers.append(partial(note_draw, Path(folder)))
    with watched() as found:
        result = judge_case(case, target)
    if found:
        arrays: dict[str, Any] = {}
        for i, judged in enumerate(found[0]):
            arrays |= {f"got{i}": judged.got, f"expected{i}": judged.expected}
            arrays |= {} if judged.allowed is None else {f"allowed{i}": judged.allowed}
        np.savez(Path(folder) / _JUDGED, **arrays)
    (Path(folder) / _MESSAGE).write_text(result.message or f"{result.verdict}: it is right")


if __name__ == "__main__":
    main(*sys.argv[1:])
