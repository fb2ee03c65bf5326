"""The variables that `tf.get_variable` made in a graph, by name."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from timberframe.api.framework import GraphKeys
from timberframe.api.initializers import zeros_initializer
from timberframe.api.partitioned_variables import (
    PartitionedVariable,
    PartitionInfo,
    SaveSliceInfo,
    call_partitioner,
    slices,
)
from timberframe.api.random_initializers import glorot_uniform_initializer
from timberframe.api.variables import Variable, VariableAggregation, VariableSynchronization, outermost
from timberframe_core.dtypes import DType, as_dtype, float32
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.shapes import format_shape

_COLLECTION = ("variable store",)
Reusable = TypeVar("Reusable", Variable, PartitionedVariable)


class VariableStore:
    """Variables by their full name, which is unique in the graph."""

    def __init__(self, keeps_eager: bool = False) -> None:
        self._variables: dict[str, Variable] = {}
        self._partitioned: dict[str, PartitionedVariable] = {}
        self.keeps_eager = keeps_eager
        """Whether variables of eager execution are kept and found again, and are in collections, as in a graph."""

    @staticmethod
    def of(graph: Graph) -> VariableStore:
        """Returns the store of a graph."""
        kept = graph.get_collection_ref(_COLLECTION)
        if not kept:
            kept.append(VariableStore())
        store: VariableStore = kept[0]
        return store

    @contextmanager
    def as_default(self, graph: Graph | None = None) -> Iterator[None]:
        """Looks the variables of the block up here. graph: the current one by default."""
        kept = (graph or outermost(get_default_graph())).get_collection_ref(_COLLECTION)
        before = list(kept)
        kept[:] = [self]
        try:
            yield
        finally:
            kept[:] = before

    def keep(self, name: str, variable: Variable) -> None:
        """Lets a variable be found by a name."""
        self._variables[name] = variable

    def find(self, name: str) -> Variable | None:
        """Returns the variable of this name, None where there is none."""
        return self._variables.get(name)

    def items(self) -> list[tuple[str, Variable]]:
        """Returns all names with their variables."""
        return list(self._variables.items())

    def get_variable(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = float32,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        constraint: Callable[[Any], Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Variable | PartitionedVariable:
        """Returns the variable of this name: the one that exists when reuse is set, else a new one.

        reuse: True requires one that exists, False that none does, and None or tf.AUTO_REUSE neither. partitioner: a
        function of shape and dtype that gives the number of parts along each dimension.
        """
        if partitioner is not None and TensorShape(shape).ndims != 0:
            settings = {
                "trainable": trainable, "collections": collections, "constraint": constraint,
                "synchronization": synchronization, "aggregation": aggregation,
            }  # fmt: skip
            return self._get_partitioned(name, shape, dtype, initializer, regularizer, reuse, partitioner, settings)
        given = initializer is not None and not _is_function(initializer)
        _check(name, given, shape)
        kind, wanted = as_dtype(dtype).base_dtype, TensorShape(shape)
        kept = self.keeps_eager or not outermost(get_default_graph()).eager
        if not kept:
            reuse = False
        elif self.keeps_eager:
            reuse = True if name in self._variables else None
        found = self._variables.get(name)
        if found is not None:
            return _reused(found, name, reuse, wanted, kind)
        if reuse is True:
            raise InvalidArgumentError(
                f"get_variable '{name}': does not exist, or was not made by get_variable; "
                "reuse=True needs one that exists, reuse=tf.AUTO_REUSE makes it"
            )
        value = _first_value(name, initializer, wanted, kind)
        made = Variable(
            value, trainable, collections, validate_shape, caching_device, name,
            dtype=None if given or not wanted.is_fully_defined() else kind,
            constraint=constraint, synchronization=synchronization, aggregation=aggregation,
        )  # fmt: skip
        if kept:
            self._variables[name] = made
        if self.keeps_eager:
            self._collect(made, collections or [GraphKeys.GLOBAL_VARIABLES])
        if regularizer:
            self._add_regularization(made, name, regularizer)
        return made

    def _get_partitioned(
        self, name: str, shape: Any, dtype: Any, initializer: Any, regularizer: Any, reuse: Any, partitioner: Any,
        settings: dict[str, Any],
    ) -> PartitionedVariable:  # fmt: skip
        """Returns the variable of this name in parts, each of which is called ``<name>/part_<number>``."""
        kind = as_dtype(dtype).base_dtype
        value = initializer is not None and not _is_function(initializer)
        whole = TensorShape(shape).merge_with(convert_to_tensor(initializer, kind).shape if value else None)
        found = self._partitioned.get(name)
        if found is None and (reuse is True or name in self._variables):
            raise InvalidArgumentError(
                f"get_variable '{name}': does not exist in parts, or was not made by get_variable; without a "
                "partitioner it may be found, reuse=tf.AUTO_REUSE makes it"
            )
        partitions = call_partitioner(name, partitioner, whole, kind)
        if found is not None:
            _reused(found, name, reuse, whole, kind)
            if found.partitions != partitions:
                raise InvalidArgumentError(
                    f"get_variable '{name}': {partitions} parts are asked for; the variable has {found.partitions}"
                )
            return found
        sizes = [d or 0 for d in whole.as_list()]
        first = _default_initializer(name, kind) if initializer is None else initializer
        parts = []
        for i, (offset, own) in enumerate(slices(sizes, partitions)):
            with outermost(get_default_graph()).name_scope(None):
                part = Variable(_first_part(first, sizes, offset, own, kind), name=f"{name}/part_{i}", **settings)
            part.save_slice_info = SaveSliceInfo(name, sizes, offset, own)
            self._variables[f"{name}/part_{i}"] = part
            if regularizer:
                self._add_regularization(part, f"{name}/part_{i}", regularizer)
            parts.append(part)
        made = self._partitioned[name] = PartitionedVariable(name, whole, kind, parts, partitions)
        return made

    def _add_regularization(self, variable: Variable, name: str, regularizer: Callable[[Any], Any]) -> None:
        graph = outermost(get_default_graph())
        with graph.as_default(), graph.colocate_with(variable), graph.name_scope(f"{name}/Regularizer/"):
            loss = regularizer(variable)
        if loss is None:
            return
        if graph.eager and self.keeps_eager:
            self._collect_item(GraphKeys.REGULARIZATION_LOSSES, _EagerLoss(functools.partial(regularizer, variable)))
        else:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, convert_to_tensor(loss))

    def _collect(self, variable: Variable, collections: Sequence[str]) -> None:
        """Adds a variable of eager execution to its collections."""
        trained = [GraphKeys.TRAINABLE_VARIABLES] if variable.trainable else []
        for key in dict.fromkeys([*collections, *trained]):
            self._collect_item(key, variable)

    def _collect_item(self, key: str, item: Any) -> None:
        """Adds to a collection of eager execution, which otherwise stay empty; the item goes with this store."""
        graph = outermost(get_default_graph())
        if graph.eager:
            kept = graph.get_collection_ref(key)
            kept.append(item)
            weakref.finalize(self, _remove, kept, item).atexit = False


def _first_part(initializer: Any, shape: list[int], offset: list[int], sizes: list[int], dtype: DType) -> Any:
    """Returns the initial value of a part, or a function that makes it."""
    if not _is_function(initializer):
        return apply_op("Slice", [convert_to_tensor(initializer, dtype), offset, sizes])
    function: Any = initializer() if inspect.isclass(initializer) else initializer
    if _needs_no_arguments(function):
        return apply_op("Slice", [convert_to_tensor(function(), dtype), offset, sizes])
    more = {"partition_info": PartitionInfo(shape, offset)} if _takes_partition_info(function) else {}
    return functools.partial(function, sizes, dtype=dtype, **more)


def _takes_partition_info(function: Any) -> bool:
    try:
        return "partition_info" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # built-in functions may have no signature
        return False


def _check(name: str, given: bool, shape: Any) -> None:
    if given and shape is not None:
        raise InvalidArgumentError(
            f"get_variable '{name}': the initializer is a value and shape {TensorShape(shape)} is given; "
            "a value has its own shape"
        )


def _is_function(initializer: Any) -> bool:
    return callable(initializer) and not hasattr(initializer, "__tf_tensor__")


def _reused(found: Reusable, name: str, reuse: Any, shape: TensorShape, dtype: DType) -> Reusable:
    if reuse is False:
        raise InvalidArgumentError(
            f"get_variable '{name}': exists already, made at {found.op.where}; "
            "its scope needs reuse=True or tf.AUTO_REUSE to get it again"
        )
    if not shape.is_compatible_with(found.shape):
        raise InvalidArgumentError(
            f"get_variable '{name}': shape {shape} is asked for; "
            f"the variable, made at {found.op.where}, has {found.shape}"
        )
    if dtype is not found.dtype:
        raise InvalidArgumentError(
            f"get_variable '{name}': dtype {dtype.name} is asked for; "
            f"the variable, made at {found.op.where}, has {found.dtype.name}"
        )
    return found


def _first_value(name: str, initializer: Any, shape: TensorShape, dtype: DType) -> Any:
    """Returns the initial value, or a function that makes it."""
    if initializer is None:
        initializer = _default_initializer(name, dtype)
    if not _is_function(initializer):
        return initializer
    if inspect.isclass(initializer):
        initializer = initializer()
    if shape.is_fully_defined():
        return functools.partial(initializer, shape.as_list(), dtype=dtype)
    if _needs_no_arguments(initializer):
        return initializer
    raise InvalidArgumentError(
        f"get_variable '{name}': shape is {format_shape(shape.as_tuple())}; "
        "a new variable needs every size, or an initial value"
    )


def _default_initializer(name: str, dtype: DType) -> Any:
    if dtype.is_floating:
        return glorot_uniform_initializer()
    if dtype.is_integer or dtype.is_bool or dtype.name == "string":
        return zeros_initializer()
    raise InvalidArgumentError(f"get_variable '{name}': has dtype {dtype.name}; such a variable needs an initializer")


def _needs_no_arguments(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # built-in functions may have no signature
        return False
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _remove(items: list[Any], item: Any) -> None:
    items[:] = [x for x in items if x is not item]


class _EagerLoss:
    """A regularization loss in eager execution: a tensor made of the variable's value whenever it is used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        return convert_to_tensor(self._make(), dtype)
