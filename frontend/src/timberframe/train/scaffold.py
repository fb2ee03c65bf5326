"""Scaffold: the operations by which a session of a graph is made ready."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, TypeVar

from timberframe.api.framework import GraphKeys, group
from timberframe.api.lookup import tables_initializer
from timberframe.api.variable_collections import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from timberframe.summary.functions import merge_all
from timberframe.train.saver import Saver
from timberframe_core.arguments import instance
from timberframe_core.errors import WrongStateError
from timberframe_core.graph.graph import Graph, get_default_graph

T = TypeVar("T")


class Scaffold:
    """What makes a session of the default graph ready for training; `finalize` makes the parts that are not given.

    init_op: initializes the model, where no checkpoint does; by default all global variables. init_feed_dict: for it.
    init_fn: called after it, with this Scaffold and the session. ready_op: gives the names of variables that have no
    value; the session is ready where there are none. ready_for_local_init_op: the same, before local_init_op runs.
    local_init_op: runs in every new session; by default it initializes local variables, tables and datasets.
    local_init_feed_dict: for it. summary_op: what is written to summaries, by default all of them merged. saver: of
    checkpoints. copy_from_scaffold: whose parts are taken where none are given.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Saver | None = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        other = instance(
            copy_from_scaffold, (Scaffold, NoneType), "Scaffold: copy_from_scaffold", "a tf.train.Scaffold"
        )
        self._init_op = _first(init_op, other and other._init_op)
        self._init_feed_dict = _first(init_feed_dict, other and other._init_feed_dict)
        self._user_init_fn = _first(init_fn, other and other._user_init_fn)
        self._ready_op = _first(ready_op, other and other._ready_op)
        self._ready_for_local_init_op = _first(ready_for_local_init_op, other and other._ready_for_local_init_op)
        self._local_init_op = _first(local_init_op, other and other._local_init_op)
        self._local_init_feed_dict = _first(local_init_feed_dict, other and other._local_init_feed_dict)
        self._summary_op = _first(summary_op, other and other._summary_op)
        self._saver: Saver | None = _first(saver, other and other._saver)
        self._graph: Graph | None = None

    def finalize(self) -> Scaffold:
        """Makes the parts that are missing, and finalizes the graph: the default one of the first call."""
        if self._graph is not None:
            self._graph.finalize()
            return self
        if self._init_op is None:
            self._init_op = self.get_or_default("init_op", GraphKeys.INIT_OP, global_variables_initializer)
        if self._ready_op is None:
            self._ready_op = self.get_or_default("ready_op", GraphKeys.READY_OP, report_uninitialized_variables)
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = self.get_or_default(
                "ready_for_local_init_op",
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(global_variables()),
            )
        if self._local_init_op is None:
            self._local_init_op = self.get_or_default(
                "local_init_op", GraphKeys.LOCAL_INIT_OP, self.default_local_init_op
            )
        if self._summary_op is None:
            self._summary_op = self.get_or_default("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        if self._saver is None:
            self._saver = self.get_or_default("saver", GraphKeys.SAVERS, lambda: Saver(allow_empty=True))
        assert self._saver is not None
        self._saver.build()
        self._graph = get_default_graph()
        self._graph.finalize()
        return self

    @property
    def init_op(self) -> Any:
        """Initializes the model."""
        return self._init_op

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """Is called with the session after init_op ran; None where no function was given."""
        function = self._user_init_fn
        return None if function is None else lambda session: function(self, session)

    @property
    def init_feed_dict(self) -> Any:
        """Feeds for init_op."""
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        """Names what is not initialized."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """Names what must be initialized before local_init_op."""
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        """Runs in every new session."""
        return self._local_init_op

    @property
    def local_init_feed_dict(self) -> Any:
        """Feeds for local_init_op."""
        return self._local_init_feed_dict

    @property
    def summary_op(self) -> Any:
        """What is written to summaries; None where there are none."""
        return self._summary_op

    @property
    def saver(self) -> Any:
        """Writes checkpoints."""
        return self._saver

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], T]) -> T:
        """Returns the only item of a collection of the default graph, or what default_constructor
        makes, which is added to it.

        WrongStateError where there are several: arg_name is what the user would give to choose one.
        """
        graph = get_default_graph()
        found = graph.get_collection(collection_key)
        if len(found) > 1:
            raise WrongStateError(
                f"Scaffold: the collection '{collection_key}' has {len(found)} items; give tf.train.Scaffold "
                f"{arg_name}=, to say which"
            )
        if found:
            item: T = found[0]
            return item
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """Initializes local variables, tables and datasets."""
        return group(local_variables_initializer(), tables_initializer())


def _first(given: Any, other: Any) -> Any:
    return other if given is None else given
