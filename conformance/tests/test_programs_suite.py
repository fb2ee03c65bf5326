"""The suite `programs`: what its cases are about."""

from __future__ import annotations

from typing import Any

from timberframe_conformance.collect import collect
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.suites import programs
from timberframe_conformance.target import Target, needs_kernel

OF_VARIABLES = {"VarHandleOp", "AssignVariableOp", "ReadVariableOp", "VarIsInitializedOp"}


def test_cases_say_which_ops_their_graphs_have(target: Target, monkeypatch: Any) -> None:
    session, found = target.session, set[str]()

    def watched(graph: Any, **config: Any) -> Any:
        found.update(op.type for op in graph.get_operations() if needs_kernel(op.op_def))
        return session(graph, **config)

    monkeypatch.setattr(target, "session", watched)
    for case in programs.collect(target, ()):
        found.clear()
        assert judge_case(case, target).verdict == "pass"
        assert set(case.of_graph) == found - OF_VARIABLES, case.id


def test_an_op_chooses_the_cases_whose_graphs_have_it(target: Target) -> None:
    cases = [c.id for c in collect(target, Options(target.name, ops=("MaxPool",), suites=("programs",)))]
    assert cases == ["programs/Graph/-/batches-of-images", "programs/Graph/-/windows"]


def test_an_op_that_graphs_alone_have_is_not_reported_as_untried(command: Any) -> None:
    status, output, _ = command("run", "--device=cpu", "--op=MaxPool,Tanh", "--suite=programs", "--jobs=0")
    assert status == 0
    assert "2 cases" in output
    assert "no case was selected of Tanh" in output
