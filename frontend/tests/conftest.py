"""A graph with a session, and what is run in it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    """A graph of its own for a test, which is the default one."""
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def session(graph: tf.Graph) -> Iterator[tf.Session]:
    """A session of the test's graph, which is the default one."""
    with tf.Session(graph=graph) as session:
        yield session


def run(session: tf.Session, tensors: Any, feeds: Any = None) -> Any:
    """Returns what the tensors are with the first values of all variables and tables."""
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    return session.run(tensors, feeds)


def variables(session: tf.Session) -> dict[str, np.ndarray]:
    """Returns the values of the default graph's variables, by the names of their operations."""
    return {v.op.name: session.run(v) for v in tf.global_variables()}


STATUS = Path("/proc/self/statm")
reports_memory = pytest.mark.skipif(not STATUS.exists(), reason="the system does not report the resident memory")


def resident_bytes() -> int:
    """Returns the memory of the process, once what nobody refers to is collected; for tests that
    are marked reports_memory.
    """
    gc.collect()
    return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
