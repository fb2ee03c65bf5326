"""Hostile files: the share of the commit is used; defects put into the library are found, stored and tried first."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from timberframe_conformance.commit import commit_number
from timberframe_conformance.hostile import case, checkpoints, findings, graphs
from timberframe_conformance.hostile.formats import FORMATS
from timberframe_conformance.hostile.kinds import Limits
from timberframe_conformance.hostile.run import Task, run_files, tasks_of
from timberframe_conformance.hostile.verdict import Verdict
from timberframe_core.graphdef.messages import GraphDef

pytestmark = pytest.mark.slow

UNCHECKED = "from timberframe_core.graph import signatures; signatures._check = lambda *a: None"
UNCHECKED_ENTRIES = (
    "from timberframe.saving.tensorflow_bundle import TensorFlowBundle as B; B._check = lambda *a: None; "
    "B._bytes = lambda self, name, entry: self._shards[entry.shard_id][entry.offset : entry.offset + entry.size]"
)
SHARE = 60  # files for each run of the tests
LIMITS = Limits(seconds=60)


def defect(lines: str) -> tuple[str, str]:
    """Returns a child process that runs these lines, which put a defect into the library, before it begins."""
    start = "from timberframe_conformance.hostile import child"
    return "-c", f"import sys\n{start}\ndef put():\n {lines}\nchild.main(*sys.argv[1:], prepare=put)"


@pytest.fixture
def forged(tmp_path: Path) -> Task:
    """A graph with a loop whose body has a result too few, and other nodes."""
    message = GraphDef.FromString(graphs.named_graph("loop"))
    body = next(f for f in message.library.function if "body" in f.signature.name)
    body.signature.output_arg.remove(body.signature.output_arg[-1])
    for i in range(6):
        message.node.add(name=f"other{i}", op="NoOp")
    (tmp_path / "forged").mkdir()
    (tmp_path / "forged" / "graph.pb").write_bytes(message.SerializeToString())
    return Task("graphdef/0/0", "graphdef", str(tmp_path / "forged"))


def failures(name: str, count: int, program: tuple[str, str], limits: Limits = LIMITS) -> list[Verdict]:
    found = run_files(tasks_of([name], 1, count), limits, program=program)
    assert len(found) == count
    return [v for v in found if v.failed]


def test_share_of_the_commit_gives_right_answers_or_errors() -> None:
    found = run_files(tasks_of(list(FORMATS), commit_number(Path(__file__).parent) % 10**6, SHARE), LIMITS)
    assert [v for v in found if v.failed] == []
    assert len(found) == SHARE


def test_files_that_a_graph_writes_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert failures("safetensors", 1, defect("open('model.index', 'w').close()")) == []
    assert list(tmp_path.iterdir()) == []


def complaint(name: str, files: Mapping[str, bytes]) -> Exception | None:
    """Returns what using the files raises: an error, or that an answer is wrong."""
    try:
        case.use(name, files, LIMITS)
    except Exception as e:
        return e
    return None


@pytest.mark.parametrize("name", FORMATS)
def test_undamaged_files_give_right_answers(name: str) -> None:
    assert [complaint(name, FORMATS[name].make(random.Random(seed))) for seed in range(3)] == [None] * 3


def test_file_of_an_id_is_the_same_in_every_process() -> None:
    """In two processes that have the same ops, which those of other tests are not among."""
    ids = [f"{name}/3/{i}" for name in FORMATS for i in range(4)]
    script = (
        "import hashlib, sys; from timberframe_conformance.hostile.case import HostileCase\n"
        "for i in sys.argv[1:]: print(hashlib.sha1(repr(HostileCase.parse(i).files()).encode()).hexdigest())"
    )

    def files(hash_seed: str) -> list[str]:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", script, *ids]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        return done.stdout.split()

    assert len(first := files("7")) == len(ids)
    assert first == files("8")


# Defects


def test_functions_that_are_not_checked_are_found(forged: Task) -> None:
    (verdict,) = run_files([forged], LIMITS, program=defect(UNCHECKED))
    assert verdict.verdict == "raw exception"


def test_index_that_is_not_checked_is_found() -> None:
    found = failures("checkpoint", 40, defect(UNCHECKED_ENTRIES))
    assert "raw exception" in {v.verdict for v in found}


def test_checksum_that_is_not_compared_is_found(tmp_path: Path) -> None:
    files = checkpoints.bundle()
    files[checkpoints.DATA] = bytes([files[checkpoints.DATA][0] ^ 1]) + files[checkpoints.DATA][1:]
    findings.write(tmp_path, files)
    lines = "from timberframe.saving import tensorflow_bundle as b; b.TensorFlowBundle._check = lambda *a: None"
    task = Task("checkpoint/0/0", "checkpoint", str(tmp_path))
    assert [v.verdict for v in run_files([task], LIMITS, program=defect(lines))] == ["wrong"]
    assert [v.verdict for v in run_files([task], LIMITS)] == ["pass"]


@pytest.mark.parametrize(
    ("what", "verdict"),
    [("np.ones(1 << 32)", "raw exception"), ("os._exit(3)", "crash"), ("time.sleep(99)", "timeout")],
    ids=["memory", "crash", "hang"],
)
def test_what_a_file_does_to_its_process_is_found_and_the_next_one_tried(what: str, verdict: str) -> None:
    lines = f"import numpy as np, os, time; from timberframe.saving import formats; formats._open = lambda p: {what}"
    found = failures("safetensors", 2, defect(lines), Limits(seconds=3))
    assert [v.verdict for v in found] == [verdict] * 2


# Findings


def test_finding_is_shrunk_stored_and_tried_first(tmp_path: Path, command: Any) -> None:
    program = defect(UNCHECKED_ENTRIES)
    finding = failures("checkpoint", 40, program)[0]
    folder = findings.keep(tmp_path, finding, LIMITS, program)
    (again,) = findings.stored(tmp_path)
    assert again == Task(finding.id, "checkpoint", str(folder / "files"))
    (verdict,) = run_files([again], LIMITS, program=program)
    assert verdict.signature == finding.signature
    status, output, _ = command("hostile", "--count=6", "--jobs=1", "--seed=1", f"--store={tmp_path}")
    assert status == 0
    assert "1 stored files tried first: 1 now pass" in output
    assert list(findings.stored(tmp_path)) == []


def test_graph_of_a_finding_keeps_the_nodes_that_matter(forged: Task) -> None:
    (verdict,) = run_files([forged], LIMITS, program=defect(UNCHECKED))
    files = {"graph.pb": Path(forged.folder, "graph.pb").read_bytes()}
    left = findings.fewer_nodes(files, verdict, LIMITS, defect(UNCHECKED))
    assert "StatelessWhile" in {n.op for n in GraphDef.FromString(left["graph.pb"]).node}
    assert len(GraphDef.FromString(left["graph.pb"]).node) < len(GraphDef.FromString(files["graph.pb"]).node)


def test_unknown_format_is_a_wrong_call(command: Any) -> None:
    status, _, errors = command("hostile", "--format=onnx")
    assert status == 2
    assert "format onnx is not known; formats are graphdef, metagraph" in errors
