"""What `with` blocks make the default: graphs, and sessions to evaluate tensors in."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import NoneType
from typing import TYPE_CHECKING, Any

from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidArgumentError, WrongStateError

if TYPE_CHECKING:
    from timberframe_core.graph.graph import Graph


class Defaults(threading.local):
    """The open `with` blocks of each thread: the last item of `stack` is the default."""

    def __init__(self) -> None:
        self.stack: list[Any] = []

    def remove(self, item: Any) -> None:
        """Takes out the innermost occurrence of an item, which may be there several times."""
        for i in reversed(range(len(self.stack))):
            if self.stack[i] is item:
                del self.stack[i]
                return


class Evaluator(ABC):
    """What gives tensors of its graph their values: a session."""

    graph: Graph

    @abstractmethod
    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Returns the values of `fetches`."""


sessions = Defaults()
"""The sessions of `with session` and `as_default`."""


def get_default_session() -> Any:
    """Returns the innermost session of `with session` or `as_default` in this thread, or None."""
    return sessions.stack[-1] if sessions.stack else None


def default_session(session: Any, graph: Graph) -> Evaluator:
    """Returns the session to evaluate in: the one given, or the default; raises where it is
    missing or of another graph.
    """
    instance(session, (Evaluator, NoneType), "session", "a tf.Session")
    found: Evaluator | None = session or get_default_session()
    if found is None:
        raise WrongStateError("there is no default session; use `with tf.Session():` or pass session=")
    if found.graph is not graph:
        raise InvalidArgumentError("the default session runs another graph; use a session of this tensor's graph")
    return found
