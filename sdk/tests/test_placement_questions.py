"""How often the placer asks devices: a device that looks at more than dtypes costs no more than its own answers."""

from __future__ import annotations

import types

import pytest

import timberframe as tf
from timberframe_sdk import KernelNode, hookimpl
from timberframe_sdk.testing.asynchronous_device import AsynchronousDevice
from timberframe_sdk.testing.loaded import loaded_plugin

NODES = 40


class CountingDevice(AsynchronousDevice):
    """Counts what it is asked about."""

    def __init__(self, kind: str, priority: int, by_dtype: bool, refuses: str | None = None) -> None:
        super().__init__(0, None)
        self.type, self.priority, self.supports_by_dtype, self.refuses = kind, priority, by_dtype, refuses
        self.spec = f"/device:{kind}:0"
        self.asked = 0

    def supports(self, node: KernelNode) -> str | None:
        self.asked += 1
        return self.refuses


def place(*devices: CountingDevice) -> set[str]:
    """Places a chain of equal nodes; gives the devices that they went to."""
    plugin = types.SimpleNamespace(timberframe_devices=hookimpl(lambda config: list(devices)))
    with tf.Graph().as_default() as graph:
        x = y = tf.placeholder(tf.float32, [None])
        for _ in range(NODES):
            y = tf.tanh(y)
    with loaded_plugin("counting", plugin), tf.Session(graph=graph) as session:
        return {p.device for p in session.explain(y, {x: None}).placements}


def test_a_later_device_that_looks_closer_is_not_asked() -> None:
    first, later = CountingDevice("FIRST", 902, True), CountingDevice("LATER", 901, False)
    assert place(first, later) == {"/device:FIRST:0"}
    assert (first.asked, later.asked) == (1, 0)


def test_a_device_that_looks_closer_is_asked_about_each_node() -> None:
    first, later = CountingDevice("FIRST", 902, False), CountingDevice("LATER", 901, True)
    assert place(first, later) == {"/device:FIRST:0"}
    assert first.asked >= NODES
    assert later.asked == 0


@pytest.mark.parametrize("first_by_dtype", [False, True])
def test_devices_that_go_by_dtypes_are_asked_once_beside_one_that_does_not(first_by_dtype: bool) -> None:
    first = CountingDevice("FIRST", 902, first_by_dtype, "it is busy")
    later = CountingDevice("LATER", 901, not first_by_dtype)
    assert place(first, later) == {"/device:LATER:0"}
    assert (first.asked if first_by_dtype else later.asked) == 1
