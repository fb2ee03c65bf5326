"""Feeds and fetches that cannot be: a clear error, and the session goes on (the fixture checks that)."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

Invalid = tf.errors.InvalidArgumentError


def test_feed_of_a_wrong_shape(world) -> None:
    with pytest.raises(Invalid, match=r"'x': fed with shape \(2, 4\); it must be compatible with \(\?, 3\)"):
        world.session.run(world.y, {world.x: np.ones((2, 4))})


def test_feed_of_a_wrong_dtype(world) -> None:
    with pytest.raises(Invalid, match=r"Placeholder 'x': fed value of dtype complex128 given; it must be float32"):
        world.session.run(world.y, {world.x: np.ones((2, 3), complex)})


def test_feed_of_text_for_numbers(world) -> None:
    with pytest.raises(Invalid, match=r"Placeholder 'x'.*must be float32"):
        world.session.run(world.y, {world.x: [["a", "b", "c"]]})


def test_feed_of_ragged_lists(world) -> None:
    with pytest.raises(Invalid, match=r"not rectangular.*rows must have equal lengths"):
        world.session.run(world.y, {world.x: [[1, 2, 3], [4, 5]]})


def test_feed_of_a_tensor(world) -> None:
    with pytest.raises(Invalid, match=r"fed with tensor 'y:0'; a value is required"):
        world.session.run(world.y, {world.x: world.y})


def test_unfed_placeholder_names_what_is_needed(world) -> None:
    with pytest.raises(Invalid, match=r"'x': no value was fed; a feed of dtype float32 and shape \(\?, 3\)"):
        world.session.run(world.y)


def test_feed_given_twice(world) -> None:
    with pytest.raises(Invalid, match=r"feed 'x:0' is given twice"):
        world.session.run(world.y, {world.x: np.ones((1, 3)), "x:0": np.ones((1, 3))})


def bare_handle(world) -> tf.Tensor:
    """Returns a handle without a tf.Variable, whose read would be its value."""
    with world.session.graph.as_default():
        return apply_op("VarHandleOp", attrs={"dtype": tf.float32, "shape": ()})


def test_feed_of_a_variable_handle(world) -> None:
    with pytest.raises(Invalid, match=r"resource handle; it cannot be fed"):
        world.session.run(world.y, {bare_handle(world): 1.0, world.x: np.ones((1, 3))})


def test_feed_of_an_unknown_name(world) -> None:
    wanted = r"key 'nowhere:0' of feed_dict is no tensor of the graph: operation 'nowhere': not in the graph"
    with pytest.raises(TypeError, match=wanted):
        world.session.run(world.y, {"nowhere:0": 1.0})


def test_feed_of_a_tuple_of_tensors_by_another_number_of_values(world) -> None:
    with pytest.raises(
        TypeError, match=r"feed of a tuple of 2 tensors is a list of 1; a tuple of 2 values is required"
    ):
        world.session.run(world.y, {(world.x, world.y): [np.ones((1, 3))]})
    with pytest.raises(TypeError, match=r"feed of a tuple of 1 tensors is a float; a tuple of 1 values is required"):
        world.session.run(world.y, {(world.x,): 1.0})


def test_feed_of_an_operation(world) -> None:
    with pytest.raises(Invalid, match=r"a Tensor is required here"):
        world.session.run(world.y, {world.y.op: 1.0})


def test_tensor_of_a_body_is_refused_as_such(world) -> None:
    inside = []

    def body(i: tf.Tensor) -> tf.Tensor:
        inside.append(i + 1)
        return inside[0]

    tf.while_loop(lambda i: i < 3, body, [0])
    words = "another graph; it was made inside the body of a loop or branch; return it from there"
    with pytest.raises(Invalid, match=f"belongs to {words}"):
        world.session.run(inside[0])
    with pytest.raises(Invalid, match=f"is of {words}"):
        tf.identity(inside[0])


def test_fetch_from_another_graph(world) -> None:
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    with pytest.raises(Invalid, match=r"'Const:0'.*belongs to another graph; it must be of this graph"):
        world.session.run(other)


def test_fetch_of_none(world) -> None:
    with pytest.raises(Invalid, match=r"fetch is None; a Tensor, an Operation, a name or a structure"):
        world.session.run([world.weights, None])


def test_fetch_of_something_else(world) -> None:
    with pytest.raises(Invalid, match=r"3.5 of type float is not in a graph"):
        world.session.run(3.5)


def test_fetch_of_a_handle(world) -> None:
    with pytest.raises(Invalid, match=r"is a resource handle; it has no value to return"):
        world.session.run(bare_handle(world))


def test_tensor_as_a_bool_says_what_to_do(world) -> None:
    with pytest.raises(Invalid, match=r"used as a Python bool.*tf.cond"):
        bool(world.y)


def test_callable_with_a_wrong_number_of_values(world) -> None:
    call = world.session.make_callable(world.y, [world.x])
    with pytest.raises(Invalid, match=r"given 2 values; 1 feeds are required"):
        call(np.ones((1, 3)), 1.0)


def test_callable_checks_shapes_after_its_first_run(world) -> None:
    call = world.session.make_callable(world.x + 1.0, [world.x])
    call(np.ones((1, 3), np.float32))
    with pytest.raises(Invalid, match=r"fed with shape \(4,\)"):
        call(np.ones(4, np.float32))


def test_zero_size_tensors_run(world) -> None:
    assert world.session.run(world.y, {world.x: np.ones((0, 3))}).shape == (0, 3)
    total = tf.reduce_sum(world.y)
    assert world.session.run(total, {world.x: np.ones((0, 3))}) == 0


def test_feed_is_never_written(world) -> None:
    fed = np.ones((2, 3), np.float32)
    world.session.run(tf.nn.relu((world.x + 1.0) * 2.0 - world.x), {world.x: fed})
    np.testing.assert_array_equal(fed, 1)


def test_fetched_feed_and_variable_are_copies(world) -> None:
    fed = np.ones((2, 3), np.float32)
    got, weights = world.session.run([world.x, world.weights], {world.x: fed})
    got[:] = 7
    weights[:] = 7
    np.testing.assert_array_equal(fed, 1)


def test_feed_changed_by_another_thread_harms_nothing(world) -> None:
    fed = np.ones((256, 3), np.float32)
    stop = threading.Event()

    def scribble() -> None:
        while not stop.is_set():
            fed[:] += 1

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        for _ in range(200):
            assert world.session.run(world.y, {world.x: fed}).shape == (256, 3)
    finally:
        stop.set()
        thread.join()


def test_a_feed_whose_conversion_raises_is_named() -> None:
    class Gone:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise RuntimeError("moved away")

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"'x': fed with a Gone .*RuntimeError: moved away"):
            session.run(x + 1.0, {x: Gone()})
