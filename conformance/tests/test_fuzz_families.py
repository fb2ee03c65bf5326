"""conformance fuzz: families of programs, by models and by the programs themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timberframe_conformance.fuzz.families import FAMILIES
from timberframe_conformance.fuzz.families.explained import differences, explanation
from timberframe_conformance.fuzz.families.family import Drawer, Family
from timberframe_conformance.fuzz.families.helpers import _linearizable
from timberframe_conformance.fuzz.families.session import FamilySession, Verdict, kind_of
from timberframe_conformance.fuzz.families.shrinking import shrink
from timberframe_conformance.fuzz.families.system import OURS, Run, System

BROKEN = """
if hasattr(tf, 'Session'):
    batch = tf.data.Dataset.batch
    tf.data.Dataset.batch = lambda self, size: batch(self, size + 1)
d = tf.data.Dataset.range(7)
d = d.map(lambda x: x * 3 + 1)
d = d.batch(2)
show('d', elements(d))
"""
"""A program with a bug of the system under test: batches that are too large by one."""


@pytest.mark.parametrize("name", FAMILIES)
def test_equal_seeds_draw_equal_programs(name: str) -> None:
    draw = FAMILIES[name].draw
    assert [draw(Drawer(3, i)) for i in range(5)] == [draw(Drawer(3, i)) for i in range(5)]
    assert draw(Drawer(3, 0)) != draw(Drawer(4, 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_programs_of_a_family_pass(name: str, tmp_path: Path) -> None:
    session = FamilySession(FAMILIES[name], tmp_path)
    outcome = session.run(11, programs=8)
    session.close()
    assert not outcome.failures
    assert outcome.judged


@pytest.mark.slow
def test_wrong_batches_are_found_shrunk_and_stored(tmp_path: Path) -> None:
    family = Family("pipelines", "", lambda d: BROKEN, model=FAMILIES["pipelines"].model)
    session = FamilySession(family, tmp_path)
    reported: list[str] = []
    outcome = session.run(1, programs=1, report=reported.append)
    session.close()
    (script,) = outcome.failures.values()
    text = script.read_text()
    assert "map(" not in text
    assert "d.batch(" in text
    assert "show.check(" in text
    assert reported[0].startswith("FAILED pipelines, program 0: d")


def test_shrinking_leaves_what_fails() -> None:
    source = "a = 1\nb = f(g(2), 3)\nif a:\n    c = 7\nshow('b', b)\n"
    assert shrink(source, lambda s: "g(" in s, 10.0) in ("g(1)", "g(0)", "g(2)", "b = g(1)")


@pytest.mark.parametrize(
    ("got", "expected", "wrong"),
    [
        (np.float32([1.0, np.nan]), np.float32([1.0, np.nan]), False),
        (np.float32([1.0, 2.0]), np.float32([1.0, np.nan]), True),
        (np.float32([np.inf]), np.float32([-np.inf]), True),
        (np.float32([1.0]), np.float64([1.0]), True),
        (np.int64([1, 2]), np.int64([1, 3]), True),
        (np.float32([1.0, 1e-6]), np.float32([1.0, 2e-6]), True),
        (np.complex64([complex(1, -np.inf)]), np.complex64([complex(1 + 1e-7, -np.inf)]), False),
        (np.complex64([complex(1, -np.inf)]), np.complex64([complex(1.1, -np.inf)]), True),
        (np.complex64([complex(1, -np.inf)]), np.complex64([complex(1, np.nan)]), True),
    ],
)
def test_results_are_compared_element_by_element(got: Any, expected: Any, wrong: bool) -> None:
    family = Family("x", "", lambda d: "", elementwise=True, share={"float32": 1e-6})
    assert bool(family.mismatch(got, expected)) == wrong


def test_slopes_that_differences_contradict_fail(tmp_path: Path) -> None:
    source = (
        "@tf.custom_gradient\ndef f(x):\n    return tf.reduce_sum(x * x), lambda dy: dy * x\n"
        "derivatives(tf, show, f, [[1.0, 2.0]], 'tape', second=False)\n"
    )
    session = FamilySession(FAMILIES["tapes"], tmp_path)
    message = session.judge(source).message
    session.close()
    assert "first slope" in message
    assert "differences give" in message


def test_program_that_ends_its_process_is_a_failure(tmp_path: Path) -> None:
    session = FamilySession(FAMILIES["tapes"], tmp_path)
    message = session.judge("import os\nif hasattr(tf, 'Session'):\n    os._exit(3)\n").message
    again = session.judge("show('x', 1)\n").message
    session.close()
    assert "crash: the process ended with status 3" in message
    assert not again


def test_slopes_of_oscillations_within_a_step_are_not_judged(tmp_path: Path) -> None:
    session = FamilySession(FAMILIES["tapes"], tmp_path)
    program = (
        "derivatives(tf, show, lambda x: tf.reduce_sum(1e12 * x + tf.cos(1e12 * x)), [[0.3]], 'tape', second=True)\n"
    )
    message = session.judge(program).message
    session.close()
    assert not message


@pytest.mark.parametrize(
    ("history", "explained"),
    [
        ([(0, 1, "add", 2.0), (2, 3, "read", 7.0)], True),
        ([(0, 3, "add", 2.0), (1, 2, "read", 5.0)], True),
        ([(0, 1, "add", 2.0), (2, 3, "read", 5.0)], False),
        ([(0, 9, "assign", 1.0), (0, 9, "add", 2.0), (10, 11, "read", 1.0)], True),
        ([(0, 9, "assign", 1.0), (0, 9, "add", 2.0), (10, 11, "read", 2.0)], False),
    ],
)
def test_calls_of_threads_need_an_order(history: Any, explained: bool) -> None:
    assert _linearizable(history, 5.0) == explained


def test_known_differences_name_families_and_reasons() -> None:
    for difference in differences():
        assert difference.family in FAMILIES
        assert len(difference.reason) > 40
        assert difference.program or difference.message


AT_EDGES = """x = tf.constant(np.array([{x}, 2.0], np.float64))
y = tf.constant(np.array([3.0, 4.0], np.float64))
with tf.GradientTape() as tape:
    tape.watch([x, y])
    value = {function}
