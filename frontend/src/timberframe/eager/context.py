"""Switches eager execution on, for a program or for a block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.eager.execution.graph import EagerGraph
from timberframe_core.config import SessionConfig
from timberframe_core.errors import InvalidArgumentError, WrongStateError
from timberframe_core.graph.graph import get_default_graph, set_global_graph

DEVICE_PLACEMENT_EXPLICIT = 0
DEVICE_PLACEMENT_WARN = 1
DEVICE_PLACEMENT_SILENT = 2
DEVICE_PLACEMENT_SILENT_FOR_INT32 = 3
SYNC = 0
ASYNC = 1

_UNCOLLECTED = frozenset(v for k, v in vars(GraphKeys).items() if k.isupper()) - {GraphKeys.GLOBAL_STEP}
"""Collections to which the library adds what it makes: in eager execution that would keep everything for ever."""

_lock = threading.Lock()
_graphs: list[EagerGraph] = []


def eager_graph(config: Any = None) -> EagerGraph:
    """Returns the process's graph of eager execution."""
    with _lock:
        if not _graphs:
            _graphs.append(EagerGraph(config, _UNCOLLECTED))
        return _graphs[0]


def current_graph() -> EagerGraph:
    """Returns the graph of eager execution that is the default, or else the process's."""
    graph = get_default_graph()
    return graph if isinstance(graph, EagerGraph) else eager_graph()


def enable(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """See `tf.enable_eager_execution`."""
    if device_policy not in (None, 0, 1, 2, 3):
        raise InvalidArgumentError(
            f"tf.enable_eager_execution: device_policy is {device_policy!r}; one of tf.contrib.eager."
            "DEVICE_PLACEMENT_EXPLICIT, _WARN, _SILENT or _SILENT_FOR_INT32 is required"
        )
    if execution_mode not in (None, SYNC, ASYNC):
        raise InvalidArgumentError(
            f"tf.enable_eager_execution: execution_mode is {execution_mode!r}; tf.contrib.eager.SYNC or ASYNC is "
            "required"
        )
    graph = get_default_graph()
    if graph.eager:
        if config is not None and SessionConfig.of(config) != eager_graph().config:
            raise WrongStateError(
                "tf.enable_eager_execution: eager execution is on with other options; they cannot be changed"
            )
        return
    if len(graph):
        raise WrongStateError(
            f"tf.enable_eager_execution: the default graph has {len(graph)} operations; "
            "it must be called at program startup, before any operation is made"
        )
    made = eager_graph(config)
    if config is not None and made.config != SessionConfig.of(config):
        raise WrongStateError("tf.enable_eager_execution: it was on with other options; they cannot be changed")
    set_global_graph(made)


@contextmanager
def eager_mode() -> Iterator[None]:
    """Makes operations of the block run when they are made, whatever surrounds it."""
    with eager_graph().as_default():
        yield
