"""How an estimator calls the user's functions: input_fn and model_fn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.api.variables import Variable
from timberframe_contrib.estimator.spec import EstimatorSpec, ModeKeys
from timberframe_core import nest
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor

_ARGUMENTS = ("features", "labels", "mode", "params", "config")


def argument_names(function: Callable[..., Any]) -> list[str]:
    """Returns the names of a function's arguments, without those that stand for any number."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [n for n, p in inspect.signature(function).parameters.items() if p.kind not in kinds]


def check_model_fn(model_fn: Any, params: Any) -> None:
    """Raises an error unless model_fn takes the arguments that model functions take."""
    if not callable(model_fn):
        raise InvalidTypeError(f"Estimator: model_fn is {model_fn!r}; a function is required")
    names, label = argument_names(model_fn), _label(model_fn)
    if "features" not in names:
        raise InvalidArgumentError(f"Estimator: {label} has the arguments {names}; features is required")
    if params is not None and "params" not in names:
        raise InvalidArgumentError(f"Estimator: params are given, and {label} has no argument of that name; add it")
    unknown = [n for n in names if n not in _ARGUMENTS]
    if unknown:
        raise InvalidArgumentError(
            f"Estimator: {label} has the argument {', '.join(unknown)}; a model_fn takes {', '.join(_ARGUMENTS)}"
        )


def _label(function: Callable[..., Any]) -> str:
    return f"model_fn '{getattr(function, '__name__', type(function).__name__)}'"


def call_model_fn(
    model_fn: Callable[..., Any], features: Any, labels: Any, mode: str, params: Any, config: Any
) -> EstimatorSpec:
    """Returns the EstimatorSpec of a mode; an error that says what is required where
    model_fn returns something else.
    """
    names = argument_names(model_fn)
    given = {"mode": mode, "params": params, "config": config}
    arguments = {name: value for name, value in given.items() if name in names}
    if "labels" in names:
        arguments["labels"] = labels
    elif labels is not None:
        raise InvalidArgumentError(
            f"Estimator: {_label(model_fn)} has no argument labels, and input_fn returns some; add the argument"
        )
    spec = model_fn(features=features, **arguments)
    if not isinstance(spec, EstimatorSpec):
        raise InvalidTypeError(
            f"Estimator: {_label(model_fn)} returned {_shown(spec)}; a tf.estimator.EstimatorSpec is required"
        )
    if spec.mode != mode:
        raise InvalidArgumentError(
            f"Estimator: {_label(model_fn)} was called for mode {mode!r}, and its EstimatorSpec is for {spec.mode!r}; "
            "that of the argument is required"
        )
    return spec


def _shown(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def call_input_fn(input_fn: Any, mode: str, params: Any, config: Any) -> tuple[Any, Any]:
    """Features and labels of a mode; to predict there are no labels.

    input_fn returns features, a pair (features, labels), or a Dataset of either, whose iterator is initialized with the
    tables.
    """
    if not callable(input_fn):
        raise InvalidTypeError(f"Estimator: input_fn is {input_fn!r}; a function is required")
    given = {"mode": mode, "params": params, "config": config}
    names = argument_names(input_fn)
    result = input_fn(**{name: value for name, value in given.items() if name in names})
    if hasattr(result, "make_initializable_iterator"):
        iterator = result.make_initializable_iterator()
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        result = iterator.get_next()
    features, labels = result, None
    if isinstance(result, list | tuple) and not hasattr(result, "_fields"):
        if len(result) not in (1, 2):
            raise InvalidArgumentError(
                f"Estimator: input_fn returned {len(result)} items; features, or (features, labels), are required"
            )
        features, labels = (*result, None)[:2]
    for value in nest.flatten(features):
        if not isinstance(value, Tensor | Variable) and not hasattr(value, "indices"):
            raise InvalidTypeError(
                f"Estimator: input_fn returned {_shown(value)} among its features; tensors, dicts of them or a "
                "tf.data.Dataset are required"
            )
    return features, None if mode == ModeKeys.PREDICT else labels
