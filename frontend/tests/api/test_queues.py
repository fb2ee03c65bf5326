"""Queues: order, waiting, closing, and what ends waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

BRIEF = tf.RunOptions(timeout_in_ms=100)


class Working:
    """A thread that does some work; `error` is what it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.error: BaseException | None = None
        self.value: Any = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.value = self._work()
        except BaseException as e:
            self.error = e

    @property
    def waits(self) -> bool:
        """Whether it has not ended after a while."""
        self._thread.join(0.3)
        return self._thread.is_alive()

    def end(self) -> Working:
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self


def numbers(capacity: int = 10, **settings: Any) -> tf.FIFOQueue:
    return tf.FIFOQueue(capacity, [tf.int32], shapes=[[]], **settings)


def filled(session: tf.Session, values: list[int], close: bool = False, capacity: int = 10) -> tf.FIFOQueue:
    queue = numbers(capacity)
    session.run(queue.enqueue_many([values]))
    if close:
        session.run(queue.close())
    return queue


def test_elements_leave_in_the_order_in_which_they_came(session: tf.Session) -> None:
    take = filled(session, [3, 1, 2]).dequeue()
    assert [session.run(take) for _ in range(3)] == [3, 1, 2]


def test_dequeue_many_gives_rows(session: tf.Session) -> None:
    queue = tf.FIFOQueue(4, [tf.float32, tf.string], shapes=[[2], []])
    for i in range(2):
        session.run(queue.enqueue([[i, i + 0.5], f"e{i}"]))
    x, s = session.run(queue.dequeue_many(2))
    assert (x.tolist(), s.tolist()) == ([[0.0, 0.5], [1.0, 1.5]], [b"e0", b"e1"])


def test_components_have_names(session: tf.Session) -> None:
    queue = tf.FIFOQueue(2, [tf.int32, tf.int32], names=["a", "b"])
    session.run(queue.enqueue({"b": 2, "a": 1}))
    assert session.run(queue.dequeue()) == {"a": 1, "b": 2}


def test_fed_array_may_be_changed_after_it_was_added(session: tf.Session) -> None:
    queue, x = tf.FIFOQueue(2, [tf.float32], shapes=[[2]]), tf.placeholder(tf.float32, [2])
    given = np.ones(2, np.float32)
    session.run(queue.enqueue(x), {x: given})
    given[:] = 7
    assert session.run(queue.dequeue()).tolist() == [1.0, 1.0]


def test_shapes_of_what_is_taken_are_known(session: tf.Session) -> None:
    assert numbers().dequeue_many(3).shape == [3]


def test_size_counts_elements(session: tf.Session) -> None:
    assert session.run(filled(session, [1, 2, 3]).size()) == 3


def test_dequeue_waits_for_another_run(session: tf.Session) -> None:
    queue = numbers()
    take, put = queue.dequeue(), queue.enqueue(5)
    session.run(queue.size())
    taker = Working(lambda: session.run(take))
    assert taker.waits
    session.run(put)
    assert taker.end().value == 5


def test_enqueue_waits_while_the_queue_is_full(session: tf.Session) -> None:
    queue = filled(session, [1, 2], capacity=2)
    put, take, size = queue.enqueue(3), queue.dequeue(), queue.size()
    putter = Working(lambda: session.run(put))
    assert putter.waits
    session.run(take)
    putter.end()
    assert session.run(size) == 2


def test_batch_larger_than_the_capacity_passes_through(session: tf.Session) -> None:
    queue = numbers(2)
    put, take = queue.enqueue_many([[1, 2, 3, 4, 5]]), queue.dequeue_many(5)
    putter = Working(lambda: session.run(put))
    assert session.run(take).tolist() == [1, 2, 3, 4, 5]
    putter.end()


def test_one_run_may_take_what_it_adds(session: tf.Session) -> None:
    queue = numbers()
    take = queue.dequeue()
    assert session.run([take, queue.enqueue(5)]) == [5, None]


def test_one_run_may_add_to_two_queues_and_take_from_both(session: tf.Session) -> None:
    taken = []
    for i in range(2):
        queue = tf.FIFOQueue(1, tf.float32, shapes=[()])
        with tf.control_dependencies([queue.enqueue(float(i))]):
            taken.append(queue.dequeue())
    for _ in range(3):
        assert session.run(taken) == [0, 1]


def test_one_run_may_take_what_it_adds_though_shapes_are_unknown(session: tf.Session) -> None:
    queue = tf.FIFOQueue(2, [tf.int32])
    take = queue.dequeue()
    assert session.run([take * 2, queue.enqueue(5)]) == [10, None]


