"""A graph, and sessions on devices of a few kernels, without the front end and without TensorFlow's other ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from timberframe_core.config import SessionConfig
from timberframe_core.graph.graph import Graph
from timberframe_core.plugin import loader
from timberframe_core.runtime.session import Session

from . import device


@pytest.fixture
def graph() -> Iterator[Graph]:
    """The default graph of the test."""
    with Graph().as_default() as made:
        yield made


@pytest.fixture
def session(graph: Graph) -> Iterator[Session]:
    """A session of that graph on the devices of this folder."""
    loader.registry.add(device.NAME, device)
    try:
        with Session(graph=graph, config=SessionConfig(plugins=[device.NAME])) as made:
            yield made
    finally:
        loader.registry.remove(device.NAME)


@pytest.fixture
def run(session: Session) -> Callable[..., Any]:
    """The method `run` of the session."""
    return session.run
