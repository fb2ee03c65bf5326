"""What all metrics share: local variables, weights, collections."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from timberframe.api.arrays import expand_dims, squeeze
from timberframe.api.constants import zeros
from timberframe.api.framework import GraphKeys, add_to_collections
from timberframe.api.selection import cast
from timberframe.api.variable_scope import variable_scope
from timberframe.api.variables import Variable
from timberframe_core.dtypes import float32
from timberframe_core.errors import InvalidArgumentError, WrongStateError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import format_shape

Metric = Callable[..., tuple[Any, Any]]


def metric(scope: str | Callable[..., str]) -> Callable[[Metric], Metric]:
    """Makes a metric of a function that builds (value, update).

    The metric takes three arguments after those of the function: metrics_collections and updates_collections, to which
    the value and the update are added, and name, a variable scope to build in. scope: its name where none is given, or
    what makes it from the function's arguments.
    """

    def made(build: Metric) -> Metric:
        own = inspect.signature(build)
        added_last = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for n in _LAST]
        signature = own.replace(parameters=[*own.parameters.values(), *added_last])

        @functools.wraps(build)
        def function(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
            arguments = signature.bind(*args, **kwargs).arguments
            metrics, updates, name = (arguments.pop(n, None) for n in _LAST)
            with variable_scope(name, scope if isinstance(scope, str) else scope(**arguments)):
                return published(*build(**arguments), metrics, updates)

        function.__signature__ = signature  # type: ignore[attr-defined]  # what inspect reads
        return function

    return made


_LAST = ("metrics_collections", "updates_collections", "name")


def metric_variable(shape: Any, dtype: Any = float32, name: str | None = None) -> Variable:
    """Returns a local variable of zeros that a metric counts in; of GraphKeys.LOCAL_VARIABLES and METRIC_VARIABLES."""
    if get_default_graph().eager:
        raise WrongStateError(
            "tf.metrics are made in eager execution, where each call would begin again; "
            "tf.contrib.eager.metrics has those that add up"
        )
    kept = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    return Variable(lambda: zeros(shape, dtype), trainable=False, collections=kept, name=name)


def added(variable: Variable, amount: Any) -> Any:
    """Adds to a variable and returns its new value."""
    return variable.assign_add(amount)


def published(value: Any, update: Any, metrics_collections: Any, updates_collections: Any) -> tuple[Any, Any]:
    """Returns the value of a metric and its update, added to the collections that were given."""
    for names, tensor in ((metrics_collections, value), (updates_collections, update)):
        if names:
            add_to_collections([names] if isinstance(names, str) else list(names), tensor)
    return value, update


def fitted(predictions: Any, labels: Any, weights: Any = None) -> tuple[Tensor, Tensor, Any]:
    """Predictions, labels and weights of one rank: a last axis of size 1 that one of them has more is left out."""
    made, wanted = convert_to_tensor(predictions), convert_to_tensor(labels)
    if made.shape.ndims is not None and wanted.shape.ndims is not None:
        more = made.shape.ndims - wanted.shape.ndims
        if more == 1 and made.shape.as_list()[-1] in (1, None):
            made = squeeze(made, [-1])
        elif more == -1 and wanted.shape.as_list()[-1] in (1, None):
            wanted = squeeze(wanted, [-1])
        elif more:
            raise InvalidArgumentError(
                f"tf.metrics: predictions have shape {format_shape(made.static_shape)} and labels "
                f"{format_shape(wanted.static_shape)}; they must be equal"
            )
    made.shape.assert_is_compatible_with(wanted.shape)
    return made, wanted, None if weights is None else _weights(made, weights)


def _weights(values: Tensor, weights: Any) -> Tensor:
    given = convert_to_tensor(weights)
    rank, own = values.shape.ndims, given.shape.ndims
    if rank is None or own is None or own in (0, rank):
        return given
    if own == rank + 1:
        return squeeze(given, [-1])
    if own == rank - 1:
        return expand_dims(given, -1)
    raise InvalidArgumentError(
        f"tf.metrics: weights have shape {format_shape(given.static_shape)} for values of shape "
        f"{format_shape(values.static_shape)}; a scalar or one weight for each value is required"
    )


def weighted(values: Tensor, weights: Any) -> tuple[Any, Any]:
    """Returns values times weights, and the weights of each value, ones where none are given."""
    if weights is None:
        return values, apply_op("OnesLike", [values])
    wide = apply_op("Mul", [cast(weights, values.dtype), apply_op("OnesLike", [values])])
    return apply_op("Mul", [values, wide]), wide


def total(x: Any) -> Any:
    """Returns the sum of all elements."""
    made = convert_to_tensor(x)
    axes = (
        list(range(made.shape.ndims))
        if made.shape.ndims is not None
        else apply_op("Range", [0, apply_op("Rank", [made]), 1])
    )
    return apply_op("Sum", [made, axes])


def ratio(part: Any, whole: Any) -> Any:
    """part / whole, 0 where whole is not positive."""
    part, whole = convert_to_tensor(part), convert_to_tensor(whole)
    positive = apply_op("Greater", [whole, 0])
    safe = apply_op("SelectV2", [positive, whole, apply_op("OnesLike", [whole])])
    return apply_op("SelectV2", [positive, apply_op("RealDiv", [part, safe]), apply_op("ZerosLike", [part])])
