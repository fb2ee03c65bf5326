"""`tf.contrib.framework`: argument scopes, variables by name, checkpoints."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from timberframe.api.control_flow import cond
from timberframe.api.framework import GraphKeys, add_to_collection, get_collection, get_static_value
from timberframe.api.framework import device as on_device
from timberframe.api.framework import is_tensor as is_tensor
from timberframe.api.search import argsort as argsort
from timberframe.api.search import sort as sort
from timberframe.api.type_assertions import assert_same_float_dtype as assert_same_float_dtype
from timberframe.api.type_assertions import assert_scalar as assert_scalar
from timberframe.api.variable_scope import get_variable
from timberframe.api.variables import Variable
from timberframe.boundary import guard
from timberframe.compat.deprecation import deprecated as deprecated
from timberframe.compat.deprecation import deprecated_args as deprecated_args
from timberframe.train.checkpoint_utils import init_from_checkpoint as init_from_checkpoint
from timberframe.train.checkpoint_utils import list_variables as list_variables
from timberframe.train.checkpoint_utils import load_checkpoint as load_checkpoint
from timberframe.train.checkpoint_utils import load_variable as load_variable
from timberframe.train.device_setter import VariableDeviceChooser as VariableDeviceChooser
from timberframe.train.steps import create_global_step as create_global_step
from timberframe.train.steps import get_global_step as get_global_step
from timberframe.train.steps import get_or_create_global_step as get_or_create_global_step
from timberframe_contrib.contrib import nest as nest
from timberframe_contrib.contrib.checkpoints import assign_from_checkpoint as assign_from_checkpoint
from timberframe_contrib.contrib.checkpoints import assign_from_checkpoint_fn as assign_from_checkpoint_fn
from timberframe_contrib.contrib.checkpoints import assign_from_values as assign_from_values
from timberframe_contrib.contrib.checkpoints import assign_from_values_fn as assign_from_values_fn
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.graph import get_default_graph

__all__ = [
    "VariableDeviceChooser", "add_arg_scope", "add_model_variable", "arg_scope", "arg_scoped_arguments", "argsort",
    "assert_same_float_dtype", "assert_scalar", "assign_from_checkpoint", "assign_from_checkpoint_fn",
    "assign_from_values", "assign_from_values_fn", "create_global_step", "current_arg_scope", "deprecated",
    "deprecated_args", "filter_variables", "get_global_step", "get_local_variables", "get_model_variables",
    "get_name_scope", "get_or_create_global_step", "get_trainable_variables", "get_unique_variable",
    "get_variable_full_name", "get_variables", "get_variables_by_name", "get_variables_by_suffix",
    "get_variables_to_restore", "global_variable", "has_arg_scope", "init_from_checkpoint", "is_tensor",
    "list_variables", "load_checkpoint", "load_variable", "local_variable", "model_variable", "nest", "smart_cond",
    "sort", "variable",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
Scope = dict[str, dict[str, Any]]


class _Scopes(threading.local):
    """The defaults that argument scopes give to functions, by the functions' keys, innermost last."""

    def __init__(self) -> None:
        self.stack: list[Scope] = [{}]


_scopes = _Scopes()


def _key(function: Callable[..., Any]) -> str:
    return getattr(function, "_arg_scope_key", "")


def add_arg_scope(func: F) -> F:
    """Lets `arg_scope` give defaults to a function; used as a decorator."""
    key = f"{func.__module__}.{func.__qualname__}"

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **{**_scopes.stack[-1].get(key, {}), **kwargs})

    call._arg_scope_key = key  # type: ignore[attr-defined]  # how arg_scope knows it
    return call  # type: ignore[return-value]  # it has the same signature


def has_arg_scope(func: Callable[..., Any]) -> bool:
    """Returns whether `arg_scope` may give defaults to a function."""
    return bool(_key(func))


