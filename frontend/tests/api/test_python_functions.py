"""tf.py_func and tf.Print: functions of the program, and texts, from inside of graphs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf


def raising(error: Exception) -> Callable[[], Any]:
    def function() -> Any:
        raise error

    return function


def test_function_gets_arrays_and_gives_tensors(session: tf.Session) -> None:
    y = tf.py_func(lambda x, n: x * n, [tf.constant([1.0, 2.0]), tf.constant(3.0)], tf.float32)
    assert session.run(y + 1.0).tolist() == [4.0, 7.0]


def test_scalars_arrive_as_numpy_scalars_and_bytes(session: tf.Session) -> None:
    found: list[Any] = []
    session.run(tf.py_func(lambda *x: found.extend(x), [tf.constant(2.0), tf.constant("ab")], []))
    assert [type(x) for x in found] == [np.float32, bytes]


@pytest.mark.parametrize("given", [b"a\x00", [b"a\x00", b""], ["ü\x00", b"b\x00"], np.array([b"a\x00", "ü"], object)])
def test_strings_that_a_function_gives_keep_the_zeros_at_their_ends(session: tf.Session, given: Any) -> None:
    got = session.run(tf.py_func(lambda: (given,), [], tf.string))
    wanted = [x.encode() if isinstance(x, str) else x for x in ([given] if isinstance(given, bytes) else given)]
    assert ([got] if isinstance(got, bytes) else got.tolist()) == wanted


def test_several_values_become_several_tensors(session: tf.Session) -> None:
    assert session.run(tf.py_func(lambda: (1, "ä"), [], [tf.int64, tf.string])) == [1, "ä".encode()]


def test_function_without_results_is_an_operation(session: tf.Session) -> None:
    calls: list[int] = []
    op = tf.py_func(lambda: calls.append(1), [], [])
    assert session.run(op) is None
    assert calls == [1]


def test_function_runs_once_in_each_iteration_of_a_loop(session: tf.Session) -> None:
    calls: list[float] = []

    def double(x: Any) -> Any:
        calls.append(float(x))
        return x * x.dtype.type(2)

    def body(x: Any) -> Any:
        made = tf.py_func(double, [x], tf.float32)
        made.set_shape([])
        return made

    assert session.run(tf.while_loop(lambda x: x < 10.0, body, [1.0])) == 16.0
    assert calls == [1.0, 2.0, 4.0, 8.0]


def test_function_runs_in_the_branch_that_is_taken(session: tf.Session) -> None:
    calls: list[str] = []

    def branch(label: str) -> Callable[[], Any]:
        return lambda: tf.py_func(lambda: calls.append(label) or np.float32(1), [], tf.float32)

    session.run(tf.cond(tf.placeholder_with_default(True, []), branch("then"), branch("else")))
    assert calls == ["then"]


def test_gradient_through_a_function_is_none(session: tf.Session) -> None:
    x = tf.constant(1.0)
    assert tf.gradients(tf.py_func(lambda x: x, [x], tf.float32), [x]) == [None]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("v"), tf.errors.InvalidArgumentError),
        (TypeError("t"), tf.errors.InvalidArgumentError),
        (StopIteration("s"), tf.errors.OutOfRangeError),
        (MemoryError("m"), tf.errors.ResourceExhaustedError),
        (NotImplementedError("n"), tf.errors.UnimplementedError),
        (KeyError("k"), tf.errors.UnknownError),
        (RuntimeError("r"), tf.errors.UnknownError),
    ],
)
def test_exception_of_the_function_is_the_error_that_tensorflow_raises(
    session: tf.Session, error: Exception, kind: type[Exception]
) -> None:
    y = tf.py_func(raising(error), [], tf.float32, name="mine")
    with pytest.raises(kind, match=rf"PyFunc 'mine': the function raised {type(error).__name__}.*test_python_f.*:\d+"):
        session.run(y)


def test_exception_of_the_function_is_the_cause(session: tf.Session) -> None:
    error = ValueError("v")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(tf.py_func(raising(error), [], tf.float32))
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("made", "dtypes", "message"),
    [
        (1.0, tf.float32, "output 0 as float64; float32 is required"),
        ([1, 2], tf.int64, "returned 2 values; 1 are required"),
        (None, tf.float32, "returned 0 values; 1 are required"),
        ((1, 1.0), [tf.int64, tf.int64], "output 1 as float64; int64 is required"),
    ],
)
def test_results_must_be_as_declared(session: tf.Session, made: Any, dtypes: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(tf.py_func(lambda: made, [], dtypes))


def test_result_must_have_the_shape_that_was_set(session: tf.Session) -> None:
    y = tf.py_func(lambda: np.zeros(3, np.float32), [], tf.float32)
    y.set_shape([2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"output 0 has shape \(3,\); the graph says \(2,\)"):
        session.run(y + tf.zeros([2]))


def test_session_can_be_used_after_an_error_of_the_function(session: tf.Session) -> None:
    fails = [True]

    def function() -> Any:
        if fails.pop():
            raise ValueError("now")
        return np.float32(1)

    y = tf.py_func(function, [], tf.float32)
    fails.insert(0, False)
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(y)
    assert session.run(y) == 1.0


def test_stateful_function_is_called_in_every_run(session: tf.Session) -> None:
    calls: list[int] = []
    y = tf.py_func(lambda: np.int64(len(calls) + (calls.append(1) or 0)), [], tf.int64)
    assert [session.run(y) for _ in range(3)] == [0, 1, 2]


def test_what_the_function_changes_later_is_not_seen(session: tf.Session) -> None:
    kept = np.zeros(2, np.float32)
    found = session.run(tf.py_func(lambda: kept, [], tf.float32))
    kept[:] = 1
    assert found.tolist() == [0.0, 0.0]


def test_function_is_freed_with_its_graph() -> None:
    class Function:
        def __call__(self) -> Any:
            return np.float32(1)

    function = Function()
    gone = weakref.ref(function)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        session.run(tf.py_func(function, [], tf.float32))
    del function, graph, session
    gc.collect()
    assert gone() is None


def test_graph_of_another_process_names_the_token_that_is_missing() -> None:
    with tf.Graph().as_default() as graph:
        tf.py_func(lambda: np.float32(1), [], tf.float32, name="y")
    definition = graph.as_graph_def()
    definition.node[0].attr["token"].s = b"pyfunc_of_old"
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.import_graph_def(definition, name="")
        with pytest.raises(tf.errors.NotFoundError, match=r"PyFunc 'y': no function .* token 'pyfunc_of_old'"):
            session.run("y:0")


PRINTED = [
    ([1.5], {}, "[1.5]"),
    ([[1, 2, 3, 4, 5]], {"message": "m: "}, "m: [1 2 3...]"),
    ([[[1, 2], [3, 4]], True, "ab", ["x", "y"]], {"message": "q"}, "q[[1 2][3...]...][1][ab][x y]"),
    ([np.zeros((2, 3, 2))], {}, "[[[0 0][0...]]...]"),
    ([np.zeros((2, 3, 2))], {"summarize": 100}, "[[[0 0][0 0][0 0]][[0 0][0 0][0 0]]]"),
    ([np.zeros((0, 3))], {}, "[]"),
    ([np.array([1e-10, 1e10, 1 / 3, np.nan, np.inf, -0.0], np.float32)], {"summarize": 9},
     "[1e-10 1e+10 0.333333343 nan inf -0]"),
    ([np.array([1 / 3, 1e100])], {}, "[0.33333333333333331 1e+100]"),
    ([np.array([1 / 3], np.float16), np.array([1 + 2j])], {}, "[0.333251953][?]"),
    ([np.int8(-3), np.uint8(200)], {}, "[-3][200]"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "settings", "line"), PRINTED, ids=[line for *_, line in PRINTED])
def test_print_writes_the_line_that_tensorflow_writes(
    session: tf.Session, capfd: pytest.CaptureFixture[str], data: list[Any], settings: dict[str, Any], line: str
) -> None:
    session.run(tf.Print(tf.constant(0), [tf.constant(x) for x in data], **settings))
    assert capfd.readouterr().err == f"{line}\n"


def test_print_stops_after_first_n(session: tf.Session, capfd: pytest.CaptureFixture[str]) -> None:
    x = tf.Print(tf.constant(1), [tf.constant(7)], message="first ", first_n=2)
    assert [session.run(x) for _ in range(4)] == [1] * 4
    assert capfd.readouterr().err == "first [7]\n" * 2


def test_gradient_passes_through_print(session: tf.Session, capfd: pytest.CaptureFixture[str]) -> None:
    x = tf.constant(3.0)
    y = tf.Print(x, [x]) ** 2
    assert session.run(tf.gradients(y, x)) == [6.0]


def test_print_v2_writes_text_with_its_end(session: tf.Session, capfd: pytest.CaptureFixture[str]) -> None:
    session.run(tf.raw_ops.PrintV2(input="a", output_stream="stdout", end="!"))
    assert capfd.readouterr().out == "a!"
