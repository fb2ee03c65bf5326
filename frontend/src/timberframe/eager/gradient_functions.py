"""Functions that differentiate functions: `tf.contrib.eager.gradients_function` and its relatives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from timberframe.eager.tape import GradientTape
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor


def implicit_value_and_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that gives f's result, and pairs of gradient and variable for the
    trainable variables that f reads.

    Raises InvalidArgumentError where f reads none.
    """

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with GradientTape() as tape:
            value = _result(f(*args, **kwargs), f)
        variables = tape.watched_variables()
        if not variables:
            raise InvalidArgumentError(
                f"implicit_gradients: {_name(f)} reads no trainable variable; at least one is required"
            )
        return value, list(zip(tape.gradient(value, list(variables)), variables, strict=True))

    return differentiated


def implicit_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that gives pairs of gradient and variable for the trainable variables that f reads."""

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        return implicit_value_and_gradients(f)(*args, **kwargs)[1]

    return differentiated


def value_and_gradients_function(f: Callable[..., Any], params: Sequence[Any] | None = None) -> Callable[..., Any]:
    """Returns a function that gives f's result and its gradients with respect to its arguments.

    params: the positions of the arguments, by default all. The function also takes `dy`, the gradient to begin with.
    """

    @functools.wraps(f)
    def differentiated(*args: Any, dy: Any = None, **kwargs: Any) -> Any:
        chosen = list(range(len(args))) if params is None else list(params)
        wrong = [p for p in chosen if not isinstance(p, int) or not 0 <= p < len(args)]
        if wrong or not chosen:
            raise InvalidArgumentError(
                f"gradients_function: {_name(f)} has {len(args)} arguments and params is {params!r}; "
                "positions of arguments are required"
            )
        given = [convert_to_tensor(a) if i in chosen else a for i, a in enumerate(args)]
        sources = [given[i] for i in chosen]
        with GradientTape() as tape:
            tape.watch(sources)
            value = _result(f(*given, **kwargs), f)
        return value, tape.gradient(value, sources, dy)

    return differentiated


def gradients_function(f: Callable[..., Any], params: Sequence[Any] | None = None) -> Callable[..., Any]:
    """Returns a function that gives the gradients of f with respect to its arguments; params: their positions."""

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        return value_and_gradients_function(f, params)(*args, **kwargs)[1]

    return differentiated


def _result(value: Any, f: Any) -> Any:
    if value is None:
        raise InvalidArgumentError(f"gradients_function: {_name(f)} returned None; a tensor is required")
    return value


def _name(f: Any) -> str:
    return f"'{getattr(f, '__name__', f)}'"