def test_many_nodes_of_one_run_may_wait_for_each_other(session: tf.Session) -> None:
    queue = numbers(1)
    takes = [queue.dequeue() for _ in range(8)]
    puts = [queue.enqueue(i) for i in range(8)]
    assert sorted(session.run(takes + puts)[:8]) == list(range(8))


def test_failure_of_another_node_ends_what_waits(session: tf.Session) -> None:
    queue = numbers()
    fail = tf.py_func(lambda x: 1 / 0, [queue.size()], tf.int32)
    start = time.monotonic()
    with pytest.raises(tf.errors.UnknownError, match="ZeroDivisionError"):
        session.run([queue.dequeue(), queue.dequeue(), fail])
    assert time.monotonic() - start < 10


def test_queue_in_a_loop(session: tf.Session) -> None:
    queue = filled(session, [1, 2, 3, 4])
    total = tf.while_loop(lambda i, _: i < 4, lambda i, t: (i + 1, t + queue.dequeue()), [0, 0])[1]
    assert session.run(total) == 10


# Closing


def test_closed_queue_refuses_elements(session: tf.Session) -> None:
    queue = filled(session, [1], close=True)
    with pytest.raises(tf.errors.CancelledError, match=r"QueueEnqueueV2 'add': queue 'fifo_queue' is closed"):
        session.run(queue.enqueue(2, name="add"))


def test_closed_queue_gives_what_is_left(session: tf.Session) -> None:
    assert session.run(filled(session, [1], close=True).dequeue()) == 1


def test_closed_and_empty_queue_is_out_of_range(session: tf.Session) -> None:
    with pytest.raises(tf.errors.OutOfRangeError, match=r"is closed and has 0 elements; 1 are required"):
        session.run(filled(session, [], close=True).dequeue())


def test_batch_that_cannot_be_filled_leaves_the_elements(session: tf.Session) -> None:
    queue = filled(session, [1, 2], close=True)
    with pytest.raises(tf.errors.OutOfRangeError, match=r"has 2 elements; 3 are required"):
        session.run(queue.dequeue_many(3))
    assert session.run(queue.dequeue_many(2)).tolist() == [1, 2]


def test_dequeue_up_to_gives_a_last_smaller_batch(session: tf.Session) -> None:
    queue = filled(session, [1, 2, 3], close=True)
    take = queue.dequeue_up_to(2)
    assert [session.run(take).tolist() for _ in range(2)] == [[1, 2], [3]]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(take)


def test_closing_wakes_who_waits_to_take(session: tf.Session) -> None:
    queue = numbers()
    take, close = queue.dequeue(), queue.close()
    session.run(queue.size())
    taker = Working(lambda: session.run(take))
    assert taker.waits
    session.run(close)
    assert isinstance(taker.end().error, tf.errors.OutOfRangeError)


@pytest.mark.slow
def test_closing_waits_for_what_is_to_be_added(session: tf.Session) -> None:
    queue = filled(session, [1], capacity=1)
    put, close, take = queue.enqueue(2), queue.close(), queue.dequeue()
    putter = Working(lambda: session.run(put))
    assert putter.waits
    closer = Working(lambda: session.run(close))
    assert closer.waits
    assert [session.run(take), session.run(take)] == [1, 2]
    assert [putter.end().error, closer.end().error] == [None, None]


def test_closing_with_cancel_ends_what_is_to_be_added(session: tf.Session) -> None:
    queue = filled(session, [1], capacity=1)
    put, close, size = queue.enqueue(2), queue.close(cancel_pending_enqueues=True), queue.size()
    putter = Working(lambda: session.run(put))
    assert putter.waits
    session.run(close)
    assert isinstance(putter.end().error, tf.errors.CancelledError)
    assert session.run(size) == 1


def test_closing_twice_is_an_error(session: tf.Session) -> None:
    queue = filled(session, [], close=True)
    assert session.run(queue.is_closed())
    with pytest.raises(tf.errors.CancelledError, match="is closed already"):
        session.run(queue.close())


# What ends waiting


def test_timeout_ends_waiting_and_nothing_is_lost(session: tf.Session) -> None:
    queue = filled(session, [1, 2])
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(queue.dequeue_many(3), options=BRIEF)
    assert session.run(queue.dequeue_many(2)).tolist() == [1, 2]


def test_who_gave_up_does_not_hold_up_others(session: tf.Session) -> None:
    queue = numbers()
    take = queue.dequeue()
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(take, options=BRIEF)
    session.run(queue.enqueue(1))
    assert session.run(take) == 1


