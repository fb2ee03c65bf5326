"""Settings of all packages' tests."""

import gc
import os
import signal
import sys
from typing import Any

import pytest

os.environ.setdefault("TIMBERFRAME_STRICT_REWRITES", "1")  # a rewrite that fails is a defect, not a slower run

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs so, and Python keeps it: tests of Ctrl-C would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leaves what collection has made, millions of objects, out of the garbage collections of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _no_ops_of_tests() -> None:
    """Fails where the import of a test module has defined an op: all later tests of the process would have it, too."""
    registry: Any = sys.modules.get("timberframe_core.ops.definition.registry")
    modules = {op.name: op.shape.__module__.split(".")[-1] for op in registry._ops.values()} if registry else {}
    left = {op: module for op, module in modules.items() if module.startswith("test_") or module == "conftest"}
    assert left == {}, "these ops are defined on import of test modules; define them within temporary_ops()"
