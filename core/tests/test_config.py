"""SessionConfig, RunOptions and the messages that stand for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import timberframe as tf
from timberframe_core.config import RunMetadata


def test_config_proto_becomes_a_session_config() -> None:
    proto = tf.ConfigProto(
        device_count={"acme": 2},
        intra_op_parallelism_threads=3,
        inter_op_parallelism_threads=4,
        allow_soft_placement=True,
        log_device_placement=True,
        operation_timeout_in_ms=50,
    )
    assert tf.SessionConfig.of(proto) == tf.SessionConfig(
        device_count={"ACME": 2},
        intra_op_parallelism_threads=3,
        inter_op_parallelism_threads=4,
        allow_soft_placement=True,
        log_device_placement=True,
        operation_timeout_in_ms=50,
    )


def test_no_config_means_the_defaults() -> None:
    assert tf.SessionConfig.of(None) == tf.SessionConfig()


def test_opt_level_zero_switches_optimizations_off() -> None:
    proto = tf.ConfigProto()
    proto.graph_options.optimizer_options.opt_level = -1
    config = tf.SessionConfig.of(proto)
    assert config.optimizations == dict.fromkeys(
        (
            "cover",
            "cse",
            "dense_lists",
            "fold",
            "fuse",
            "hoist",
            "narrow",
            "norms",
            "pads",
            "powers",
            "simplify",
            "sink",
        ),
        False,
    )


def test_a_switch_of_no_pass_is_refused_by_the_session() -> None:
    config = tf.SessionConfig(optimizations={"fyse": False})
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"names 'fyse'; known are .*fold, functionalize, fuse, hoist, narrow, norms, pads, powers, simpl",
    ):
        tf.Session(graph=tf.Graph(), config=config)


def test_config_cannot_be_changed() -> None:
    config = tf.SessionConfig(device_count={"ACME": 1})
    with pytest.raises(TypeError):
        config.device_count["ACME"] = 2  # type: ignore[index]  # the test is that this fails


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"device_count": {"ACME": -1}}, r"device_count\['ACME'\] is -1; an integer of at least 0"),
        ({"device_count": {"ACME": "two"}}, "device_count has 'ACME': 'two'; strings with int are required"),
        ({"device_count": 3}, "device_count is 3; a mapping is required"),
        ({"intra_op_parallelism_threads": -2}, "intra_op_parallelism_threads is -2"),
        ({"allow_soft_placement": "yes"}, "allow_soft_placement is 'yes'; True or False"),
        ({"allow_soft_placement": True, "strict_placement": True}, "contradict each other"),
        ({"memory_limit": {"ACME": 1.5}}, r"memory_limit\['ACME'\] is 1.5; bytes or a fraction"),
        ({"memory_limit": {"ACME": 0}}, r"memory_limit\['ACME'\] is 0"),
        ({"plugins": "acme"}, "plugins is 'acme' of type str; a list of names"),
        ({"optimizations": {"fold": 1}}, "optimizations has 'fold': 1; strings with bool"),
    ],
)
def test_wrong_setting_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"SessionConfig.*{words}"):
        tf.SessionConfig(**arguments)


def test_something_else_is_no_config() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="config: got dict; it must be a ConfigProto"):
        tf.SessionConfig.of({"device_count": 1})


def test_trace_level_switches_tracing_on() -> None:
    assert tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE).trace
    assert not tf.RunOptions().trace


@pytest.mark.parametrize("arguments", [{"timeout_in_ms": -1}, {"trace_level": 9}])
def test_wrong_run_option_is_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"RunOptions.{next(iter(arguments))}"):
        tf.RunOptions(**arguments)


def test_trace_is_saved_as_json(tmp_path: Path) -> None:
    metadata = RunMetadata()
    metadata.trace = {"traceEvents": []}
    metadata.save_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text()) == {"traceEvents": []}


def test_run_without_trace_has_none_to_save(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no trace"):
        RunMetadata().save_trace(tmp_path / "trace.json")


def test_device_filters_of_a_proto_say_which_devices_a_session_uses() -> None:
    config = tf.SessionConfig.of(tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:1/device:CPU:0"]))
    assert config.allows("/job:ps/replica:0/task:3/device:CPU:0")
    assert config.allows("/job:worker/replica:0/task:1/device:CPU:0")
    assert config.allows("/job:worker/replica:0/task:1")
    assert not config.allows("/job:worker/replica:0/task:1/device:GPU:0")
    assert not config.allows("/job:worker/replica:0/task:0")
    assert tf.SessionConfig().allows("/job:worker/replica:0/task:0")


def test_a_malformed_device_filter_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="'/jib:ps'"):
        tf.SessionConfig(device_filters=["/jib:ps"])


def test_options_of_a_run_may_be_set_afterwards() -> None:
    options = tf.RunOptions()
    options.output_partition_graphs = True
    options.trace_level = tf.RunOptions.FULL_TRACE
    assert options == tf.RunOptions(output_partition_graphs=True, trace_level=tf.RunOptions.FULL_TRACE)
    assert options.trace
    with pytest.raises(tf.errors.InvalidArgumentError, match="trace_level is 9"):
        options.trace_level = 9
    with pytest.raises(AttributeError, match="has no field 'tracelevel'"):
        options.tracelevel = 1  # type: ignore[attr-defined]  # that is the point


def test_a_session_has_the_settings_that_it_was_given_under_tensorflows_private_name() -> None:
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=3)) as session:
        settings: Any = session
        assert settings._config.inter_op_parallelism_threads == 3