def test_closing_the_session_ends_waiting(session: tf.Session) -> None:
    queue = numbers()
    take = queue.dequeue()
    session.run(queue.size())
    taker = Working(lambda: session.run(take))
    assert taker.waits
    session.close()
    assert isinstance(taker.end().error, tf.errors.CancelledError)


def test_each_session_has_a_queue_of_its_own(session: tf.Session) -> None:
    queue = filled(session, [1])
    with tf.Session(graph=session.graph) as other:
        assert other.run(queue.size()) == 0


# Kinds


def test_random_queue_gives_tensorflows_order(session: tf.Session) -> None:
    queue = tf.RandomShuffleQueue(10, 3, [tf.int32], shapes=[[]], seed=3)
    session.run(queue.enqueue_many([list(range(8))]))
    take = queue.dequeue()
    assert [session.run(take) for _ in range(5)] == [7, 3, 4, 0, 6]  # TensorFlow 2.21


def test_random_queue_keeps_its_least_number_until_it_is_closed(session: tf.Session) -> None:
    queue = tf.RandomShuffleQueue(10, 2, [tf.int32], shapes=[[]])
    session.run(queue.enqueue_many([[1, 2, 3]]))
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(queue.dequeue_many(2), options=BRIEF)
    session.run(queue.close())
    assert sorted(session.run(queue.dequeue_many(3)).tolist()) == [1, 2, 3]


def test_padding_queue_pads_to_the_largest(session: tf.Session) -> None:
    queue = tf.PaddingFIFOQueue(5, [tf.int32, tf.string], shapes=[[None], [None, 1]])
    for n in (1, 3):
        session.run(queue.enqueue([list(range(1, n + 1)), [["a"]] * n]))
    x, s = session.run(queue.dequeue_many(2))
    assert x.tolist() == [[1, 0, 0], [1, 2, 3]]
    assert s.tolist() == [[[b"a"], [b""], [b""]], [[b"a"]] * 3]


def test_priority_queue_gives_the_least_first_and_the_oldest_of_equals(session: tf.Session) -> None:
    queue = tf.PriorityQueue(5, [tf.string], [()])
    for priority, value in ((3, "c"), (1, "a"), (2, "b"), (1, "a2")):
        session.run(queue.enqueue([np.int64(priority), value]))
    take = queue.dequeue()
    assert [session.run(take)[1] for _ in range(4)] == [b"a", b"a2", b"b", b"c"]


# What does not suit


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda q: q.enqueue([1, 2]), "2 values; 1 are required"),
        (lambda q: q.enqueue([[1]]), r"a component has shape \(1,\); \(\) is required"),
        (lambda q: q.enqueue({"a": 1}), r"values for \['a'\] are given; its components are None"),
        (lambda q: q.enqueue("a"), "it must be int32"),
    ],
)
def test_elements_that_do_not_suit_are_refused(session: tf.Session, build: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        build(numbers())


def test_queue_of_one_name_with_another_capacity_is_refused(session: tf.Session) -> None:
    session.run(numbers(2, shared_name="shared").size())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"queue 'shared' has capacity 2; 3 is asked for"):
        session.run(numbers(3, shared_name="shared").size())


def test_queue_of_one_name_and_another_kind_is_refused(session: tf.Session) -> None:
    session.run(numbers(2, shared_name="shared").size())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is a FIFOQueue; RandomShuffleQueue is asked for"):
        session.run(tf.RandomShuffleQueue(2, 0, [tf.int32], shapes=[[]], shared_name="shared").size())


def test_batch_of_unknown_shapes_is_refused(session: tf.Session) -> None:
    queue = tf.FIFOQueue(2, [tf.int32])
    session.run(queue.enqueue(1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="only from a queue whose shapes are fully known"):
        session.run(queue.dequeue_many(1))


def test_queues_travel_in_a_graph_def(session: tf.Session) -> None:
    queue = numbers(name="q")
    queue.dequeue(name="take")
    queue.enqueue(4, name="put")
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as other:
        tf.import_graph_def(session.graph.as_graph_def(), name="")
        other.run("put")
        assert other.run("take:0") == 4


@pytest.mark.parametrize("op", ["QueueSizeV2", "LookupTableSizeV2"])
def test_a_handle_of_another_kind_is_refused_before_anything_runs(op: str, session: tf.Session) -> None:
    queue = tf.FIFOQueue(1, tf.float32, name="queue")
    table = apply_op("MutableHashTableV2", [], {"key_dtype": tf.int64, "value_dtype": tf.int64}, name="table")
    wrong, wanted = (table, "queue") if op == "QueueSizeV2" else (queue.queue_ref, "table")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"{op} '.*is a handle of .*; one of a resource of kind '{wanted}'"
    ):
        session.run(apply_op(op, [wrong]))
