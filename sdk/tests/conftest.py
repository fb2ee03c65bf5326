"""Registers the NumPy device and the asynchronous device beside the installed plugins."""

from __future__ import annotations

from timberframe_core.plugin import loader
from timberframe_sdk import numpy_device
from timberframe_sdk.testing import asynchronous_device

loader.registry.discover()
if "numpy" not in loader.registry.plugins:
    loader.registry.add("numpy", numpy_device)
if "async" not in loader.registry.plugins:
    loader.registry.add("async", asynchronous_device)
