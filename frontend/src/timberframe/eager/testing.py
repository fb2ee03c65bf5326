"""Tests that run eagerly and in a graph."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from timberframe.api.random_seeds import set_random_seed
from timberframe.eager.context import current_graph, eager_mode
from timberframe.test.case import SEED
from timberframe_core.graph.graph import Graph


def run_test_in_graph_and_eager_modes(
    func: Callable[..., Any] | None = None,
    config: Any = None,
    use_gpu: bool = True,
    reset_test: bool = True,
    assert_no_eager_garbage: bool = False,
) -> Any:
    """Makes a method of a `tf.test.TestCase` run twice: in a graph with a session, and eagerly.

    reset_test: setUp and tearDown run between the two. The others are TensorFlow's and change nothing.
    """
    if func is None:
        return functools.partial(run_test_in_graph_and_eager_modes, config=config, reset_test=reset_test)
    test = func

    @functools.wraps(test)
    def both(self: Any, *args: Any, **kwargs: Any) -> None:
        with Graph().as_default(), self.test_session(config=config):
            test(self, *args, **kwargs)
        if reset_test:
            self.tearDown()
            self.setUp()
        with eager_mode(), _without_new_items(current_graph()):
            set_random_seed(SEED)
            test(self, *args, **kwargs)

    return both


@contextmanager
def _without_new_items(graph: Graph) -> Iterator[None]:
    """Gives the graph's collections back, after the block, the items that they had before it."""
    before = {key: list(graph.get_collection_ref(key)) for key in graph.collections}
    try:
        yield
    finally:
        for key in graph.collections:
            graph.get_collection_ref(key)[:] = before.get(key, [])


def run_all_tests_in_graph_and_eager_modes(cls: Any) -> Any:
    """Makes all tests of a class run twice; see `run_test_in_graph_and_eager_modes`."""
    for name, value in list(vars(cls).items()):
        if name.startswith("test") and name != "test_session" and inspect.isfunction(value):
            setattr(cls, name, run_test_in_graph_and_eager_modes(value))
    return cls
