"""Settings of all packages' tests."""

import gc
import os
import signal

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
