"""Sessions on workers of a cluster: where things run, what crosses, what stays, and what errors say."""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

import timberframe as tf
from timberframe_ray import Cluster
from timberframe_ray.link import Link
from timberframe_ray.step import Step

FIRST, SECOND, SERVER = (
    f"/job:{task}/device:CPU:0"
    for task in ("worker/replica:0/task:0", "worker/replica:0/task:1", "ps/replica:0/task:0")
)


def session(cluster: Cluster, **settings: Any) -> tf.Session:
    return tf.Session(cluster.target, config=tf.SessionConfig(plugins=["cpu"], **settings))


def test_devices_of_all_tasks_come_before_those_of_this_process(cluster: Cluster) -> None:
    with session(cluster) as s:
        names = [d.name for d in s.list_devices()]
    assert names == [FIRST, SECOND, SERVER, "/job:localhost/replica:0/task:0/device:CPU:0"]


def test_the_devices_of_the_task_that_the_target_names_come_first(cluster: Cluster) -> None:
    with tf.Session(cluster.target_of("worker", 1)) as s:
        assert s.list_devices()[0].name == SECOND


def test_tensors_go_from_one_worker_to_another_and_to_this_process(cluster: Cluster) -> None:
    x = tf.placeholder(tf.float32, [300, 300])  # too large to go with the call
    with tf.device(FIRST):
        a = tf.matmul(x, x)
    with tf.device(SECOND):
        b = tf.tanh(a)
    with tf.device("/job:localhost"):
        c = tf.reduce_sum(b) + 1.0
    given = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32) / 100
    with session(cluster) as s:
        found = [s.run([b, c], {x: given}) for _ in range(2)]
    with tf.Session(config=tf.SessionConfig(allow_soft_placement=True, plugins=["cpu"])) as local:
        wanted = local.run([b, c], {x: given})
    for sent, total in found:
        np.testing.assert_array_equal(sent, wanted[0])
        assert total == wanted[1]
        assert sent.flags.writeable


def test_steps_that_are_over_are_not_kept(cluster: Cluster) -> None:
    def steps() -> int:
        gc.collect()
        return sum(isinstance(x, Step) for x in gc.get_objects())

    with tf.device(SERVER):
        v = tf.get_variable("v", initializer=tf.constant(0.0))
    with tf.device(FIRST):
        w = v + 1.0
    with tf.device(SERVER):
        update = v.assign(w)
    with session(cluster) as s:
        s.run(v.initializer)
        s.run(update)
        before = steps()
        for _ in range(50):
            s.run(update)
        time.sleep(0.2)  # they are looked after until they are over
        assert steps() < before + 10


def test_tables_datasets_and_strings_that_are_placed_on_a_worker_are_carried_out_here(cluster: Cluster) -> None:
    with tf.device(FIRST):
        words = tf.strings.join([tf.constant(["a", "b"]), tf.constant(["c", "d"])])
        pairs = tf.lookup.KeyValueTensorInitializer(tf.constant(["ac"]), tf.constant([5], tf.int64))
        numbers = tf.lookup.StaticHashTable(pairs, -1).lookup(words)
        row = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next() + numbers
    with session(cluster) as s:
        s.run(tf.tables_initializer())
        assert s.run([words, row])[0].tolist() == [b"ac", b"bd"]
        assert s.run(row).tolist() == [6, 0]


def test_a_variable_of_strings_on_a_worker_is_refused_without_soft_placement(cluster: Cluster) -> None:
    with tf.device(FIRST):
        v = tf.get_variable("names", initializer=tf.constant(["a"]))
    with (
        session(cluster) as s,
        pytest.raises(tf.errors.UnimplementedError, match="strings live in the host's memory"),
    ):
        s.run(v.initializer)
    with session(cluster, allow_soft_placement=True) as s:
        s.run(v.initializer)
        assert s.run(v).tolist() == [b"a"]


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((0, 3), np.int64),
        np.array(2 + 3j),
        np.array([True]),
        np.array([1.5], tf.bfloat16.numpy),
        np.eye(3).T[::2],
    ],
)
def test_tensors_of_all_kinds_arrive_as_they_are(cluster: Cluster, value: np.ndarray) -> None:
    x = tf.placeholder(value.dtype, value.shape)
    with tf.device(FIRST):
        y = tf.reshape(tf.reshape(x, [-1]), value.shape)
    with session(cluster) as s:
        found = s.run(y, {x: value})
    assert np.shape(found) == value.shape
    np.testing.assert_array_equal(found, value)


