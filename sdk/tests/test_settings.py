"""Settings by device type, and for all accelerators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.runtime.devices import plugin_config
from timberframe_sdk import InvalidArgumentError, device_count, device_options, memory_limit, module_of_file


def test_gpu_options_hold_for_every_accelerator() -> None:
    proto = tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.25))
    config = plugin_config(tf.SessionConfig.of(proto))
    assert memory_limit(config, "ACME", 1000) == 250
    assert memory_limit(config, "HOST", 1000, accelerator=False) is None


def test_allow_growth_is_accepted_and_changes_nothing() -> None:
    proto = tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))
    assert plugin_config(tf.SessionConfig.of(proto)) == plugin_config(tf.SessionConfig())


def test_device_type_overrides_what_holds_for_accelerators() -> None:
    config = plugin_config(tf.SessionConfig(memory_limit={"accelerators": 100, "acme": 7}))
    assert memory_limit(config, "ACME", 1000) == 7


def test_a_fraction_limits_the_cpu() -> None:
    with tf.Session() as whole, tf.Session(config=tf.SessionConfig(memory_limit={"CPU": 0.5})) as half:
        limits = [s.list_devices()[0].allocator.statistics().limit for s in (whole, half)]
    assert limits[1] == limits[0] // 2


def test_a_count_of_gpus_is_the_most_of_every_accelerator() -> None:
    config = plugin_config(tf.SessionConfig.of(tf.ConfigProto(device_count={"GPU": 1, "CPU": 3})))
    assert [device_count(config, "ACME", found) for found in (0, 1, 4)] == [0, 1, 1]
    assert device_count(config, "CPU", 1, accelerator=False) == 3
    assert device_count(config, "HOST", 2, accelerator=False) == 2


def test_no_gpus_leaves_the_host_alone() -> None:
    with tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        assert [d.spec for d in session.list_devices() if not d.host_memory] == []


KNOWN = {"mode": ("safe", "fast"), "graphs": (True, False), "target": None}


def test_options_of_a_type_are_those_that_the_session_has_for_it() -> None:
    given = {"acme": {"mode": "fast", "graphs": False, "target": 3}, "other": {"mode": 1}}
    config = plugin_config(tf.SessionConfig(device_options=given))
    assert device_options(config, "ACME", KNOWN) == {"mode": "fast", "graphs": False, "target": 3}
    assert device_options(config, "HOST", KNOWN) == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 1}, "ACME: options speed are not known; known are mode, graphs, target"),
        ({"mode": "slow"}, "ACME: device option mode is 'slow'; one of 'safe', 'fast' is required"),
        ({"graphs": 1}, "ACME: device option graphs is 1; one of True, False is required"),
    ],
)
def test_unknown_options_and_values_are_refused(options: dict[str, object], message: str) -> None:
    config = plugin_config(tf.SessionConfig(device_options={"acme": options}))
    with pytest.raises(InvalidArgumentError, match=message):
        device_options(config, "ACME", KNOWN)


def test_an_option_may_be_given_as_text() -> None:
    config = {"options": {"ACME": {"fast": "true", "mode": "Safe"}}}
    found = device_options(config, "ACME", {"fast": (True, False), "mode": ("safe", "wild")})
    assert found == {"fast": True, "mode": "safe"}


def test_a_library_belongs_to_the_module_in_whose_folder_it_is() -> None:
    assert module_of_file(str(Path(np.__file__).parent / "core" / "libacme.so")) == "numpy"
    assert module_of_file("/no/such/folder/libacme.so") == module_of_file("") == ""
