"""Activations, initializers, regularizers and constraints of layers, by the names that Keras has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timberframe.api import random_initializers as random
from timberframe.api.initializers import identity, ones_initializer, zeros_initializer
from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import clip_by_value
from timberframe.api.softmax import softmax
from timberframe.api.unary import abs, elu, exp, relu, selu, sigmoid, softplus, softsign, sqrt, square, tanh
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError

_DEVIATION = 0.05
"""Of Keras's random initializers; uniform numbers are within it."""
_SMALL = 1e-7


def _hard_sigmoid(x: Any) -> Any:
    return clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


ACTIVATIONS: Mapping[str, Callable[[Any], Any]] = {
    "elu": elu, "exponential": exp, "hard_sigmoid": _hard_sigmoid, "linear": lambda x: x, "relu": relu, "selu": selu,
    "sigmoid": sigmoid, "softmax": softmax, "softplus": softplus, "softsign": softsign, "tanh": tanh,
}  # fmt: skip
INITIALIZERS: Mapping[str, Callable[[], Any]] = {
    "glorot_normal": random.glorot_normal_initializer,
    "glorot_uniform": random.glorot_uniform_initializer,
    "he_normal": random.he_normal,
    "he_uniform": random.he_uniform,
    "identity": identity,
    "lecun_normal": random.lecun_normal,
    "lecun_uniform": random.lecun_uniform,
    "ones": ones_initializer,
    "orthogonal": random.orthogonal_initializer,
    "random_normal": lambda: random.random_normal_initializer(stddev=_DEVIATION),
    "random_uniform": lambda: random.random_uniform_initializer(-_DEVIATION, _DEVIATION),
    "truncated_normal": lambda: random.truncated_normal_initializer(stddev=_DEVIATION),
    "variance_scaling": random.variance_scaling_initializer,
    "zeros": zeros_initializer,
}


def _l1(x: Any) -> Any:
    total: Any = reduce_sum(abs(x))
    return 0.01 * total


def _l2(x: Any) -> Any:
    total: Any = reduce_sum(square(x))
    return 0.01 * total


REGULARIZERS: Mapping[str, Callable[[Any], Any]] = {"l1": _l1, "l1_l2": lambda x: _l1(x) + _l2(x), "l2": _l2}


def _lengths(x: Any) -> Any:
    """Returns the lengths of vectors along the first axis."""
    return sqrt(reduce_sum(square(x), 0, keepdims=True))


def _max_norm(x: Any) -> Any:
    lengths = _lengths(x)
    return x * (clip_by_value(lengths, 0.0, 2.0) / (_SMALL + lengths))


CONSTRAINTS: Mapping[str, Callable[[Any], Any]] = {
    "max_norm": _max_norm,
    "non_neg": relu,
    "unit_norm": lambda x: x / (_SMALL + _lengths(x)),
}


def activation_function(owner: str, given: Any) -> Any:
    """Returns the function that is meant: the one given, the one of a name, or None."""
    return _function(owner, "activation", ACTIVATIONS, given)


def weight_functions(owner: str, initializer: Any, regularizer: Any, constraint: Any) -> tuple[Any, Any, Any]:
    """Returns the initializer, the regularizer and the constraint of a variable that are meant,
    each None or by a name, too.
    """
    if isinstance(initializer, str):
        initializer = _by_name(owner, "initializer", INITIALIZERS, initializer)()
    return (
        initializer,
        _function(owner, "regularizer", REGULARIZERS, regularizer),
        _function(owner, "constraint", CONSTRAINTS, constraint),
    )


def _function(owner: str, what: str, known: Mapping[str, Callable[[Any], Any]], given: Any) -> Any:
    if isinstance(given, str):
        return _by_name(owner, what, known, given)
    if given is not None and not callable(given):
        raise InvalidTypeError(f"{owner}: {what} is {given!r}; a function, the name of one, or None is required")
    return given


def _by_name(owner: str, what: str, known: Mapping[str, Any], name: str) -> Any:
    if name not in known:
        raise InvalidArgumentError(f"{owner}: {what} is '{name}'; the names are {', '.join(known)}")
    return known[name]