gradients = tape.gradient(value, [x, y])
"""
DIFFERS = "1 of 2 elements differ; at 0: np.float64({}), the other gives np.float64({})"


@pytest.mark.parametrize(
    ("function", "x", "message", "known"),
    [
        ("tf.math.erf(x)", "1e+200", f"value: {DIFFERS.format(1.0, 'nan')}", True),
        ("tf.math.erf(x)", "1e+20", f"value: {DIFFERS.format(1.0, 'nan')}", False),
        ("tf.math.erf(x)", "1e+200", f"value: {DIFFERS.format('nan', 1.0)}", False),
        ("tf.math.erf(x)", "1e+200", "raises ValueError: nan", False),
        ("tf.math.ndtri(x)", "1e+200", f"value: {DIFFERS.format(1.0, 'nan')}", False),
        ("tf.math.xlogy(x, y)", "-0.0", f"gradients[0]: {DIFFERS.format(1.09, 0.0)}", True),
        ("tf.math.xlogy(x, y)", "10.0", f"gradients[0]: {DIFFERS.format(1.09, 0.0)}", False),
        ("tf.math.xlogy(x, y)", "0.0", f"gradients[0]: {DIFFERS.format(0.0, 1.09)}", False),
        ("tf.math.xlogy(x, y)", "0.0", f"gradients[1]: {DIFFERS.format(1.09, 0.0)}", False),
        ("tf.math.xlogy(x, y)", "0.0", "raises LookupError: no gradients of Xlogy", False),
        ("tf.reduce_prod(x)", "0.0", f"second[0]: {DIFFERS.format(1.0, 'nan')}", True),
        ("tf.reduce_prod(x)", "5.0", f"second[0]: {DIFFERS.format(1.0, 'nan')}", False),
        ("tf.reduce_prod(x)", "0.0", "raises ValueError: the second operand", False),
        ("tf.math.cumprod(x)", "np.inf", f"second[0]: {DIFFERS.format('nan', '-inf')}", False),
        ("tf.asinh(x)", "1.79e+308", f"second[0]: {DIFFERS.format('-0.0', 'nan')}", True),
        ("tf.asinh(x)", "1.79e+308", f"second[0]: {DIFFERS.format('nan', '-0.0')}", False),
        ("tf.asinh(x)", "1.79e+30", f"second[0]: {DIFFERS.format('-0.0', 'nan')}", False),
        ("tf.tanh(x)", "10.0", f"second[0]: {DIFFERS.format('-1.6489228e-08', '-1.64892285e-08')}", True),
        ("tf.tanh(x)", "10.0", f"second[0]: {DIFFERS.format('-1.64e-08', '-1.65e-08')}", False),
        ("tf.math.top_k(x, 2)[0]", "np.nan", f"value: {DIFFERS.format('nan', '3.0')}", True),
        ("tf.math.top_k(x, 2)[0]", "np.nan", f"value: {DIFFERS.format('3.0', 'nan')}", False),
        ("tf.math.top_k(x, 2)[0]", "1.0", f"value: {DIFFERS.format('nan', '3.0')}", False),
        ("tf.math.cumprod(x)", "1e+308", f"value: {DIFFERS.format('inf', '3.0')}", True),
        ("tf.math.cumprod(x)", "1e+30", f"value: {DIFFERS.format('inf', '3.0')}", False),
        ("tf.nn.selu(x)", "-30.0", f"second[0]: {DIFFERS.format('4.4e-16', '2.2e-16')}", True),
        ("tf.nn.selu(x)", "-30.0", f"second[0]: {DIFFERS.format('4.4e-15', '2.2e-16')}", False),
        ("tf.nn.selu(x)", "-30.0", f"second[0]: {DIFFERS.format('nan', '2.2e-16')}", False),
        ("tf.nn.selu(x)", "-30.0", f"value: {DIFFERS.format('4.4e-16', '2.2e-16')}", False),
        ("tf.nn.relu(x)", "-30.0", f"second[0]: {DIFFERS.format('4.4e-16', '2.2e-16')}", False),
    ],
)
def test_faults_of_tensorflow_explain_nothing_else(function: str, x: str, message: str, known: bool) -> None:
    program = AT_EDGES.format(function=function, x=x)
    assert (explanation("edges", program, message) is not None) == known
    assert explanation("calls", program, message) is None


IN_A_BRANCH = """
@tf.custom_gradient
def c(x):
    return tf.sin(x), lambda dy: dy * tf.cos(x)
