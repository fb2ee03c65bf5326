"""variable_creator_scope, replica_device_setter and the list of devices."""

from __future__ import annotations

from typing import Any

import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


def test_creator_gets_the_arguments_by_name() -> None:
    seen: list[dict[str, Any]] = []

    def creator(next_creator: Any, **kwargs: Any) -> Any:
        seen.append(kwargs)
        return next_creator(**kwargs)

    with tf.variable_creator_scope(creator):
        made = tf.get_variable("v", [2], trainable=False)
    tf.Variable(1.0)
    assert [(k["name"], k["trainable"]) for k in seen] == [("v", False)]
    assert isinstance(made, tf.Variable)


def test_innermost_creator_comes_first_and_may_change_arguments() -> None:
    order = []

    def named(label: str) -> Any:
        def creator(next_creator: Any, **kwargs: Any) -> Any:
            order.append(label)
            kwargs["name"] = f"{kwargs['name']}_{label}"
            return next_creator(**kwargs)

        return creator

    with tf.variable_creator_scope(named("outer")), tf.variable_creator_scope(named("inner")):
        assert tf.Variable(1.0, name="v").op.name == "v_inner_outer"
    assert order == ["inner", "outer"]


def test_variables_of_other_graphs_are_left_alone() -> None:
    with tf.variable_creator_scope(lambda next_creator, **kwargs: None), tf.Graph().as_default():
        assert isinstance(tf.Variable(1.0), tf.Variable)


def test_variables_are_spread_over_the_tasks() -> None:
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        variables = [tf.Variable(1.0, name=f"v{i}") for i in range(3)]
        total = tf.add(1.0, 2.0)
    assert [v.device for v in variables] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert total.device == "/job:worker"


def test_cluster_says_how_many_tasks_there_are() -> None:
    cluster = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}
    setter = tf.train.replica_device_setter(worker_device="/job:worker/task:3", cluster=cluster)
    with tf.device(setter), tf.device("/cpu:0"):
        v = tf.Variable(1.0)
        x = tf.identity(1.0)
    assert (v.device, x.device) == ("/job:ps/task:0/device:CPU:0", "/job:worker/task:3/device:CPU:0")


def test_without_tasks_nothing_is_placed() -> None:
    assert tf.train.replica_device_setter() is None


def test_strategy_chooses_the_task() -> None:
    with tf.device(tf.train.replica_device_setter(ps_tasks=3, ps_strategy=lambda op: 2)):
        assert tf.Variable(1.0).device == "/job:ps/task:2"


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"cluster": 3}, "a dict of jobs"), ({"cluster": {}, "ps_device": "/cpu:0"}, "must name a job")],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        tf.train.replica_device_setter(**settings)


def test_local_devices_begin_with_the_cpu() -> None:
    from timberframe.python.client import device_lib

    found = device_lib.list_local_devices()
    if not found:
        pytest.skip("no device plugin is installed")
    assert all(d.device_type == "GPU" for d in found[1:])
    assert [d.name for d in found[1:]] == [f"/device:GPU:{i}" for i in range(len(found) - 1)]
    assert all(d.memory_limit > 0 for d in found)


def test_first_gpu_runs_wherever_there_is_a_device() -> None:
    with tf.device("/gpu:0"):
        x = tf.constant(1.0) + 1.0
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        assert session.run(x) == 2
