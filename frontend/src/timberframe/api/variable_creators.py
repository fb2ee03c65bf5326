"""Functions that take part in the making of variables."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph, get_default_graph

__all__ = ["variable_creator_scope"]

Creator = Callable[..., Any]
_COLLECTION = ("variable creators",)


class _Creators(threading.local):
    """The creators of the scopes that are open, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[Creator] = []


def outermost(graph: Graph) -> Graph:
    """Returns the graph around function bodies: a variable made inside a loop or branch belongs there."""
    while isinstance(graph, FuncGraph) and graph.outer is not None:
        graph = graph.outer
    return graph


def _of(graph: Graph, make: bool) -> list[Creator]:
    kept = graph.get_collection_ref(_COLLECTION) if make else graph.get_collection(_COLLECTION)
    if not kept:
        if not make:
            return []
        kept.append(_Creators())
    stack: list[Creator] = kept[0].stack
    return stack


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Iterator[None]:
    """Calls a function in place of the constructor of each variable that is made inside.

    It is called as ``variable_creator(next_creator, **kwargs)`` with the constructor's arguments by name, and returns a
    variable: what ``next_creator(**kwargs)`` makes, perhaps with other arguments. The innermost scope's comes first.
    """
    stack = _of(outermost(get_default_graph()), make=True)
    stack.append(variable_creator)
    try:
        yield
    finally:
        stack.remove(variable_creator)


class Created(type):
    """The metaclass of variables: has the creators of open scopes make them."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        creators = list(_of(outermost(get_default_graph()), make=False))
        make = super().__call__
        if not creators or kwargs.get("variable_def") is not None:
            return make(*args, **kwargs)
        bound = inspect.signature(cls.__init__).bind(None, *args, **kwargs)  # type: ignore[misc]  # of this class
        bound.apply_defaults()
        arguments = dict(list(bound.arguments.items())[1:])
        for creator in creators:
            make = functools.partial(creator, make)
        return make(**arguments)
