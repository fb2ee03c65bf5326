"""The global step: the variable that counts how many times a model was trained."""

from __future__ import annotations

from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.api.initializers import zeros_initializer
from timberframe.api.variable_scope import get_variable
from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.graph import Graph, get_default_graph


def get_global_step(graph: Graph | None = None) -> Any:
    """Returns the global step of the graph, by default the current one; None where it has none.

    Raises InvalidArgumentError where the collection GraphKeys.GLOBAL_STEP has several.
    """
    found = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        names = ", ".join(v.name for v in found)
        raise InvalidArgumentError(f"tf.train.get_global_step: the graph has {names}; there must be at most one")
    return found[0] if found else None


def assert_global_step(global_step_tensor: Any) -> None:
    """Raises InvalidTypeError unless it is a variable or tensor of one integer, as a global step is."""
    if not hasattr(global_step_tensor, "dtype") or not global_step_tensor.dtype.base_dtype.is_integer:
        raise InvalidTypeError(f"global step is {global_step_tensor!r}; a variable of an integer is required")
    if global_step_tensor.get_shape().ndims not in (0, None):
        raise InvalidTypeError(f"global step has shape {global_step_tensor.get_shape()}; a scalar is required")


def create_global_step(graph: Graph | None = None) -> Any:
    """Returns a new variable ``global_step``: int64, 0 at first, not trained.

    InvalidArgumentError where there is one.
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise InvalidArgumentError("tf.train.create_global_step: the graph has a global step; it must have none yet")
    with graph.as_default(), graph.name_scope(""):
        return get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=int64,
            initializer=zeros_initializer(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """Returns the global step of the graph, made where there is none."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """Returns the value of a global step in a session."""
    return int(sess.run(global_step_tensor))
