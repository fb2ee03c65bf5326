"""The contract on three devices that share nothing but it: C programs, NumPy kernels, and a whole-cluster compiler."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op
from timberframe_sdk import hookimpl, numpy_device
from timberframe_sdk.testing.loaded import loaded_plugin

DEVICES = ("/device:CPU:0", "/device:NUMPY:0", "/device:ASYNC:0")


@pytest.fixture(params=DEVICES)
def session(request: pytest.FixtureRequest) -> Iterator[tf.Session]:
    """A session whose graph is on one device."""
    with tf.Graph().as_default() as graph, tf.device(request.param), tf.Session(graph=graph) as session:
        yield session


def test_arithmetic_broadcasts(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    y = (x + [1.0, 2.0, 3.0]) * 2.0
    np.testing.assert_array_equal(session.run(y, {x: np.ones((2, 3))}), [[4, 6, 8]] * 2)


def test_every_shape_gets_its_own_plan(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = x + 1.0
    for n in (3, 0, 7, 3):
        np.testing.assert_array_equal(session.run(y, {x: np.arange(n)}), np.arange(n) + 1)


def test_matmul_and_sum(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    total = tf.reduce_sum(tf.matmul(x, tf.constant(np.ones((3, 4), np.float32))), axis=1)
    np.testing.assert_array_equal(session.run(total, {x: np.arange(6).reshape(2, 3)}), [12, 48])


def test_reshape_by_a_fed_shape(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [6])
    shape = tf.placeholder(tf.int32, [2])
    y = tf.reshape(x, shape)
    assert session.run(y, {x: np.arange(6), shape: [2, 3]}).shape == (2, 3)
    assert session.run(y, {x: np.arange(6), shape: [3, -1]}).shape == (3, 2)


def test_where_decides_its_size(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    found = apply_op("Where", [tf.less(x, 2.0)])
    doubled = apply_op("AddV2", [found, found])
    for values, wanted in (([1, 5, 0], [[0], [4]]), ([9], np.empty((0, 1))), ([1, 1, 1], [[0], [2], [4]])):
        np.testing.assert_array_equal(session.run(doubled, {x: values}), wanted)


def test_a_variable_keeps_what_was_assigned(session: tf.Session) -> None:
    v = tf.Variable(np.zeros(3, np.float32))
    add = v.assign_add([1.0, 2.0, 3.0])
    session.run(v.initializer)
    for _ in range(3):
        session.run(add)
    np.testing.assert_array_equal(session.run(v), [3, 6, 9])


def test_reading_an_uninitialised_variable_is_an_error_and_the_session_goes_on(session: tf.Session) -> None:
    v = tf.Variable(np.zeros(3, np.float32), name="weights")
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"'weights'.*no value; run its initializer"):
        session.run(v)
    session.run(v.initializer)
    np.testing.assert_array_equal(session.run(v), [0, 0, 0])


def test_old_value_is_fetched_beside_an_update(session: tf.Session) -> None:
    v = tf.Variable(np.zeros(2, np.float32))
    session.run(v.initializer)
    before = v.read_value()
    with tf.control_dependencies([before]):
        add = v.assign_add([1.0, 1.0])
    old, _ = session.run([before, add])
    np.testing.assert_array_equal(old, [0, 0])
    np.testing.assert_array_equal(session.run(v), [1, 1])


def test_while_swaps_loop_variables(session: tf.Session) -> None:
    limit = tf.placeholder(tf.int32, [])
    a, b = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    out = tf.while_loop(lambda i, a, b: tf.less(i, limit), lambda i, a, b: (i + 1, b, a), [tf.constant(0), a, b])
    for n, first in ((0, 1), (1, 2), (2, 1), (5, 2)):
        result = session.run(out, {limit: n, a: [1, 1], b: [2, 2]})
        assert (result[0], result[1][0]) == (n, first)


def test_while_reads_a_variable_in_its_body(session: tf.Session) -> None:
    v = tf.Variable(np.array([1, 2], np.float32))
    session.run(v.initializer)
    start = tf.placeholder(tf.float32, [2])
    _, out = tf.while_loop(lambda i, a: tf.less(i, 3), lambda i, a: (i + 1, a + v), [tf.constant(0), start])
    np.testing.assert_array_equal(session.run(out, {start: [0, 0]}), [3, 6])


def test_while_whose_shape_grows_is_driven_by_the_executor(session: tf.Session) -> None:
    start = tf.placeholder(tf.float32, [None])
    _, out = tf.while_loop(
        lambda i, a: tf.less(i, 3),
        lambda i, a: (i + 1, tf.reshape(a * tf.constant(np.ones((2, 1), np.float32)), [-1])),
        [tf.constant(0), start],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    assert session.run(out, {start: [1, 1]}).shape == (16,)


def test_concurrent_runs_do_not_meet(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [64])
    y = (x * 2.0 + x) * 0.5
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda k: session.run(y, {x: np.full(64, k)}), range(100)))
    assert all((r == 1.5 * k).all() for k, r in enumerate(results))


def test_three_devices_in_one_graph() -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [4])
        y = x
        for name in (*DEVICES, *DEVICES):
            with tf.device(name):
                y = y * 2.0 + 1.0
        np.testing.assert_array_equal(session.run(y, {x: np.zeros(4)}), np.full(4, 63.0))
        stages = session.explain(y, {x: np.zeros(4)}).stages
        assert [s.device for s in stages] == [*DEVICES, *DEVICES]


def test_constants_leave_the_device_with_their_graph() -> None:
    def live() -> int:
        gc.collect()
        return device.allocator.statistics().live

    with tf.Session() as session:
        device = next(d for d in session.list_devices() if d.spec == DEVICES[2])
    before = live()
    for k in range(3):
        with tf.Graph().as_default() as graph, tf.device(DEVICES[2]), tf.Session(graph=graph) as session:
            x = tf.placeholder(tf.float32, [100])
            session.run(x + tf.constant(np.full(100, k, np.float32)), {x: np.ones(100)})
        del graph, session, x
    assert live() == before


def test_a_node_goes_to_the_best_device_with_a_kernel_unless_placement_is_strict() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        y = tf.tanh(x, name="y")
    plugins = ["numpy", "async"]
    with tf.Session(graph=graph, config=tf.SessionConfig(plugins=plugins)) as session:
        (placement,) = session.explain(y).placements
        assert placement.device == DEVICES[2]
        assert placement.rejected == ((DEVICES[1], "no kernel is registered"),)
    config = tf.SessionConfig(plugins=plugins, strict_placement=True)
    with (
        tf.Session(graph=graph, config=config) as strict,
        pytest.raises(tf.errors.UnimplementedError, match=r"Tanh 'y'.*NUMPY:0: no kernel.*strict placement"),
    ):
        strict.run(y, {x: [1, 2]})


def test_optimizations_can_be_switched_off() -> None:
    with tf.Graph().as_default() as graph:
        constant = tf.constant([1.0, 2.0]) * 3.0
        x = tf.placeholder(tf.float32, [2])
        y = tf.add(tf.identity(x) * 2.0 + constant, x * 2.0)
    off = tf.SessionConfig(optimizations={"fold": False, "cse": False, "simplify": False})
    counts = []
    for config in (None, off):
        with tf.Session(graph=graph, config=config) as session:
            np.testing.assert_array_equal(session.run(y, {x: [1, 1]}), [7, 10])
            counts.append(len(session.explain(y).placements))
    assert counts[0] < counts[1]


def test_a_plugin_added_after_a_session_is_seen_by_the_next_one() -> None:
    class LateDevice(numpy_device.NumpyDevice):
        type = "LATE"

    class Plugin:
        @hookimpl
        def timberframe_devices(self, config: object) -> list[object]:
            return [LateDevice()]

    with tf.Session():
        pass
    with loaded_plugin("late", Plugin()), tf.Session() as session:
        assert "/device:LATE:0" in [d.spec for d in session.list_devices()]


def test_a_device_of_the_sdk_shows_its_name_and_model() -> None:
    with tf.Session() as session:
        (device,) = (d for d in session.list_devices() if d.spec == "/device:NUMPY:0")
    assert repr(device) == f"<Device /job:localhost/replica:0/task:0/device:NUMPY:0 ({device.attributes.model})>"
