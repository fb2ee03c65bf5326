"""Sessions with the first OpenCL device, and what graphs give there and on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import timberframe as tf

CPU, OPENCL = "/device:CPU:0", "/device:OPENCL:0"


@contextmanager
def _session() -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        if not any(d.spec == OPENCL for d in session.list_devices()):
            pytest.skip("no OpenCL driver is installed")
        yield session


@pytest.fixture
def session() -> Iterator[tf.Session]:
    """A session whose graph is the default; skips where there is no OpenCL device."""
    with _session() as session:
        yield session


@pytest.fixture
def run_on() -> Callable[..., list[np.ndarray]]:
    """A function: the results of what `build` makes of placeholders for the arrays, on a device, in each run.

    It skips where there is no OpenCL device.
    """

    def run(spec: str, build: Callable[..., Any], *arrays: np.ndarray, runs: int = 1) -> list[np.ndarray]:
        with _session() as session:
            with tf.device(spec):
                places = [tf.placeholder(a.dtype, a.shape) for a in arrays]
                results = list(build(*places))
            session.run(tf.global_variables_initializer())
            feeds = dict(zip(places, arrays, strict=True))
            return [found for _ in range(runs) for found in session.run(results, feeds)]

    return run


@pytest.fixture
def on_device(run_on: Callable[..., list[np.ndarray]]) -> Callable[..., list[np.ndarray]]:
    """As `run_on`, on the OpenCL device."""
    return lambda build, *arrays: run_on(OPENCL, build, *arrays)


@pytest.fixture
def assert_same_bits(run_on: Callable[..., list[np.ndarray]]) -> Callable[..., None]:
    """A function: fails unless `build` gives the same bits on the OpenCL device and on the CPU; see `run_on`."""

    def check(build: Callable[..., Any], *arrays: np.ndarray, runs: int = 1) -> None:
        for mine, theirs in zip(*(run_on(spec, build, *arrays, runs=runs) for spec in (OPENCL, CPU)), strict=True):
            assert mine.shape == theirs.shape
            assert mine.tobytes() == theirs.tobytes()

    return check
