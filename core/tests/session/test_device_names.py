"""Names of devices: TensorFlow's full ones and their short forms, matched part by part."""

from __future__ import annotations

import pytest

import timberframe as tf

LOCAL = "/job:localhost/replica:0/task:0"


def placed_on(request: str, config: tf.SessionConfig | None = None) -> str:
    """Returns the full name of the device that runs a node which requests this one."""
    with tf.Graph().as_default() as graph, tf.device(request):
        y = tf.add(tf.placeholder(tf.float32, ()), 1.0, name="sum")
    with tf.Session(graph=graph, config=config) as session:
        placement = next(p for p in session.explain(y).placements if p.node == "sum")
        return next(d.name for d in session.list_devices() if d.spec == placement.device)


def test_devices_have_the_full_names_of_tensorflow(device_type: str) -> None:
    assert tf.Session().list_devices()[0].name == f"{LOCAL}/device:{device_type}:0"


def test_printed_devices_show_full_names(device_type: str) -> None:
    assert f"{LOCAL}/device:{device_type}:0 (" in repr(tf.Session().list_devices())


@pytest.mark.parametrize(
    "form",
    [
        "/job:localhost/replica:0/task:0/device:{type}:0",
        "/job:localhost/replica:0/task:0/{type}:0",
        "/job:localhost",
        "/task:0",
        "/device:{type}:0",
        "/{type}:0",
        "{type}:0",
        "/{type}",
        "/{type}:*",
    ],
)
def test_short_forms_mean_the_local_device(form: str, device_type: str) -> None:
    assert placed_on(form.format(type=device_type.lower())) == f"{LOCAL}/device:{device_type}:0"


@pytest.mark.parametrize("request_", ["/job:ps/task:1", "/job:ps", "/task:1", "/replica:1", "/job:worker/cpu:0"])
def test_a_request_for_another_task_does_not_match_local_devices(request_: str) -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="does not exist; devices: /job:localhost/replica:0/task:0/device:"
    ):
        placed_on(request_)


def test_soft_placement_moves_a_request_for_another_task(device_type: str) -> None:
    soft = tf.SessionConfig(allow_soft_placement=True)
    assert placed_on("/job:ps/task:1", soft) == f"{LOCAL}/device:{device_type}:0"


def test_a_graph_def_with_full_names_loads_and_runs(device_type: str) -> None:
    full = f"{LOCAL}/device:{device_type}:0"
    with tf.Graph().as_default() as graph, tf.device(full):
        tf.add(tf.constant([1.0]), 1.0, name="sum")
    with tf.Graph().as_default() as loaded:
        tf.import_graph_def(graph.as_graph_def(), name="")
    with tf.Session(graph=loaded) as session:
        assert loaded.get_operation_by_name("sum").device == full
        assert session.run("sum:0").tolist() == [2]


def test_partition_graphs_name_devices_in_full(device_type: str) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, ())
        y = tf.square(x)
    metadata = tf.RunMetadata()
    with tf.Session(graph=graph) as session:
        session.run(y, {x: 2.0}, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
    assert {n.device for p in metadata.partition_graphs for n in p.node if n.op == "Square"} == {
        f"{LOCAL}/device:{device_type}:0"
    }
