"""tf.QueueBase.from_list: a queue that each run chooses."""

from __future__ import annotations

import threading

import pytest

import timberframe as tf


def test_the_run_chooses_a_queue_of_a_list(session: tf.Session) -> None:
    queues = [tf.FIFOQueue(3, [tf.int32, tf.string], [[2], shape]) for shape in ([1], [3])]
    index = tf.placeholder(tf.int64, [])
    chosen = tf.QueueBase.from_list(index, queues)
    session.run([queues[0].enqueue(([1, 2], ["a"])), queues[1].enqueue(([3, 4], ["b", "c", "d"]))])
    numbers, words = chosen.dequeue()
    assert (numbers.shape.as_list(), words.shape.as_list()) == ([2], [None])
    found = session.run([numbers, words], {index: 1})
    assert [x.tolist() for x in found] == [[3, 4], [b"b", b"c", b"d"]]
    assert session.run([q.size() for q in queues]) == [1, 0]
    assert session.run(chosen.size(), {index: 0}) == 1
    session.run(chosen.enqueue(([5, 6], tf.constant(["e"]))), {index: 0})
    assert session.run([q.size() for q in queues]) == [2, 0]
    assert session.run(chosen.dequeue_many(2)[0], {index: 0}).tolist() == [[1, 2], [5, 6]]
    session.run(chosen.close(), {index: 1})
    assert [session.run(q.is_closed()) for q in queues] == [False, True]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(numbers, {index: 1})
    with pytest.raises(tf.errors.InvalidArgumentError, match="selected_queue"):
        session.run(numbers, {index: 2})


def test_a_chosen_queue_with_one_component_gives_a_tensor(session: tf.Session) -> None:
    queues = [tf.FIFOQueue(3, [tf.float32], names=["x"]), tf.RandomShuffleQueue(3, 0, [tf.float32], names=["x"])]
    chosen = tf.QueueBase.from_list(tf.constant(1), queues)
    session.run(queues[1].enqueue({"x": 2.0}))
    assert session.run(chosen.dequeue()) == {"x": 2.0}
    plain = tf.QueueBase.from_list(0, [tf.FIFOQueue(3, [tf.float32], [[]])])
    session.run(plain.enqueue(3.0))
    assert session.run(plain.dequeue()) == 3


def test_a_chosen_queue_waits_for_an_element(session: tf.Session) -> None:
    queues = [tf.FIFOQueue(3, [tf.int32], [[]]) for _ in range(2)]
    taken = tf.QueueBase.from_list(tf.constant(1), queues).dequeue()
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(taken, options=tf.RunOptions(timeout_in_ms=100))
    add = queues[1].enqueue(7)
    later = threading.Timer(0.1, session.run, (add,))
    later.start()
    assert session.run(taken) == 7
    later.join()


def test_queues_that_do_not_go_together_are_no_list(session: tf.Session) -> None:
    queues = [tf.FIFOQueue(3, [tf.int32]), tf.FIFOQueue(3, [tf.float32], name="other")]
    with pytest.raises(TypeError, match=r"dtypes of queue 'other' are \['float32'\] and those of 'fifo_queue'"):
        tf.QueueBase.from_list(0, queues)
    with pytest.raises(TypeError, match="a list of queues is required"):
        tf.QueueBase.from_list(0, [])
    with pytest.raises(tf.errors.UnimplementedError, match="chosen in the run and has no handle"):
        _ = tf.QueueBase.from_list(0, queues[:1]).queue_ref
