"""Bodies of branches and loops that use what the graph around them holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

Build = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        yield session


def counter(session: tf.Session) -> tf.Variable:
    variable = tf.Variable(0.0)
    session.run(variable.initializer)
    return variable


def in_branch(body: Callable[[], Any]) -> Any:
    return tf.cond(tf.placeholder_with_default(True, []), body, lambda: 0.0)


def in_loop(body: Callable[[], Any]) -> Any:
    return tf.while_loop(lambda i, _: i < 3, lambda i, _: (i + 1, body()), [0, 0.0])[1]


def in_map(body: Callable[[], Any]) -> Any:
    return tf.map_fn(lambda _: body(), tf.constant([1.0, 2.0]))[0]


def in_nested_bodies(body: Callable[[], Any]) -> Any:
    return in_branch(lambda: in_loop(lambda: in_branch(body)))


@pytest.mark.parametrize("build", [in_branch, in_loop, in_map, in_nested_bodies])
def test_body_waits_for_an_operation_outside(session: tf.Session, build: Build) -> None:
    v = counter(session)
    assign = v.assign(5.0, read_value=False)

    def body() -> Any:
        with tf.control_dependencies([assign]):
            return v.read_value()

    assert session.run(build(body)) == 5


def test_body_waits_for_a_tensor_outside(session: tf.Session) -> None:
    v = counter(session)
    assigned = v.assign_add(1.0)

    def body() -> Any:
        with tf.control_dependencies([assigned]):
            return tf.constant(2.0)

    assert session.run(in_branch(body)) == 2
    assert session.run(v) == 1


def test_loop_condition_waits_for_an_operation_outside(session: tf.Session) -> None:
    v = counter(session)
    assign = v.assign(2.0, read_value=False)

    def more(i: Any) -> Any:
        with tf.control_dependencies([assign]):
            return i < v.read_value()

    assert session.run(tf.while_loop(more, lambda i: i + 1.0, [0.0])) == 2


def test_group_in_a_branch_of_operations_outside_runs_them(session: tf.Session) -> None:
    v = counter(session)
    assign = v.assign(7.0, read_value=False)
    session.run(tf.cond(tf.placeholder_with_default(True, []), lambda: tf.group(assign), lambda: tf.no_op()))
    assert session.run(v) == 7


def test_body_refuses_to_wait_for_another_graph() -> None:
    with tf.Graph().as_default():
        stranger = tf.no_op()

    def body() -> Any:
        with tf.control_dependencies([stranger]):
            return tf.constant(1.0)

    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="belongs to another graph"):
        in_branch(body)


def test_bodies_see_the_collections_outside() -> None:
    with tf.Graph().as_default():
        v, step = tf.Variable(1.0), tf.train.create_global_step()
        seen: list[Any] = []

        def body() -> Any:
            seen.extend([tf.trainable_variables(), tf.global_variables(), [tf.train.get_global_step()]])
            return 1.0

        in_nested_bodies(body)
        assert seen[:3] == [[v], [v, step], [step]]


def test_what_a_body_collects_is_there_outside() -> None:
    with tf.Graph().as_default():

        def body() -> Any:
            tf.add_to_collection("notes", "inside")
            return 1.0

        in_nested_bodies(body)
        assert tf.get_collection("notes") == ["inside"]


def test_saved_graph_leaves_out_what_bodies_collected() -> None:
    def body() -> Any:
        tf.add_to_collection("made", tf.identity(2.0, name="same"))
        return 1.0

    with tf.Graph().as_default():
        tf.add_to_collection("made", tf.identity(1.0, name="other"))
        tf.identity(3.0, name="same")
        in_branch(body)
        meta = tf.train.export_meta_graph()
    assert list(meta.collection_def["made"].node_list.value) == ["other:0"]


def test_global_step_made_in_a_branch_is_one_of_the_graph(session: tf.Session) -> None:
    pred = tf.placeholder(tf.bool, [])
    count = tf.cond(
        pred,
        lambda: tf.train.get_or_create_global_step().assign_add(1),
        lambda: tf.train.get_or_create_global_step().read_value(),
    )
    session.run(tf.global_variables_initializer())
    assert [session.run(count, {pred: p}) for p in (True, False, True)] == [1, 1, 2]


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("given", [True, False], ids=["var_list", "trainable_variables"])
def test_optimizer_in_a_branch_updates_only_when_it_is_taken(session: tf.Session, optimizer: str, given: bool) -> None:
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    pred = tf.placeholder(tf.bool, [])

    def update() -> Any:
        return OPTIMIZERS[optimizer]().minimize(tf.reduce_sum(tf.square(v)), var_list=[v] if given else None)

    train = tf.cond(pred, update, lambda: tf.no_op())
    outside = OPTIMIZERS[optimizer]().minimize(tf.reduce_sum(tf.square(w)), var_list=[w])
    session.run(tf.global_variables_initializer())
    for taken in (True, False, True):
        before = session.run(v).tolist()
        session.run(train, {pred: taken})
        assert (session.run(v).tolist() != before) == taken
    session.run(outside)
    session.run(outside)
    assert session.run(v).tolist() == session.run(w).tolist()


def test_optimizer_in_a_branch_takes_a_loss_from_outside(session: tf.Session) -> None:
    v = tf.Variable(1.0)
    loss, pred = tf.square(v), tf.placeholder(tf.bool, [])
    optimizer = tf.train.GradientDescentOptimizer(0.25)
    train = tf.cond(pred, lambda: optimizer.minimize(loss, tf.train.get_or_create_global_step()), lambda: tf.no_op())
    session.run(tf.global_variables_initializer())
    session.run(train, {pred: False})
    assert session.run(v) == 1
    session.run(train, {pred: True})
    assert session.run([v, tf.train.get_global_step()]) == [0.5, 1]


def test_optimizer_trains_in_a_loop(session: tf.Session) -> None:
    v = tf.Variable(1.0)

    def body(i: Any) -> Any:
        train = tf.train.GradientDescentOptimizer(0.25).minimize(tf.square(v))
        with tf.control_dependencies([train]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 3, body, [0])
    session.run(tf.global_variables_initializer())
    session.run(loop)
    assert session.run(v) == 0.125


def batch_norm_statistic(mean: Any, training: Any, **how: Any) -> tuple[Any, tf.train.ExponentialMovingAverage]:
    ema = tf.train.ExponentialMovingAverage(0.75, **how)

    def update() -> Any:
        with tf.control_dependencies([ema.apply([mean])]):
            return tf.identity(mean)

    return tf.cond(training, update, lambda: ema.average(mean)), ema


@pytest.mark.parametrize("shape", [(2,), (None,), None], ids=["static", "unknown_size", "unknown_rank"])
def test_average_in_a_branch_moves_only_in_training(session: tf.Session, shape: Any) -> None:
    mean, training = tf.placeholder(tf.float32, shape), tf.placeholder(tf.bool, [])
    used, ema = batch_norm_statistic(mean, training)
    session.run(tf.global_variables_initializer(), {mean: [0.0, 0.0]})
    assert session.run(used, {mean: [4.0, 8.0], training: True}).tolist() == [4, 8]
    assert session.run(used, {mean: [9.0, 9.0], training: False}).tolist() == [1, 2]
    assert session.run(ema.average(mean)).tolist() == [1, 2]


def test_average_without_bias_in_a_branch(session: tf.Session) -> None:
    mean, training = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    used, _ = batch_norm_statistic(mean, training, zero_debias=True)
    session.run(tf.global_variables_initializer())
    session.run(used, {mean: 4.0, training: True})
    assert session.run(used, {mean: 9.0, training: False}) == 4


def test_average_of_a_variable_in_a_branch_begins_at_its_initial_value(session: tf.Session) -> None:
    mean, training = tf.Variable([4.0, 8.0]), tf.placeholder(tf.bool, [])
    used, _ = batch_norm_statistic(mean, training)
    session.run(tf.global_variables_initializer())
    session.run(mean.assign([0.0, 0.0]))
    assert session.run(used, {training: False}).tolist() == [4, 8]
    session.run(used, {training: True})
    assert session.run(used, {training: False}).tolist() == [3, 6]


def test_average_of_what_a_branch_computes(session: tf.Session) -> None:
    x, training = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    ema = tf.train.ExponentialMovingAverage(0.75)
    averages: list[Any] = []

    def update() -> tf.Operation:
        mean = tf.reduce_mean(x)
        done = ema.apply([mean])
        averages.append(ema.average(mean))
        return done

    train = tf.cond(training, update, lambda: tf.no_op())
    session.run(tf.global_variables_initializer())
    session.run(train, {x: [2.0, 6.0], training: True})
    session.run(train, {x: [9.0, 9.0], training: False})
    assert session.run(averages[0]) == 1


@pytest.mark.parametrize("count", [0, 2])
def test_constant_that_a_loop_hands_on_reaches_another_device(count: int, device_type: str) -> None:
    with tf.Graph().as_default():
        times = tf.placeholder(tf.int32, [])
        with tf.device(f"/device:{device_type}:0"):
            kept = tf.while_loop(lambda i, _: i < times, lambda i, x: (i + 1, x), [0, tf.constant(2.5)])[1]
        with tf.device(f"/device:{device_type}:1"):
            y = kept + 1.0
        with tf.Session(config=tf.SessionConfig(device_count={device_type: 2})) as session:
            assert session.run(y, {times: count}) == 3.5


@pytest.mark.parametrize("rows", ["rows", "their number"])
def test_update_runs_though_a_loop_over_what_it_made_needs_no_value_of_it(session: tf.Session, rows: str) -> None:
    v = tf.Variable([1.0, 2.0], use_resource=True)
    session.run(v.initializer)
    with tf.control_dependencies([v.assign_add([1.0, 1.0], read_value=False)]):
        x = v.read_value()
    count = tf.scan(lambda a, row: a + (tf.size(row) if rows == "their number" else 1), x, 0)
    assert session.run(count).tolist() == [1, 2]
    assert session.run(v).tolist() == [2.0, 3.0]


def growing_beside(x: Any, n: Any) -> Any:
    """Returns a loop that the executor drives, since one variable grows, with another that it hands on."""
    shapes = [tf.TensorShape([]), tf.TensorShape([None]), x.shape]
    return tf.while_loop(
        lambda i, v, _: i < n, lambda i, v, x: (i + 1, tf.pad(v, [[0, 1]]), x), [0, tf.constant([1.0]), x], shapes
    )


@pytest.mark.slow
def test_a_loop_hands_on_large_arrays_without_a_copy(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = growing_beside(x, 200)[2][0]
    large, small = np.ones(1 << 22, np.float32), np.ones(1, np.float32)
    session.run(y, {x: large})

    def seconds(work: Callable[[], Any]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    room = large.copy()
    copy = min(seconds(lambda: np.copyto(room, large)) for _ in range(3))
    without = seconds(lambda: session.run(y, {x: small}))
    assert seconds(lambda: session.run(y, {x: large})) < without + 100 * copy


@pytest.mark.parametrize("count", [0, 2])
def test_what_a_loop_hands_on_is_not_the_array_that_was_fed(session: tf.Session, count: int) -> None:
    x = tf.placeholder(tf.float32, [1 << 10])
    given = np.ones(1 << 10, np.float32)
    assert not np.shares_memory(session.run(growing_beside(x, count)[2], {x: given}), given)
