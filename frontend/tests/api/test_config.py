"""`tf.config`: the devices, and what programs say about their memory before they begin."""

from __future__ import annotations

import pytest

import timberframe as tf


def test_devices_have_names_of_two_kinds() -> None:
    (cpu,) = tf.config.list_physical_devices("CPU")
    assert cpu == tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")
    (logical,) = tf.config.list_logical_devices("CPU")
    with tf.Graph().as_default(), tf.device(logical.name), tf.Session() as session:
        assert session.run(tf.constant(2.0) * 2.0) == 4
    assert cpu in tf.config.experimental.list_physical_devices()


def test_accelerators_are_those_that_a_session_has() -> None:
    found = tf.config.list_physical_devices("GPU")
    assert bool(found) == tf.test.is_gpu_available()


def test_devices_take_memory_as_it_is_needed() -> None:
    for device in tf.config.list_physical_devices():
        tf.config.experimental.set_memory_growth(device, True)
        assert tf.config.experimental.get_memory_growth(device)


def test_all_devices_are_visible() -> None:
    devices = tf.config.list_physical_devices()
    tf.config.set_visible_devices(devices)
    assert tf.config.get_visible_devices() == devices
    with pytest.raises(tf.errors.UnimplementedError, match="CPU:0 cannot be hidden from all sessions"):
        tf.config.set_visible_devices([], "CPU")


def test_other_devices_are_refused() -> None:
    other = tf.config.PhysicalDevice("/physical_device:GPU:99", "GPU")
    with pytest.raises(ValueError, match=r"GPU:99.* is no device of this machine"):
        tf.config.experimental.set_memory_growth(other, True)
    with pytest.raises(ValueError, match=r"GPU:99.* is no device of this machine"):
        tf.config.set_visible_devices(other)