def test_an_output_whose_size_only_its_kernel_knows_crosses(cluster: Cluster) -> None:
    x = tf.placeholder(tf.int32, [4])
    with tf.device(FIRST):
        found = tf.where(tf.greater(tf.cast(x, tf.float32), 1.0))
    with tf.device(SECOND):
        y = tf.reduce_sum(tf.cast(found, tf.float32))
    with session(cluster) as s:
        assert s.run(y, {x: [0, 2, 3, 1]}) == 3


def test_loops_run_in_a_worker(cluster: Cluster) -> None:
    with tf.device(SECOND):
        _, y = tf.while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, y * 2.0), [0, tf.constant(1.0)])
    with session(cluster) as s:
        assert s.run(y) == 1024


def steps(link: Link) -> list[int]:
    """Returns the numbers of results of the steps that are sent from now on."""
    sent: list[int] = []
    submit = link.send

    def send(step: Any) -> None:
        if step.refs is None:
            sent.append(1 + step.returns)
        submit(step)

    link.send = send  # type: ignore[method-assign]  # for the length of a test
    return sent


def test_a_run_is_one_call_to_each_worker_and_the_result_comes_with_it(cluster: Cluster) -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.device(FIRST):
        y = tf.exp(x)
    with tf.device(SECOND):
        z = tf.reduce_sum(y)
    with session(cluster) as s:
        s.run(z, {x: [0, 1]})  # which tensors leave their worker is known after the first run
        sent = [steps(device.link) for device in s.list_devices()[:3]]
        s.run(z, {x: [0, 1]})
    assert sent == [[2], [2], []]


def test_an_update_on_a_parameter_server_takes_three_calls(cluster: Cluster) -> None:
    with tf.device(SERVER):
        v = tf.get_variable("v", initializer=tf.constant([2.0]), use_resource=True)
    with tf.device(FIRST):
        gradient = v * 0.5
    with tf.device(SERVER):
        step = v.assign_sub(gradient)
    with session(cluster) as s:
        s.run(v.initializer)
        s.run(step.op)
        sent = [steps(device.link) for device in s.list_devices()[:3]]
        s.run(step.op)
        assert [len(x) for x in sent] == [1, 0, 2]
        assert s.run(v) == 0.5
    tf.Session.reset(cluster.target)


def counter(name: str = "v") -> Any:
    with tf.device(SECOND):
        v = tf.get_variable(name, [], initializer=tf.zeros_initializer())
    return v, v.assign_add(1.0)


def test_variables_outlive_sessions_and_are_shared_until_they_are_reset(cluster: Cluster) -> None:
    v, more = counter()
    with session(cluster) as s:
        s.run(v.initializer)
        s.run(more)
    with session(cluster) as s, session(cluster) as other:
        other.run(more)
        assert s.run(v) == 2
        np.testing.assert_array_equal(s.read_variables([v])[0], 2)
    tf.Session.reset(cluster.target)
    with session(cluster) as s, pytest.raises(tf.errors.FailedPreconditionError, match="variable 'v' has no value"):
        s.run(v)


def test_a_model_trains_in_a_worker_as_it_does_here(cluster: Cluster) -> None:
    def losses(target: str, device: str) -> list[float]:
        with tf.Graph().as_default(), tf.device(device):
            w = tf.Variable([1.0, -2.0])
            loss = tf.reduce_sum(tf.square(w))
            step = tf.train.AdamOptimizer(0.1).minimize(loss)
            with tf.Session(target, config=tf.SessionConfig(plugins=["cpu"])) as s:
                s.run(tf.global_variables_initializer())
                return [s.run([loss, step])[0] for _ in range(10)]

    assert losses(cluster.target, FIRST) == losses("", "")
    tf.Session.reset(cluster.target)


def test_random_numbers_are_those_of_a_local_session(cluster: Cluster) -> None:
    x = tf.random_uniform([3], seed=5)
    with session(cluster) as s, tf.Session(config=tf.SessionConfig(plugins=["cpu"])) as local:
        for _ in range(2):
            np.testing.assert_array_equal(s.run(x), local.run(x))


