"""A device where none is installed, and GraphDefs written by hand, node by node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.graph.apply import to_array
from timberframe_core.graphdef.attributes import encode_attr
from timberframe_core.graphdef.messages import GraphDef
from timberframe_core.graphdef.tensors import encode_array
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import loader
from timberframe_core.runtime.devices import devices_for
from timberframe_sdk.testing import reference_device
from timberframe_sdk.testing.installed import installed_plugin

REFERENCE = "reference"
collect_ignore = ["frame"]  # test_frame_alone.py runs these, in a process of their own without the front end


@pytest.fixture(autouse=True, scope="session")
def reference_plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The SDK's reference device as an installed plugin, if TIMBERFRAME_PLUGINS names it or no other is installed."""
    chosen = os.environ.get(loader.SELECTION_VARIABLE, "").split(",")
    if REFERENCE not in chosen and entry_points(group=loader.ENTRY_POINT_GROUP):
        yield
        return
    with installed_plugin(tmp_path_factory.mktemp("plugin"), REFERENCE, reference_device.__name__):
        loader.registry.discover()
        if REFERENCE not in loader.registry.plugins:  # plugins were looked for before
            loader.registry.add(REFERENCE, reference_device)
        yield


@pytest.fixture(scope="session")
def device_type(reference_plugin: None) -> str:
    """The type of the device that runs what is not placed."""
    return devices_for(tf.SessionConfig())[0].type


@pytest.fixture(autouse=True)
def _cpu(request: pytest.FixtureRequest, device_type: str) -> None:
    if request.node.get_closest_marker("cpu") and device_type != "CPU":
        pytest.skip("asserts what the CPU plugin does")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cpu: asserts what the CPU plugin does, and is skipped without it")


class HandWritten:
    """A GraphDef that grows by one node a call; type attrs that the test leaves out are int32."""

    def __init__(self) -> None:
        self.message: Any = GraphDef()

    def __call__(self, op: str, name: str, *inputs: str, **attrs: Any) -> HandWritten:
        node = self.message.node.add(op=op, name=name)
        node.input.extend(inputs)
        for key, declared in registry.get(op).attrs.items():
            if key in attrs or (declared.required and declared.kind == "type"):
                value = attrs.get(key, tf.int32)
                node.attr[key].CopyFrom(encode_attr(value, declared.kind, None))
        return self

    def const(self, name: str, value: Any, *inputs: str) -> HandWritten:
        """Returns a Const, with these control inputs."""
        array, dtype = to_array(np.asarray(value, np.int32) if isinstance(value, int) else value)
        node = self.message.node.add(op="Const", name=name)
        node.input.extend(inputs)
        node.attr["dtype"].type = dtype.number
        node.attr["value"].tensor.CopyFrom(encode_array(array, dtype))
        return self

    def graph(self) -> tf.Graph:
        """Returns the graph that it becomes."""
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(self.message, name="")
        return graph

    def run(self, fetches: Any, feeds: dict[str, Any] | None = None) -> Any:
        """Returns what one run of a new session gives."""
        with tf.Session(graph=self.graph()) as session:
            return session.run(fetches, feeds)


@pytest.fixture
def write() -> HandWritten:
    return HandWritten()