def f(x):
    return tf.reduce_sum(tf.cond(tf.reduce_sum(x) > 0.0, lambda: c(x), lambda: x))
derivatives(tf, show, f, [[1.0, 2.0]], '{way}', second={second})
"""
"""A function with a gradient of its own in a branch, which TensorFlow differentiates but for twice in tf.function."""


@pytest.mark.parametrize(("way", "second"), [("function", True), ("function", False), ("tape", True), ("graph", True)])
def test_what_tensorflow_raises_is_known_only_where_it_does(way: str, second: bool) -> None:
    source, raised = IN_A_BRANCH.format(way=way, second=second), "AssertionError: assert t.graph == cond_graph (line 9)"
    assert (explanation("tapes", source, f"only the other raises {raised}") is not None) == (
        way == "function" and second
    )
    assert explanation("tapes", source, f"raises {raised}") is None
    assert explanation("tapes", source, "only the other raises AssertionError: assert x (line 9)") is None


@pytest.mark.parametrize("family", ["optimizers", "pipelines", "tapes"])  # edges take a minute to draw
def test_each_known_difference_is_of_programs_that_are_drawn(family: str) -> None:
    drawn = [FAMILIES[family].draw(Drawer(3, i)) for i in range(600)]
    without = [d.name for d in differences() if d.family == family and not any(re.search(d.program, s) for s in drawn)]
    assert without == []


CAST = "show('y', tf.saturate_cast(tf.constant(np.array([{}], np.{})), tf.{}))\n"


@pytest.mark.parametrize(
    ("cast", "ours", "theirs", "known"),
    [
        (("1", "int64", "int64"), "np.int64(1)", "np.int64(-9223372036854775808)", True),
        (("1", "int64", "int64"), "np.int64(1)", "np.int64(2)", False),
        (("1", "int64", "int32"), "np.int32(1)", "np.int32(0)", False),
        (("1", "int64", "uint64"), "np.uint64(1)", "np.uint64(0)", True),
        (("1", "int64", "float32"), "np.float32(1.0)", "np.float32(-9.223372e+18)", True),
        (("1", "int64", "float32"), "np.float32(1.0)", "np.float32(9.223372e+18)", False),
        (("np.inf", "float16", "float16"), "np.float16(inf)", "np.float16(65500.0)", True),
        (("np.inf", "float16", "float16"), "np.float16(65500.0)", "np.float16(inf)", False),
        (("np.inf", "float32", "float16"), "np.float16(inf)", "np.float16(65500.0)", False),
    ],
)
def test_casts_that_tensorflow_gets_wrong_are_known(cast: Any, ours: str, theirs: str, known: bool) -> None:
    message = f"y: 1 of 1 elements differ; at 0: {ours}, the other gives {theirs}"
    assert (explanation("edges", CAST.format(*cast), message) is not None) == known


SIZE_OF_ONE_PART = "show('y', tf.raw_ops.SplitV(value=tf.constant([1.0]), size_splits=[-1], axis=0, num_split={}))\n"
TOP = "show('y', tf.raw_ops.TopKV2(input=tf.constant([{}, 1.0]), k=tf.constant(1)))\n"


@pytest.mark.parametrize(
    ("program", "message", "known"),
    [
        (TOP.format("np.nan"), "y[0]: np.float32(nan), the other gives np.float32(1.0)", True),
        (TOP.format("2.0"), "y[0]: np.float32(nan), the other gives np.float32(1.0)", False),
        (TOP.format("np.nan"), "only the other raises InternalError: of another kind [Op:TopKV2]", False),
        (
            SIZE_OF_ONE_PART.format(1),
            "only the other raises InvalidArgumentError: If there is only one output, it must have the same size as "
            "the input, but is -1 [Op:SplitV] name: (line 1)",
            True,
        ),
        (SIZE_OF_ONE_PART.format(1), "raises InvalidArgumentError: If there is only one output", False),
    ],
)
def test_what_is_known_of_an_op_in_graphs_is_known_of_programs_of_it(program: str, message: str, known: bool) -> None:
    assert (explanation("edges", program, message) is not None) == known


@pytest.mark.parametrize("gone", [True, False])
def test_subnormal_numbers_explain_only_what_is_gone_with_zeros(
    gone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "show('y', tf.raw_ops.Sin(x=tf.constant(np.array([5e-324, 2.0], np.float64))))\n"
    differs = Verdict("y: 1 of 2 elements differ; at 1: np.float64(0.9), the other gives np.float64(0.8)")
    session = FamilySession(Family("edges", "", lambda d: program), tmp_path)
    monkeypatch.setattr(session, "judge", lambda source: Verdict("") if gone and "5e-324" not in source else differs)
    outcome = session.run(1, programs=1, report=lambda text: None)
    session.close()
    assert outcome.explained.total() == gone
    assert len(outcome.failures) == 1 - gone


def test_the_number_that_is_farthest_off_is_said() -> None:
    message = FAMILIES["edges"].mismatch(np.array([1.0, 2.0, 3.0]), np.array([1.1, 2.0, np.nan]))
    assert "2 of 3 elements differ; at 2: np.float64(3.0)" in message
    assert "at 0: np.float64(1.0)" in FAMILIES["edges"].mismatch(np.array(1.0), np.array(np.nan))


def test_no_second_pass_is_shown_where_threads_decide_its_order() -> None:
    draw = FAMILIES["pipelines"].draw
    programs = [p for p in (draw(Drawer(5, i)) for i in range(700)) if "shuffle" in p and "in_session" not in p]
    ahead = [p for p in programs if re.search(r"prefetch\([1-9]", p) and ".repeat()" in p]
    assert ahead
    assert not any("'again'" in p for p in ahead)
    assert any("'again'" in p for p in programs)


def test_kinds_of_messages_leave_values_out() -> None:
    assert kind_of("y: 1 of 3 elements differ; at 2: 1.5") == kind_of("y: 2 of 4 elements differ; at 0: -3e-5")


def test_unknown_family_is_a_wrong_call(command: Any) -> None:
    status, _, errors = command("fuzz", "--family=none")
    assert status == 2
    assert "family 'none' is not known" in errors


def test_command_says_what_was_judged(command: Any, tmp_path: Path) -> None:
    status, output, _ = command("fuzz", "--family=calls", "--seed=1", "--programs=4", f"--store={tmp_path}")
    assert status == 0
    assert "calls: 4 programs" in output
    assert "0 failures" in output


def test_refusals_of_both_are_no_failure() -> None:
    session = FamilySession(FAMILIES["pipelines"], Path())
    verdict = session.compare(Run({}, error="ValueError: a"), Run({}, error="InvalidArgumentError: b"))
    session.close()
    assert verdict.refused
    assert not verdict.message


def test_program_that_ends_in_no_system_is_refused_by_both() -> None:
    session = FamilySession(FAMILIES["pipelines"], Path())
    endless = Run({}, error="timeout: the program did not end in 60 s")
    verdict, ours_alone = session.compare(endless, endless), session.compare(endless, Run({}))
    session.close()
    assert verdict.refused
    assert ours_alone.message.startswith("raises timeout:")


def test_assertion_without_a_text_is_told_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "peer.py").write_text("def check(x):\n    assert x == 1\n")
    system = System(OURS)
    found = system.run(f"import sys; sys.path.append({str(tmp_path)!r})\nimport peer\npeer.check(2)\n")
    system.close()
    assert found.error == "AssertionError: assert x == 1 (line 3)"


def test_long_error_keeps_both_its_ends() -> None:
    system = System(OURS)
    found = system.run("raise ValueError('begins' + 2000 * '-' + 'ends')\n")
    system.close()
    assert found.error.startswith("ValueError: begins-")
    assert found.error.endswith("-ends (line 1)")
    assert len(found.error) < 700
