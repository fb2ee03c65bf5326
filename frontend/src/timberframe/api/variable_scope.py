"""Variable scopes: where `tf.get_variable` looks, and the settings for the variables made there."""

from __future__ import annotations

import functools
import inspect
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.api.variable_store import VariableStore
from timberframe.api.variables import Variable, VariableAggregation, VariableSynchronization, outermost
from timberframe_core.dtypes import as_dtype, float32
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.apply import to_array
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Tensor

__all__ = [
    "AUTO_REUSE", "VariableScope", "get_local_variable", "get_variable", "get_variable_scope", "no_regularizer",
    "variable_op_scope", "variable_scope",
]  # fmt: skip

_COLLECTION = ("variable scopes",)
_INHERITED = (
    "initializer", "regularizer", "caching_device", "partitioner", "custom_getter", "dtype", "use_resource",
)  # fmt: skip


class _AutoReuse:
    def __repr__(self) -> str:
        return "tf.AUTO_REUSE"


AUTO_REUSE = _AutoReuse()
"""As the `reuse` of a scope: variables that exist are used again, others are made."""


def no_regularizer(_: Any) -> None:
    """Adds no loss: what a scope inside one with a regularizer takes to have none."""


class VariableScope:
    """The settings for the variables of a scope: the prefix of their names, and defaults for get_variable.

    name: without the slash at its end, "" at the root. original_name_scope: the name scope that was opened with it,
    with its slash. reuse: False, True or tf.AUTO_REUSE.
    """

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Callable[..., Any] | None = None,
        name_scope: str = "",
        dtype: Any = float32,
        use_resource: bool | None = None,
        constraint: Callable[[Any], Any] | None = None,
    ) -> None:
        self.reuse = reuse
        self.name = name
        self.initializer = initializer
        self.regularizer = regularizer
        self.caching_device = caching_device
        self.partitioner = partitioner
        self.custom_getter = custom_getter
        self.original_name_scope = name_scope
        self.dtype = dtype
        self.use_resource = use_resource
        self.constraint = constraint

    def reuse_variables(self) -> None:
        """From now on get_variable in this scope finds variables and makes none."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Callable[[Any], Any] | None) -> None:
        """Sets the default regularizer."""
        self.regularizer = regularizer

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default dtype."""
        self.dtype = dtype

    def set_use_resource(self, use_resource: bool) -> None:
        """Accepted; every variable is a resource."""
        self.use_resource = use_resource

    def set_caching_device(self, caching_device: Any) -> None:
        """Accepted; values are not cached."""
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Callable[..., Any] | None) -> None:
        """Sets the function that get_variable calls instead of its own."""
        self.custom_getter = custom_getter

    def get_collection(self, name: str) -> list[Any]:
        """Returns the items of a collection whose names are in this scope."""
        return outermost(get_default_graph()).get_collection(name, f"{self.name}/" if self.name else None)

    def trainable_variables(self) -> list[Any]:
        """Returns the trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """Returns the global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """Returns the local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(self, var_store: VariableStore, name: str, *args: Any, **kwargs: Any) -> Any:
        """Returns the variable `name` of this scope: arguments that are None take the scope's.

        They are those of `get_variable`, with `reuse` after `regularizer`.
        """
        given = {**dict(zip(_GET_VARIABLE, args, strict=False)), **kwargs}
        for key in ("initializer", "regularizer", "caching_device", "partitioner", "constraint", "use_resource"):
            if given.get(key) is None:
                given[key] = getattr(self, key)
        getter = given.pop("custom_getter", None) or self.custom_getter
        full_name = f"{self.name}/{name}" if self.name else name
        with outermost(get_default_graph()).name_scope(None):  # the names of variables depend on variable scopes alone
            given["dtype"] = _dtype_of(full_name, given.get("dtype"), given["initializer"], self.dtype)
            if given.get("reuse") is None:
                given["reuse"] = self.reuse
            if given.get("trainable") is None:
                given["trainable"] = given.get("synchronization") is not VariableSynchronization.ON_READ
            if getter is None:
                return var_store.get_variable(full_name, **given)
            if not _accepts(getter, "constraint"):
                del given["constraint"]
            return getter(getter=var_store.get_variable, name=full_name, **given)


_GET_VARIABLE = (
    "shape", "dtype", "initializer", "regularizer", "reuse", "trainable", "collections", "caching_device",
    "partitioner", "validate_shape", "use_resource", "custom_getter", "constraint", "synchronization", "aggregation",
)  # fmt: skip


def _dtype_of(name: str, dtype: Any, initializer: Any, default: Any) -> Any:
    if initializer is None or (callable(initializer) and not hasattr(initializer, "__tf_tensor__")):
        return default if dtype is None else dtype
    own = initializer.dtype if isinstance(initializer, Tensor | Variable) else to_array(initializer)[1]
    own = own.base_dtype
    if dtype is not None and as_dtype(dtype).base_dtype is not own:
        raise InvalidArgumentError(
            f"get_variable '{name}': the initializer is {own.name} and dtype {as_dtype(dtype).name} is given; "
            "they must be the same"
        )
    return own


def _accepts(function: Callable[..., Any], argument: str) -> bool:
    parameters = inspect.signature(function).parameters
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


class Scopes(threading.local):
    """The current scope of a graph, and how often the scopes in it were opened; each thread has its own."""

    def __init__(self) -> None:
        self.current = VariableScope(False)
        self.opened: Counter[str] = Counter()
        self._inside: defaultdict[str, set[str]] = defaultdict(set)
        """All names ever opened and those of the scopes around them, by what each has up to its last "/"."""

    def open(self, name: str) -> None:
        """Counts a scope, by its full name."""
        self.opened[name] += 1
        inner, outer = name, name.rpartition("/")[0]
        while outer and inner not in self._inside[outer]:
            self._inside[outer].add(inner)
            inner, outer = outer, outer.rpartition("/")[0]

    def forget_inside(self, name: str) -> None:
        """Makes the names of scopes within one, which ends, free again."""
        for inner in self._inside.get(name, ()):
            self.opened.pop(inner, None)
            self.forget_inside(inner)

    @staticmethod
    def of(graph: Graph) -> Scopes:
        kept = graph.get_collection_ref(_COLLECTION)
        if not kept:
            kept.append(Scopes())
        scopes: Scopes = kept[0]
        return scopes

    def unique_name(self, prefix: str) -> str:
        """`prefix`, with a number after it where such a scope was opened in the current one before."""
        full = f"{self.current.name}/{prefix}" if self.current.name else prefix
        if not self.opened[full]:
            return prefix
        number = 1
        while self.opened[f"{full}_{number}"]:
            number += 1
        return f"{prefix}_{number}"


def get_variable_scope() -> VariableScope:
    """Returns the current variable scope."""
    return Scopes.of(outermost(get_default_graph())).current


class variable_scope(AbstractContextManager[VariableScope]):  # noqa: N801 - TensorFlow's name
    """Opens a variable scope, and a name scope with it.

    name_or_scope: a name, or a scope that was open before and is opened again. default_name: the name where
    name_or_scope is None, made unique; such a scope cannot be reused. reuse: True finds variables that exist,
    tf.AUTO_REUSE also makes those that do not, None and False take the surrounding scope's. auxiliary_name_scope: False
    keeps the name scope as it is. The others become defaults of get_variable; values name the graph and are not used.
    """

    def __init__(
        self,
        name_or_scope: str | VariableScope | None,
        default_name: str | None = None,
        values: Sequence[Any] | None = None,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Callable[..., Any] | None = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Callable[[Any], Any] | None = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if name_or_scope is None and default_name is None:
            raise InvalidTypeError("variable_scope: name_or_scope and default_name are None; one is required")
        if name_or_scope is not None and not isinstance(name_or_scope, str | VariableScope):
            raise InvalidTypeError(
                f"variable_scope: name_or_scope is {type(name_or_scope).__name__}; a name or a scope is required"
            )
        if reuse not in (None, False, True) and reuse is not AUTO_REUSE:
            raise InvalidArgumentError(f"variable_scope: reuse is {reuse!r}; None, True or tf.AUTO_REUSE is required")
        if name_or_scope is None and reuse:
            raise InvalidArgumentError("variable_scope: reuse is set and name_or_scope is None; reuse needs a name")
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._reuse = reuse
        self._auxiliary_name_scope = auxiliary_name_scope
        self._constraint = constraint
        self._overrides = {
            "initializer": initializer, "regularizer": regularizer, "caching_device": caching_device,
            "partitioner": partitioner, "custom_getter": custom_getter, "dtype": dtype, "use_resource": use_resource,
        }  # fmt: skip
        self._open: list[AbstractContextManager[VariableScope]] = []

    def __enter__(self) -> VariableScope:
        context = self._scope()
        scope = context.__enter__()
        self._open.append(context)
        return scope

    def __exit__(self, *error: Any) -> bool | None:
        return self._open.pop().__exit__(*error)

    @contextmanager
    def _scope(self) -> Iterator[VariableScope]:
        graph = get_default_graph()
        chosen = self._name_or_scope
        label = chosen.name.rpartition("/")[2] if isinstance(chosen, VariableScope) else chosen or self._default_name
        with (
            _name_scope(graph, label or "", self._auxiliary_name_scope) as name_scope,
            self.without_name_scope(name_scope) as scope,
        ):
            yield scope

    def without_name_scope(self, name_scope: str | None = None) -> AbstractContextManager[VariableScope]:
        """Opens the scope for variables alone. name_scope: what is to be its name scope when it is opened again."""
        scopes, chosen = Scopes.of(outermost(get_default_graph())), self._name_or_scope
        if isinstance(chosen, VariableScope):
            return self._reopened(scopes, chosen)
        name = scopes.unique_name(self._default_name or "") if chosen is None else chosen
        return self._inside(scopes, name, name if name_scope is None else name_scope)

    def peek(self) -> VariableScope:
        """Returns the scope as it would be, marked as opened, without entering it and without a name scope."""
        with self.without_name_scope() as scope:
            return scope

    def _derived(self, base: VariableScope, name: str, name_scope: str, reuse: Any) -> VariableScope:
        settings = {key: getattr(base, key) for key in _INHERITED}
        given = {key: value for key, value in self._overrides.items() if value is not None}
        outer, own = base.custom_getter, given.get("custom_getter")
        if outer is not None and own is not None:
            given["custom_getter"] = _nested_getter(own, outer)
        return VariableScope(reuse, name, name_scope=name_scope, constraint=self._constraint, **{**settings, **given})

    @contextmanager
    def _reopened(self, scopes: Scopes, scope: VariableScope) -> Iterator[VariableScope]:
        old, reuse = scopes.current, self._reuse or scope.reuse
        scopes.open(scope.name)
        opened = scopes.opened.copy()
        scopes.current = self._derived(scope, scope.name, scope.original_name_scope, reuse)
        try:
            yield scopes.current
        finally:
            scopes.opened, scopes.current = opened, old

    @contextmanager
    def _inside(self, scopes: Scopes, name: str, name_scope: str) -> Iterator[VariableScope]:
        old = scopes.current
        full = f"{old.name}/{name}" if old.name else name
        scopes.open(full)
        scopes.current = self._derived(old, full, name_scope, self._reuse or old.reuse)
        try:
            yield scopes.current
        finally:
            scopes.forget_inside(full)
            scopes.current = old


@contextmanager
def _name_scope(graph: Graph, name: str, new: bool) -> Iterator[str | None]:
    """The name scope of a variable scope: a new one, or the current one again; None where there is no name for it."""
    if not new:
        around = graph.get_name_scope()
        with graph.name_scope(f"{around}/" if around else "") as current:
            yield current
    elif name:
        with graph.name_scope(name) as current:
            yield current
    else:
        yield None


def _nested_getter(inner: Callable[..., Any], outer: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a getter that calls `inner` with `outer` as its `getter`."""

    def getter(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return getter


def variable_op_scope(
    values: Sequence[Any],
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Callable[..., Any] | None = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Callable[[Any], Any] | None = None,
) -> variable_scope:
    """`variable_scope` with TensorFlow's older order of arguments."""
    return variable_scope(
        name_or_scope, default_name, values, initializer, regularizer, caching_device, partitioner, custom_getter,
        reuse, dtype, use_resource, constraint,
    )  # fmt: skip


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """Returns the variable `name` of the current variable scope: a new one, or with `reuse` the one that exists.

    initializer: a function of (shape, dtype), one without arguments, or a value, which then decides the shape; by
    default the scope's, else glorot_uniform for floats and zeros for integers, bools and strings. regularizer: a
    function of the variable whose result joins GraphKeys.REGULARIZATION_LOSSES. custom_getter: is called with `getter`
    and what it takes, and returns the variable. caching_device and use_resource change nothing. partitioner: a function
    of shape and dtype that gives the number of parts along each dimension; the result is then a PartitionedVariable.

    Raises InvalidArgumentError for a variable that exists without reuse, one that does not with reuse=True, and another
    shape or dtype than that of the one that exists.
    """
    graph = outermost(get_default_graph())
    return get_variable_scope().get_variable(
        VariableStore.of(graph), name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
        trainable=trainable, collections=collections, caching_device=caching_device, partitioner=partitioner,
        validate_shape=validate_shape, use_resource=use_resource, custom_getter=custom_getter, constraint=constraint,
        synchronization=synchronization, aggregation=aggregation,
    )  # fmt: skip


def get_local_variable(name: str, *args: Any, **kwargs: Any) -> Any:
    """`get_variable` for a variable of GraphKeys.LOCAL_VARIABLES that is not trained; the same arguments."""
    bound = inspect.signature(get_variable).bind(name, *args, **kwargs)
    collections = [*(bound.arguments.pop("collections", None) or ()), GraphKeys.LOCAL_VARIABLES]
    bound.arguments.pop("trainable", None)
    return get_variable(**bound.arguments, collections=collections, trainable=False)
