"""What a device must have, what it is given, and when it is closed."""

from __future__ import annotations

import subprocess
import sys
import types
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.plugin import loader
from timberframe_sdk import Allocator, CompilerDevice, DeviceAttributes, KernelDevice, Memory, compute, hookimpl
from timberframe_sdk.numpy_device import NumpyAllocator, NumpyDevice


class Whole:
    """A cluster computed by references."""

    memory = Memory()

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster

    def run(self, inputs: Any, context: Any) -> list[np.ndarray]:
        found = {v.id: x for v, x in zip(self.cluster.inputs, inputs, strict=True)}
        for node in self.cluster.nodes:
            values = [v.constant if v.kind == "const" else found[v.id] for v in node.inputs]
            found |= {v.id: x for v, x in zip(node.outputs, compute(node, values), strict=True)}
        return [found[v.id] for v in self.cluster.outputs]


class LeastDevice:
    """No more than a device must have, on memory of its own."""

    type, spec = "LEAST", "/device:LEAST:0"
    attributes = DeviceAttributes(memory=1 << 20)

    def __init__(self) -> None:
        self.allocator = NumpyAllocator()

    def supports(self, node: Any) -> None:
        return None

    def compile(self, cluster: Any) -> Whole:
        return Whole(cluster)

    def copy_in(self, x: np.ndarray) -> np.ndarray:
        return np.array(x)

    def copy_out(self, a: np.ndarray) -> np.ndarray:
        return np.array(a)


def plugin(*devices: Any) -> Any:
    return types.SimpleNamespace(timberframe_devices=hookimpl(lambda config: list(devices)))


@pytest.fixture
def registry() -> loader.PluginRegistry:
    found = loader.PluginRegistry()
    found._discovered = True  # installed plugins stay out
    return found


def made(registry: loader.PluginRegistry, *devices: Any) -> list[Any]:
    return registry.make_devices(registry.add("least", plugin(*devices)), {})


def test_a_device_with_the_least_runs_a_graph_beside_the_cpu() -> None:
    if "least" not in loader.registry.plugins:
        hook = hookimpl(lambda config: [LeastDevice()] * config["count"].get("LEAST", 0))
        loader.registry.add("least", types.SimpleNamespace(timberframe_devices=hook))
    config = tf.SessionConfig(device_count={"LEAST": 1})
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
        x = tf.placeholder(tf.float32, [3])
        with tf.device("/device:LEAST:0"):
            y = x + 1.0
        with tf.device("/device:CPU:0"):
            z = y * 2.0
        np.testing.assert_array_equal(session.run(z, {x: [1, 2, 3]}), [4, 6, 8])


def test_a_device_that_lacks_a_method_is_refused_with_its_name(registry: loader.PluginRegistry) -> None:
    class NoCopies(LeastDevice):
        copy_in = property()  # type: ignore[assignment]  # a property without a getter is an attribute that is not there

    assert made(registry, NoCopies()) == []
    assert "device /device:LEAST:0: has no copy_in" in str(registry.failures()["least"])


def test_a_kernel_device_without_a_method_is_refused_with_its_name(registry: loader.PluginRegistry) -> None:
    class NoCopies(NumpyDevice):
        copy_in = KernelDevice.copy_in  # as if it had none

    assert made(registry, NoCopies()) == []
    assert "device /device:NUMPY:0: has no copy_in; " in str(registry.failures()["least"])


def test_a_compiler_device_without_methods_is_refused_with_their_names(registry: loader.PluginRegistry) -> None:
    class Nothing(CompilerDevice):
        type = "NOTHING"
        attributes = DeviceAttributes(memory=1 << 20)

        def __init__(self) -> None:
            super().__init__()
            self.allocator = NumpyAllocator()

    nothing: Any = Nothing  # for mypy it is abstract
    assert made(registry, nothing()) == []
    words = "device /device:NOTHING:0: has no build, copy_out, supports, upload; "
    assert words in str(registry.failures()["least"])


def test_a_device_without_a_type_is_refused(registry: loader.PluginRegistry) -> None:
    class Nameless(NumpyDevice):
        type = ""

    assert made(registry, Nameless()) == []
    assert ": has no type; every device" in str(registry.failures()["least"])


def test_a_device_without_attributes_is_refused(
    registry: loader.PluginRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(NumpyDevice, "attributes")
    assert made(registry, NumpyDevice()) == []
    assert "device /device:NUMPY:0: has no attributes; every device" in str(registry.failures()["least"])


def test_an_allocator_without_raw_says_so() -> None:
    class Forgetful(Allocator):
        pass

    allocator = Forgetful()
    with pytest.raises(tf.errors.InternalError, match=r"allocator Forgetful: has no raw; .* must define it"):
        allocator.allocate(64)
    assert allocator.statistics().used == 0


def test_a_device_of_an_unknown_dtype_is_refused(registry: loader.PluginRegistry) -> None:
    class Misspelt(LeastDevice):
        attributes = DeviceAttributes(memory=1 << 20, dtypes=("flaot32",))

    assert made(registry, Misspelt()) == []
    assert "attributes.dtypes names flaot32" in str(registry.failures()["least"])


def test_an_asynchronous_device_without_a_marker_is_refused(registry: loader.PluginRegistry) -> None:
    class Late(LeastDevice):
        asynchronous = True

    assert made(registry, Late()) == []
    assert "is asynchronous and has no start_copy_out, marker" in str(registry.failures()["least"])


class Closing(NumpyDevice):
    """Notes that it was closed."""

    def __init__(self, index: int, closed: list[int], fails: bool = False) -> None:
        super().__init__(index)
        self.index, self.closed, self.fails = index, closed, fails

    def close(self) -> None:
        self.closed.append(self.index)
        if self.fails:
            raise ValueError("broken")


def test_devices_are_closed_once_and_the_last_first(registry: loader.PluginRegistry) -> None:
    closed: list[int] = []
    made(registry, *(Closing(i, closed) for i in range(3)))
    registry.close()
    registry.close()
    assert closed == [2, 1, 0]


def test_a_device_that_fails_to_close_stops_no_other(registry: loader.PluginRegistry) -> None:
    closed: list[int] = []
    made(registry, Closing(0, closed), Closing(1, closed, fails=True))
    registry.close()
    assert closed == [1, 0]


@pytest.mark.slow
def test_devices_are_closed_when_the_process_ends() -> None:
    script = """
import timberframe as tf, timberframe_sdk as sdk, types
from timberframe_sdk.numpy_device import NumpyDevice
class Loud(NumpyDevice):
    def close(self): print("closed", self.spec)
sdk.register_plugin("loud", types.SimpleNamespace(timberframe_devices=sdk.hookimpl(lambda config: [Loud(0), Loud(1)])))
session = tf.Session()
print("end")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[:3] == ["end", "closed /device:NUMPY:1", "closed /device:NUMPY:0"]
