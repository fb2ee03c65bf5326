"""Registers the NumPy device and the canary beside the installed plugins."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from timberframe_core.plugin import loader
from timberframe_sdk import numpy_device


def _canary() -> object:
    path = Path(__file__).parent / "canary.py"
    spec = importlib.util.spec_from_file_location("timberframe_canary", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


loader.registry.discover()
if "numpy" not in loader.registry.plugins:
    loader.registry.add("numpy", numpy_device)
    loader.registry.add("canary", _canary())