def arg_scoped_arguments(func: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the arguments to which `arg_scope` may give defaults: those of the function that have one already."""
    if not has_arg_scope(func):
        raise InvalidArgumentError(
            f"arg_scoped_arguments: {getattr(func, '__name__', repr(func))} takes no defaults; it must be decorated "
            "with add_arg_scope"
        )
    parameters = inspect.signature(func).parameters.values()
    return tuple(p.name for p in parameters if p.default is not p.empty)


def current_arg_scope() -> Scope:
    """Returns the defaults that hold now."""
    return _scopes.stack[-1]


@contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Scope]:
    """Gives defaults to functions that `add_arg_scope` marks, for all calls inside.

    list_ops_or_scope: a list of functions, with the defaults as keywords; or a scope that was open before, alone.
    Raises InvalidArgumentError for a function that is not marked or has no such argument.
    """
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise InvalidArgumentError("arg_scope: a scope and arguments are given; open the scope, then another one")
        current = {key: dict(defaults) for key, defaults in list_ops_or_scope.items()}
    else:
        current = {key: dict(defaults) for key, defaults in _scopes.stack[-1].items()}
        for function in list_ops_or_scope:
            _check(function, kwargs)
            current[_key(function)] = {**current.get(_key(function), {}), **kwargs}
    _scopes.stack.append(current)
    try:
        yield current
    finally:
        _scopes.stack.pop()


def _check(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    name = getattr(function, "__name__", repr(function))
    if not _key(function):
        raise InvalidArgumentError(f"arg_scope: {name} takes no defaults; it must be decorated with add_arg_scope")
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    unknown = [key for key in given if key not in parameters]
    if unknown:
        raise InvalidArgumentError(
            f"arg_scope: {name} has no argument {', '.join(map(repr, unknown))}; it has {', '.join(parameters)}"
        )


@add_arg_scope
def variable(name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
             trainable: bool = True, collections: Any = None, caching_device: Any = None, device: Any = None,
             partitioner: Any = None, custom_getter: Any = None, use_resource: bool | None = None) -> Any:  # fmt: skip
    """`tf.get_variable`, under an argument scope. device: where it is, a name or a function."""
    names = list(collections) if collections else [GraphKeys.GLOBAL_VARIABLES]
    with on_device(device or ""):
        return get_variable(
            name, shape, dtype, initializer, regularizer, trainable, list(dict.fromkeys(names)), caching_device,
            partitioner, use_resource=use_resource, custom_getter=custom_getter,
        )  # fmt: skip


@add_arg_scope
def model_variable(name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
                   trainable: bool = True, collections: Any = None, caching_device: Any = None, device: Any = None,
                   partitioner: Any = None, custom_getter: Any = None,
                   use_resource: bool | None = None) -> Any:  # fmt: skip
    """`variable`, which is also of GraphKeys.MODEL_VARIABLES."""
    names = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(name, shape, dtype, initializer, regularizer, trainable, names, caching_device, device,
                    partitioner, custom_getter, use_resource)  # fmt: skip


def add_model_variable(var: Any) -> None:
    """Adds a variable to GraphKeys.MODEL_VARIABLES."""
    if not any(v is var for v in get_collection(GraphKeys.MODEL_VARIABLES)):
        add_to_collection(GraphKeys.MODEL_VARIABLES, var)


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """Returns the variables of a collection: those in a scope, and of a name that ends with
    `suffix`, where these are given.

    scope, suffix: regular expressions; scope may be a variable scope. A suffix with a colon goes on to the end of
    ``name:0``.
    """
    pattern = getattr(scope, "name", scope)
    if suffix is not None:
        pattern = f"{pattern or ''}.*{suffix if ':' in suffix else f'{suffix}:'}"
    return get_collection(collection, pattern)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """Returns the variables whose name ends with `suffix`."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """Returns the variables whose last name is this one."""
    return get_variables(scope, f"(?:^|/){given_name}:")


def filter_variables(
    var_list: Iterable[Any],
    include_patterns: Iterable[str] | None = None,
    exclude_patterns: Iterable[str] | None = None,
    reg_search: bool = True,
) -> list[Any]:
    """Returns the variables whose name matches one of the patterns to include (all for None) and
    none of those to exclude.

    The patterns are regular expressions, found anywhere in ``name:0``; at its start only where reg_search is False.
    """
    matches = re.search if reg_search else re.match
    included = None if include_patterns is None else list(include_patterns)
    excluded = list(exclude_patterns or ())
    return [
        v
        for v in var_list
        if (included is None or any(matches(p, v.name) for p in included))
        and not any(matches(p, v.name) for p in excluded)
    ]


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of GraphKeys.MODEL_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of GraphKeys.LOCAL_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_unique_variable(var_op_name: str) -> Any:
    """Returns the only variable of this name, its scope included; InvalidArgumentError where there is none."""
    found = [v for v in get_collection(GraphKeys.GLOBAL_VARIABLES) if v.op.name == var_op_name]
    if len(found) != 1:
        raise InvalidArgumentError(
            f"get_unique_variable: there are {len(found)} variables {var_op_name!r}; exactly one is required"
        )
    return found[0]


def local_variable(initial_value: Any, validate_shape: bool = True, name: str | None = None,
                   use_resource: bool | None = None) -> Any:  # fmt: skip
    """Returns a variable of GraphKeys.LOCAL_VARIABLES, which is neither trained nor saved."""
    return Variable(initial_value, False, [GraphKeys.LOCAL_VARIABLES], validate_shape, name=name)


def global_variable(initial_value: Any, validate_shape: bool = True, name: str | None = None,
                    use_resource: bool | None = None) -> Any:  # fmt: skip
    """Returns a variable of GraphKeys.GLOBAL_VARIABLES, which is saved and not trained."""
    return Variable(initial_value, False, [GraphKeys.GLOBAL_VARIABLES], validate_shape, name=name)


def get_variable_full_name(var: Any) -> str:
    """Returns the name of a variable in checkpoints: of a part, that of the whole."""
    name: str = var.op.name if var.save_slice_info is None else var.save_slice_info.full_name
    return name


def get_name_scope() -> str:
    """Returns the name scope that is open, without a slash at its end."""
    return get_default_graph().get_name_scope()


def smart_cond(
    pred: Any, true_fn: Callable[..., Any] | None = None, false_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Returns what one of two functions returns: chosen now where pred is known, else in the run, as tf.cond does."""
    if not callable(true_fn) or not callable(false_fn):
        raise InvalidTypeError("smart_cond: true_fn or false_fn is not callable; both must be functions")
    known = get_static_value(pred) if is_tensor(pred) else pred
    if known is None:
        return cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of GraphKeys.TRAINABLE_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_to_restore(include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> list[Any]:
    """Returns the variables in the scopes `include` (all for None) that are in none of the scopes `exclude`."""
    found = [v for scope in (include if include is not None else [None]) for v in get_variables(scope)]
    left_out = {id(v) for scope in exclude or () for v in get_variables(scope)}
    return [v for v in dict.fromkeys(found) if id(v) not in left_out]


guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this module
