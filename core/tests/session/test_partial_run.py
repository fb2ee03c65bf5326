"""A run in several steps: each feeds and fetches a part, and no operation runs twice."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture
def session() -> Iterator[tf.Session]:
    """Of a graph with placeholders a, b and c, and with first = a + b and second = first * c."""
    with tf.Graph().as_default(), tf.Session() as opened:
        a, b, c = (tf.placeholder(tf.float32, shape=[], name=name) for name in "abc")
        tf.multiply(tf.add(a, b, name="first"), c, name="second")
        yield opened


def test_later_steps_go_on_with_what_earlier_ones_computed(session: tf.Session) -> None:
    handle = session.partial_run_setup(["first:0", "second:0"], ["a:0", "b:0", "c:0"])
    assert session.partial_run(handle, "first:0", {"a:0": 1, "b:0": 2}) == 3
    assert session.partial_run(handle, ["second:0"], {"c:0": 17}) == [51]


def test_a_step_may_feed_alone_and_a_later_one_fetch(session: tf.Session) -> None:
    handle = session.partial_run_setup("second:0", ["a:0", "b:0", "c:0"])
    assert session.partial_run(handle, [], {"a:0": 1}) == []
    assert session.partial_run(handle, [], {"c:0": 2, "b:0": 3}) == []
    assert session.partial_run(handle, {"found": "second:0"}) == {"found": 8}


def test_runs_of_one_setup_may_be_under_way_together(session: tf.Session) -> None:
    runs = [session.partial_run_setup(["first:0", "second:0"], ["a:0", "b:0", "c:0"]) for _ in range(3)]
    assert [session.partial_run(h, "first:0", {"a:0": i, "b:0": 1}) for i, h in enumerate(runs)] == [1, 2, 3]
    assert [session.partial_run(h, "second:0", {"c:0": 10}) for h in reversed(runs)] == [30, 20, 10]


def test_threads_may_take_steps_of_their_own_runs(session: tf.Session) -> None:
    def both_steps(number: int) -> list[float]:
        handle = session.partial_run_setup(["first:0", "second:0"], ["a:0", "b:0", "c:0"])
        first = session.partial_run(handle, "first:0", {"a:0": number, "b:0": 1})
        return [float(first), float(session.partial_run(handle, "second:0", {"c:0": 2}))]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(both_steps, range(40)))
    assert found == [[n + 1, 2 * n + 2] for n in range(40)]


def test_a_fed_array_may_change_between_the_steps() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
        doubled, total = x * 2.0, x + y
        handle = session.partial_run_setup([doubled, total], [x, y])
        fed = np.ones(2, np.float32)
        found = session.partial_run(handle, doubled, {x: fed})
        fed[:] = found[:] = 100
        np.testing.assert_array_equal(session.partial_run(handle, total, {y: [1, 2]}), [2, 3])


def test_what_has_effects_happens_once() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        count = tf.get_variable("count", initializer=0.0)
        counted = tf.assign_add(count, 1.0)
        with tf.control_dependencies([counted.op]):
            shifted, read = x + 1.0, tf.identity(count)
        session.run(tf.global_variables_initializer())
        handle = session.partial_run_setup([counted, counted.op, shifted, read], [x])
        assert session.partial_run(handle, counted) == 1
        assert session.partial_run(handle, shifted, {x: 2.0}) == 3
        assert session.partial_run(handle, [counted.op, read]) == [None, 1]


def test_random_numbers_are_drawn_once() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        drawn, x = tf.random_uniform([4]), tf.placeholder(tf.float32, [])
        doubled, scaled = drawn * 2.0, drawn * x
        handle = session.partial_run_setup([doubled, scaled, drawn], [x])
        found = session.partial_run(handle, doubled) / 2
        np.testing.assert_array_equal(session.partial_run(handle, scaled, {x: 4.0}), found * 4)
        np.testing.assert_array_equal(session.partial_run(handle, drawn), found)


def test_python_functions_are_called_once() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        calls = []

        def noted(value: np.ndarray) -> np.ndarray:
            calls.append(value)
            return value

        x = tf.placeholder(tf.float32, [])
        called = tf.py_func(noted, [tf.constant(3.0)], tf.float32)
        handle = session.partial_run_setup([called + 1.0, called * x, called], [x])
        fetches = [*handle.plan.elements]
        assert [session.partial_run(handle, f, {x: 2.0} if f is fetches[1] else {}) for f in fetches] == [4, 6, 3]
        assert len(calls) == 1


def test_a_loop_and_its_lists_go_on_in_a_later_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        n, y = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [])
        array = tf.TensorArray(tf.float32, n, element_shape=[])
        _, array = tf.while_loop(
            lambda i, _: i < n, lambda i, a: (i + 1, a.write(i, tf.to_float(i * i))), (tf.constant(0), array)
        )
        size, last = array.size(), array.read(n - 1) + y
        handle = session.partial_run_setup([size, last], [n, y])
        assert session.partial_run(handle, size, {n: 4}) == 4
        assert session.partial_run(handle, last, {y: 0.5}) == 9.5


def test_a_fed_variable_has_the_value_wherever_it_is_read() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=1.0)
        x = tf.placeholder(tf.float32, [])
        doubled, total = v * 2.0, v + x
        handle = session.partial_run_setup([doubled, total], [v, x])
        assert session.partial_run(handle, doubled, {v: 5.0}) == 10
        assert session.partial_run(handle, total, {x: 1.0}) == 6


def test_branches_of_an_imported_graph_count_as_one_operation(session: tf.Session) -> None:
    with session.graph.as_default():
        condition = tf.placeholder(tf.bool, [], name="condition")
        a, b, c = (session.graph.get_tensor_by_name(f"{name}:0") for name in "abc")
        merged = []
        for data in (a, b):
            no, yes = tf.raw_ops.Switch(data=data, pred=condition)
            merged.append(tf.raw_ops.Merge(inputs=[no + 1.0, yes + 2.0])[0])
        first, second = merged[0], merged[1] * c
        handle = session.partial_run_setup([first, second], [a, b, c, condition])
        with pytest.raises(tf.errors.InvalidArgumentError, match="need feed 'b:0'"):
            session.partial_run(handle, first, {a: 1.0, condition: True})
        assert session.partial_run(handle, first, {a: 1.0, b: 2.0, condition: True}) == 3
        assert session.partial_run(handle, second, {c: 10.0}) == 40


def setup(session: tf.Session) -> object:
    handle = session.partial_run_setup(["first:0", "second:0"], ["a:0", "b:0", "c:0"])
    session.partial_run(handle, "first:0", {"a:0": 1, "b:0": 2})
    return handle


@pytest.mark.parametrize(
    ("fetches", "feeds", "message"),
    [
        ("second:0", {}, "the fetches need feed 'c:0', which has no value yet"),
        ("first:0", {}, "fetch 'first:0' was given before"),
        ("second:0", {"a:0": 1, "c:0": 1}, "feed 'a:0' was given before"),
        ("Const:0", {"c:0": 1}, "fetch 'Const:0' was not specified in partial_run_setup"),
        ("second:0", {"c:0": 1, "Const:0": 1}, "feed 'Const:0' was not specified in partial_run_setup"),
        ("second:0", {"c:0": [1, 2]}, "fed with shape"),
    ],
)
def test_a_wrong_step_is_refused_and_the_run_goes_on(
    session: tf.Session, fetches: str, feeds: dict[str, object], message: str
) -> None:
    with session.graph.as_default():
        tf.constant(1.0, name="Const")
    handle = setup(session)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.partial_run(handle, fetches, feeds)
    assert session.partial_run(handle, "second:0", {"c:0": 2}) == 6


def test_a_run_ends_with_its_last_step(session: tf.Session) -> None:
    handle = setup(session)
    session.partial_run(handle, "second:0", {"c:0": 2})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is over.*another partial_run_setup is required"):
        session.partial_run(handle, "second:0", {"c:0": 2})


def test_a_run_ends_with_a_step_that_fails() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        checked = tf.check_numerics(x, "x")
        handle = session.partial_run_setup([checked], [x])
        with pytest.raises(tf.errors.InvalidArgumentError, match="NaN"):
            session.partial_run(handle, checked, {x: np.nan})
        with pytest.raises(tf.errors.InvalidArgumentError, match="has failed"):
            session.partial_run(handle, checked)


def test_a_placeholder_that_no_feed_stands_for_is_missed(session: tf.Session) -> None:
    handle = session.partial_run_setup("second:0", ["a:0", "b:0"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Placeholder 'c'"):
        session.partial_run(handle, "second:0", {"a:0": 1, "b:0": 1})


def test_a_setup_without_fetches_is_refused(session: tf.Session) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one"):
        session.partial_run_setup([], ["a:0"])


def test_a_handle_belongs_to_its_session(session: tf.Session) -> None:
    handle = setup(session)
    with tf.Session(graph=session.graph) as other, pytest.raises(tf.errors.InvalidArgumentError, match="no handle"):
        other.partial_run(handle, "second:0", {"c:0": 1})


def test_no_step_follows_when_the_session_is_closed(session: tf.Session) -> None:
    handle = setup(session)
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        session.partial_run(handle, "second:0", {"c:0": 1})
    with pytest.raises(RuntimeError, match="closed"):
        session.partial_run_setup("second:0", ["a:0", "b:0", "c:0"])
