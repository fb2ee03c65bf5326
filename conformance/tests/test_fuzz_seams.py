"""Programs with host ops, queues, tables, random streams and kept weights, and the oracles that are about them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance.fuzz.build import build
from timberframe_conformance.fuzz.draw import draw_program
from timberframe_conformance.fuzz.findings import Finding
from timberframe_conformance.fuzz.judge import judge
from timberframe_conformance.fuzz.pool import Pool
from timberframe_conformance.fuzz.program import Program, Step, from_json, to_json
from timberframe_conformance.mutants.activate import active
from timberframe_conformance.target import Target
from timberframe_core.errors import InternalError
from timberframe_core.runtime.session import BaseSession

SEAMS = ("host", "queue", "table", "random")
F = np.float32


def feed(value: Any) -> Step:
    array = np.asarray(value, F) if np.asarray(value).dtype.kind == "f" else np.asarray(value, np.int64)
    return Step("feed", value=array, known=array.shape)


X = feed([1.0, 2.5, -3.0])
TABLE = {"keys": np.array([1, 4], np.int64), "values": np.array([0.5, 1.5], F), "default": -1.0}
STREAM = Step("random", "RandomUniform", attrs={"shape": (3,), "dtype": tf.float32, "seed": 3})
DOUBLE = Step("op", "AddV2", ((0, 0), (0, 0)))

PROGRAMS = {
    "host": Program((X, DOUBLE, Step("host", "twice", ((1, 0),), {"shaped": True})), ((2, 0),)),
    "swap": Program((X, DOUBLE, Step("host", "swap", ((0, 0), (1, 0)), {"shaped": False})), ((2, 0), (2, 1))),
    "host of a variable": Program(
        (Step("variable", value=X.value), Step("host", "twice", ((0, 0),), {"shaped": True})), ((1, 0),)
    ),
    "queue": Program(
        (X, DOUBLE, Step("queue", "FIFOQueue", ((0, 0), (1, 0)), {"shape": (3,), "shaped": False, "many": False})),
        ((2, 1), (2, 0)),
    ),
    "rows": Program(
        (X, DOUBLE, Step("queue", "FIFOQueue", ((0, 0), (1, 0)), {"shape": (3,), "shaped": True, "many": True})),
        ((2, 0),),
    ),
    "table": Program((feed([1, 2, 4]), Step("table", inputs=((0, 0),), attrs=TABLE)), ((1, 0),)),
    "random": Program((X, STREAM, Step("op", "AddV2", ((0, 0), (1, 0)))), ((2, 0), (1, 0))),
    "variable": Program(
        (
            feed([[1.0, 2.0]]),
            Step("variable", value=np.eye(2, dtype=F)),
            Step("op", "MatMul", ((0, 0), (1, 0)), device="device"),
        ),
        ((2, 0),),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_correct_framework_passes(target: Target, name: str) -> None:
    verdict = judge(PROGRAMS[name], target)
    assert verdict.failure is None
    assert not verdict.invalid


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_compared_with_the_truth(target: Target, name: str) -> None:
    assert judge(PROGRAMS[name], target, oracles=["truth"]).compared["truth"] == len(PROGRAMS[name].outputs)


@pytest.mark.parametrize(
    ("mutant", "program", "oracle"),
    [
        ("stale-host-copy", "host of a variable", "versions"),
        ("one-staging-buffer", "swap", "truth"),
        ("queue-last-first", "queue", "truth"),
        ("queue-shares-memory", "rows", "truth"),
        ("default-is-zero", "table", "truth"),
        ("stream-outlives-session", "random", "streams"),
    ],
)
def test_a_mutant_of_a_seam_is_noticed(target: Target, mutant: str, program: str, oracle: str) -> None:
    with active(target, mutant):
        failure = judge(PROGRAMS[program], target, oracles=[oracle]).failure
    assert failure is not None
    assert failure[0] in (oracle, "run")


def test_streams_notice_runs_that_draw_the_same_numbers_again(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    run = BaseSession.run

    def stands_still(self: Any, *given: Any, **rest: Any) -> Any:
        before = self.read_positions()
        found = run(self, *given, **rest)
        self.set_positions(before)
        return found

    monkeypatch.setattr(BaseSession, "run", stands_still)
    failure = judge(PROGRAMS["random"], target, oracles=["streams"]).failure
    assert failure is not None
    assert failure[0] == "streams"


def test_versions_notice_an_error_that_the_values_do_not_explain(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, updated = BaseSession.run, []

    def fails_later(self: Any, fetches: Any, feeds: Any = None, **rest: Any) -> Any:
        if self in updated:
            raise InternalError("MatMul 'MatMul': the device lost its memory", "MatMul")
        updated.extend([self] if feeds and all(isinstance(f, tf.Operation) for f in fetches) else [])
        return run(self, fetches, feeds, **rest)

    monkeypatch.setattr(BaseSession, "run", fails_later)
    failure = judge(PROGRAMS["variable"], target, oracles=["versions"]).failure
    assert failure is not None
    assert "the device lost its memory" in failure[1]


@pytest.mark.slow
def test_each_kind_of_step_is_drawn(target: Target) -> None:
    pool = Pool(target, ops=("MatMul", "AddV2"))
    drawn = [draw_program(pool, 5, n) for n in range(50)]
    assert set(SEAMS) <= {s.kind for p in drawn for s in p.all_steps()}


@pytest.mark.slow
def test_weights_are_drawn_as_constants_and_as_variables(target: Target) -> None:
    pool = Pool(target, ops=("MatMul", "AddV2"))
    found = set()
    for n in range(40):
        program = draw_program(pool, 5, n)
        found |= {program.steps[r[0]].kind for s in program.steps if s.op in pool.products for r in s.refs()[1:]}
    assert {"const", "variable"} <= found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_survives_json(name: str) -> None:
    assert to_json(from_json(to_json(PROGRAMS[name]))) == to_json(PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_builds_the_same_graph(target: Target, name: str) -> None:
    script = Finding(PROGRAMS[name], "again", "", "reference").script(target.spec)
    with tf.Graph().as_default() as graph:
        exec(compile(script.split("with tf.Session(")[0].split("sys.exit(main(")[0], "script", "exec"), {})
        names = [op.type for op in graph.get_operations()]
    wanted = [op.type for op in build(PROGRAMS[name], target.spec).graph.get_operations()]
    assert [n for n in names if n != "Const"] == [n for n in wanted if n != "Const"]
