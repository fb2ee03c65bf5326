"""One small cluster for all tests of a process: Ray takes seconds to start."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import timberframe as tf

if TYPE_CHECKING:
    from timberframe_ray import Cluster


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks all of these slow: the cluster takes seconds to start, in each process that runs one of them."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    import timberframe_ray  # here, since without Ray the tests are skipped

    folder = tempfile.mkdtemp(prefix="tf-ray-")  # short: sockets are in it
    with timberframe_ray.local_cluster(ps=1, workers=2, folder=folder, object_store_bytes=100 << 20) as made:
        yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def fresh_graph() -> Any:
    with tf.Graph().as_default():
        yield
