"""Files that failed: made smaller where that is cheap, and stored, so that they are tried first next time."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from timberframe_conformance.hostile.case import HostileCase
from timberframe_conformance.hostile.kinds import Files, Limits
from timberframe_conformance.hostile.run import CHILD, Child, Task
from timberframe_conformance.hostile.verdict import Verdict
from timberframe_core.graphdef.messages import GraphDef

NOTE = "finding.json"
_TRIALS = 60  # uses of a file, to find a smaller one


def stored(folder: Path) -> Iterator[Task]:
    """Yields the files of former findings."""
    for note in sorted(folder.glob(f"*/{NOTE}")):
        data = json.loads(note.read_text())
        yield Task(data["id"], data["format"], str(note.parent / "files"))


def keep(folder: Path, verdict: Verdict, limits: Limits, program: Sequence[str] = CHILD) -> Path:
    """Stores a finding, shrunk by a few trials; returns where."""
    target = folder / re.sub(r"[^\w.-]+", "-", verdict.id)
    write(target / "files", smaller(verdict, limits, program))
    (target / NOTE).write_text(json.dumps(asdict(verdict), indent=1))
    return target


def write(folder: Path, files: Files) -> None:
    """Writes files below a folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def smaller(verdict: Verdict, limits: Limits, program: Sequence[str] = CHILD) -> Files:
    """Returns the files with fewer mutations, and of a graph fewer nodes, that fail in the same way."""
    case = HostileCase.parse(verdict.id)
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        child = Child(Path(directory), "smaller", limits, program)
        try:
            for step in case.steps:
                fewer = replace(case, kept=tuple(s for s in case.steps if s != step))
                if child.use(Task(fewer.id, case.format)).signature == verdict.signature:
                    case = fewer
        finally:
            child.close()
    files = case.files()
    return fewer_nodes(files, verdict, limits, program) if case.format == "graphdef" else files


def fewer_nodes(files: Files, verdict: Verdict, limits: Limits, program: Sequence[str] = CHILD) -> Files:
    """Removes runs of nodes from a graph, ever shorter ones, as long as it fails in the same way."""
    (name,) = files
    message = GraphDef()
    try:
        message.ParseFromString(files[name])
    except DecodeError:
        return files
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        child, trial = Child(Path(directory), "fewer", limits, program), Path(directory, "trial")
        try:
            for length, at in _runs(message):
                shorter = GraphDef.FromString(message.SerializeToString())
                del shorter.node[at : at + length]
                write(trial, {name: shorter.SerializeToString()})
                if child.use(Task(verdict.id, verdict.format, str(trial))).signature == verdict.signature:
                    del message.node[at : at + length]
        finally:
            child.close()
    return {name: message.SerializeToString()}


def _runs(message: Any) -> Iterator[tuple[int, int]]:
    """Yields the length and start of runs of nodes to try without, the last ones first, while
    the message gets shorter.
    """
    length, trials = len(message.node) // 2, 0
    while length:
        for at in reversed(range(0, len(message.node), length)):
            trials += 1
            if trials > _TRIALS:
                return
            yield length, at
        length //= 2


def remove_fixed(folder: Path, verdicts: Sequence[Verdict]) -> int:
    """Removes findings that no longer fail; returns how many."""
    good = {v.id for v in verdicts if not v.failed}
    count = 0
    for note in folder.glob(f"*/{NOTE}"):
        if json.loads(note.read_text())["id"] in good:
            shutil.rmtree(note.parent)
            count += 1
    return count
