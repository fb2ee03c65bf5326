"""The test case of programs: sessions, and what is fresh for each test."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from timberframe.api.framework import device as on_device
from timberframe.api.random_seeds import set_random_seed
from timberframe.test.assertions import Assertions
from timberframe.test.devices import accelerator_names, gpu_device_name
from timberframe.test.folders import get_temp_dir
from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.defaults import get_default_session
from timberframe_core.graph.graph import Graph, get_default_graph, reset_default_graph
from timberframe_core.runtime.session import Session

SEED = 87654321


def _eager_value(tensor: Any) -> Any:
    """Returns the value of an EagerTensor; None for operations, which eager execution has none of."""
    return None if tensor is None else convert_to_tensor(tensor).numpy()  # type: ignore[attr-defined]  # an EagerTensor


class TestCase(Assertions):
    """A test case of absl with a fresh default graph and fixed seeds for each test, and assertions on arrays.

    Tensors are evaluated by the session that is open.
    """

    def __init__(self, methodName: str = "runTest") -> None:  # noqa: N803 - unittest's name
        super().__init__(methodName)
        self._cached: tuple[Graph, Session] | None = None

    def setUp(self) -> None:
        super().setUp()
        random.seed(SEED)
        np.random.seed(SEED % 2**32)  # noqa: NPY002 - programs under test draw from it
        reset_default_graph()
        set_random_seed(SEED)

    def tearDown(self) -> None:
        if self._cached is not None:
            self._cached[1].close()
            self._cached = None
        super().tearDown()

    def get_temp_dir(self) -> str:
        """Returns a folder for files of this test."""
        folder = os.path.join(get_temp_dir(), self.id())
        os.makedirs(folder, exist_ok=True)
        return folder

    @contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """A session of its own. use_gpu: on an accelerator if there is one, else on the CPU; force_gpu: there alone."""
        given: Any = graph or get_default_graph()
        if given.eager:
            yield given.session
            return
        with given.as_default(), Session(graph=given, config=config) as session, _placed(use_gpu, force_gpu):
            yield session

    @contextmanager
    def cached_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """The same session each time in a test, for the same graph."""
        given: Any = graph or get_default_graph()
        if given.eager:
            yield given.session
            return
        if self._cached is None:
            self._cached = given, Session(graph=given, config=config)
        if self._cached[0] is not given:
            raise InvalidArgumentError("TestCase.cached_session: the graph is another one than before; use `session`")
        with given.as_default(), self._cached[1].as_default(), _placed(use_gpu, force_gpu):
            yield self._cached[1]

    def test_session(self, *args: Any, **kwargs: Any) -> AbstractContextManager[Session]:
        """`cached_session`, or where a graph or configuration is given, `session`."""
        if self.id().endswith(".test_session"):
            self.skipTest("unittest takes it for a test by its name")
        if args or kwargs.get("graph") is not None or kwargs.get("config") is not None:
            return self.session(*args, **kwargs)
        return self.cached_session(**kwargs)

    test_session.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test

    def evaluate(self, tensors: Any) -> Any:
        """Returns the values of tensors, in their structure, by the session that is open or
        else by `cached_session`.
        """
        if get_default_graph().eager:
            return nest.map_structure(_eager_value, tensors)
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.cached_session() as cached:
            return cached.run(tensors)


@contextmanager
def _placed(use_gpu: bool, force_gpu: bool) -> Iterator[None]:
    if force_gpu and not accelerator_names():
        raise InvalidArgumentError("TestCase.session: force_gpu is set and no accelerator is here; one is required")
    with on_device(gpu_device_name() if use_gpu or force_gpu else "/cpu:0"):
        yield
