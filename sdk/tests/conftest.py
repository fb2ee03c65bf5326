"""Registers the NumPy device and the asynchronous device beside the installed plugins; a graph for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import timberframe as tf
from timberframe_core.plugin import loader
from timberframe_sdk import numpy_device
from timberframe_sdk.testing import asynchronous_device

loader.registry.discover()
if "numpy" not in loader.registry.plugins:
    loader.registry.add("numpy", numpy_device)
if "async" not in loader.registry.plugins:
    loader.registry.add("async", asynchronous_device)


@pytest.fixture
def fresh_graph() -> Iterator[None]:
    """A graph of the test's own is the default."""
    with tf.Graph().as_default():
        yield
