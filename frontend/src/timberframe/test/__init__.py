"""`tf.test`: unit tests of graphs, and gradients compared with differences."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Sequence
from typing import Any
from unittest import mock as mock

from timberframe.test.case import TestCase as TestCase
from timberframe.test.devices import gpu_device_name as gpu_device_name
from timberframe.test.devices import is_built_with_cuda as is_built_with_cuda
from timberframe.test.devices import is_gpu_available as is_gpu_available
from timberframe.test.folders import get_temp_dir as get_temp_dir
from timberframe.test.folders import test_src_dir_path as test_src_dir_path
from timberframe.test.gradients import compute_gradient as compute_gradient
from timberframe.test.gradients import compute_gradient_error as compute_gradient_error
from timberframe.test.stubs import StubOutForTesting as StubOutForTesting
from timberframe_core.graphdef import messages

__all__ = [
    "StubOutForTesting", "TestCase", "assert_equal_graph_def", "compute_gradient", "compute_gradient_error",
    "get_temp_dir", "gpu_device_name", "is_built_with_cuda", "is_gpu_available", "main", "mock", "test_src_dir_path",
]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the tests of the program, and ends it; flags that unittest does not know are those of `tf.flags`."""
    given = list(sys.argv if argv is None else argv)
    if "absl.flags" in sys.modules:
        from timberframe.flags import FLAGS

        given = FLAGS(given, known_only=True)
    unittest.main(argv=given)


def assert_equal_graph_def(actual: Any, expected: Any, checkpoint_v2: bool = False) -> None:
    """Raises AssertionError unless two GraphDefs have the same nodes."""
    given = [messages.as_message(g, messages.GraphDef, "assert_equal_graph_def") for g in (actual, expected)]
    nodes = [{n.name: n for n in g.node} for g in given]
    only = sorted(nodes[0].keys() ^ nodes[1].keys())
    if only:
        raise AssertionError(f"nodes {', '.join(only)} are in one of the graphs alone")
    for name, node in nodes[0].items():
        if node != nodes[1][name]:
            raise AssertionError(f"node '{name}' differs:\n{node}\nand\n{nodes[1][name]}")