def test_late_errors_keep_op_node_device_and_line(cluster: Cluster) -> None:
    x = tf.placeholder(tf.int32, [2])
    with tf.device(FIRST):
        y = tf.floordiv(x, [1, 0], name="quotient")
    with tf.device(SECOND):
        z = tf.square(y)
    with session(cluster) as s:
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            s.run(z, {x: [1, 1]})
        assert s.run(tf.exp(0.0)) == 1  # the session goes on
    text = str(raised.value)
    assert raised.value.node == "quotient"
    assert "FloorDiv 'quotient'" in text
    assert FIRST in text
    assert "test_sessions.py:" in text


def test_an_update_that_rests_on_an_error_of_another_worker_is_not_made(cluster: Cluster) -> None:
    x = tf.placeholder(tf.int32, [])
    with tf.device(FIRST):
        y = tf.floordiv(1, x)
    with tf.device(SECOND):
        v = tf.get_variable("n", [], tf.int32, tf.zeros_initializer())
        more = v.assign_add(y)
    with session(cluster) as s:
        s.run(v.initializer)
        s.run(more, {x: 1})
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(more, {x: 0})
        assert s.run(v) == 1
    tf.Session.reset(cluster.target)


def test_dropped_tensors_are_dropped_in_the_worker(cluster: Cluster) -> None:
    x = tf.placeholder(tf.float32, [1000])
    with tf.device(FIRST):
        y = tf.exp(x)
    with session(cluster) as s:
        allocator = s.list_devices()[0].allocator
        s.run(y, {x: np.ones(1000)})
        before = allocator.statistics().used
        for _ in range(20):
            s.run(y, {x: np.ones(1000)})
        assert allocator.statistics().used <= before


@pytest.mark.parametrize("address", ["", "a/b", "a/b/c", "a b"])
def test_a_malformed_target_is_refused(address: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="is malformed; ray:<cluster>"):
        tf.Session(f"ray:{address}")


def test_a_cluster_without_workers_is_not_found(cluster: Cluster) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=f"'other' has no workers in the Ray at .*: {cluster.name}\\)"):
        tf.Session("ray:other")


def test_a_task_that_the_cluster_lacks_is_refused(cluster: Cluster) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="worker/9': the cluster has no such task; one of ps/0"):
        tf.Session(f"ray:{cluster.name}/worker/9")


def test_an_address_of_another_ray_is_refused(cluster: Cluster) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="this process is in the Ray at"):
        tf.Session(f"ray:{cluster.name}@127.0.0.1:1")


def test_sessions_with_other_devices_cannot_share_a_variable(cluster: Cluster) -> None:
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        total = tf.get_variable("of_other_devices", initializer=tf.constant(1.0))
        with session(cluster) as s:
            s.run(total.initializer)
        other = tf.SessionConfig(plugins=["cpu"], device_options={"CPU": {"isa": "scalar"}})
        with (
            tf.Session(cluster.target, config=other) as s,
            pytest.raises(
                tf.errors.InvalidArgumentError, match="sessions that share it need equal plugins and settings"
            ),
        ):
            s.run(total)
        tf.Session.reset(cluster.target)


def test_ray_client_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="the address of the GCS"):
        tf.Session("ray:other@ray://host:10001")


def test_a_session_has_the_devices_that_its_filters_name(cluster: Cluster) -> None:
    filters = ["/job:ps", "/job:worker/task:1/device:CPU:0"]
    with tf.Session(cluster.target, config=tf.SessionConfig(plugins=["cpu"], device_filters=filters)) as s:
        assert [d.name for d in s.list_devices()] == [
            "/job:worker/replica:0/task:1/device:CPU:0",
            "/job:ps/replica:0/task:0/device:CPU:0",
            "/job:localhost/replica:0/task:0/device:CPU:0",
        ]


def test_a_session_whose_filters_leave_a_task_out_does_not_need_it(cluster: Cluster) -> None:
    spec = tf.train.ClusterSpec({"worker": ["filtered:0", "filtered:1"]})
    server = tf.train.Server(spec, "worker", 0)  # the other is never started
    config = tf.ConfigProto(device_filters=["/job:worker/task:0"])
    with tf.Session(server.target, config=config) as s:
        assert s.run(tf.exp(0.0)) == 1


def test_filters_that_name_no_task_are_refused(cluster: Cluster) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="device_filters are /job:master; one of its tasks"):
        tf.Session(cluster.target, config=tf.ConfigProto(device_filters=["/job:master"]))
