"""`tf.contrib.staging`: an area where elements wait between two runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from timberframe.api.framework import name_scope
from timberframe.boundary import guard
from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape, as_shape

__all__ = ["StagingArea"]


class StagingArea:
    """Elements that some runs put in and others get, the first first; it lives in a session, as a queue does.

    dtypes, shapes, names: of the components of an element. capacity: how many elements it holds, memory_limit: how many
    bytes, after which `put` waits; 0 for any number. Areas of one shared_name are one.
    """

    def __init__(
        self,
        dtypes: Sequence[Any],
        shapes: Any = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        if capacity < 0 or memory_limit < 0:
            raise InvalidArgumentError(
                f"StagingArea: capacity is {capacity} and memory_limit {memory_limit}; neither may be negative"
            )
        for what, given in (("shapes", shapes), ("names", names)):
            if given is not None and len(given) != len(dtypes):
                raise InvalidArgumentError(
                    f"StagingArea: {len(given)} {what} for {len(dtypes)} components; each needs one"
                )
        self.name = get_default_graph().unique_name("StagingArea") if shared_name is None else shared_name
        self.dtypes: list[DType] = [as_dtype(d) for d in dtypes]
        self.shapes = [TensorShape(None)] * len(dtypes) if shapes is None else [as_shape(s) for s in shapes]
        self.names = None if names is None else list(names)
        self.capacity, self.memory_limit = capacity, memory_limit

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Returns the operation that puts an element in: a tensor, a list of components, or a dict by their names."""
        with name_scope(name, f"{self.name}_put") as scope:
            components = []
            for x, dtype, shape in zip(self._components(values), self.dtypes, self.shapes, strict=True):
                tensor = convert_to_tensor(x, dtype)
                tensor.shape.assert_is_compatible_with(shape)
                components.append(tensor)
            made: Operation = self._apply("Stage", [components], scope)
        return made

    def get(self, name: str | None = None) -> Any:
        """Returns the tensors of the first element, a list or a dict, which is taken; it waits until there is one."""
        return self._named(self._apply("Unstage", [], name or f"{self.name}_get"))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """Returns the tensors of the element at an index, which stays; it waits until there are as many."""
        return self._named(self._apply("StagePeek", [index], name or f"{self.name}_peek"))

    def size(self, name: str | None = None) -> Any:
        """Returns a tensor, how many elements there are."""
        return self._apply("StageSize", [], name or f"{self.name}_size")

    def clear(self, name: str | None = None) -> Any:
        """Returns the operation that takes all elements out."""
        return self._apply("StageClear", [], name or f"{self.name}_clear")

    def _apply(self, op: str, inputs: list[Any], name: str) -> Any:
        limits = {"capacity": self.capacity, "memory_limit": self.memory_limit}
        return apply_op(op, inputs, {**limits, "dtypes": tuple(self.dtypes), "shared_name": self.name}, name=name)

    def _components(self, values: Any) -> list[Any]:
        if isinstance(values, Mapping) != (self.names is not None):
            raise InvalidArgumentError(f"StagingArea: {values!r} is put in; names are {self.names}, of a dict's keys")
        if self.names is not None:
            if set(values) != set(self.names):
                raise InvalidArgumentError(f"StagingArea: keys are {sorted(values)}; they must be {sorted(self.names)}")
            return [values[n] for n in self.names]
        components = list(values) if isinstance(values, list | tuple) else [values]
        if len(components) != len(self.dtypes):
            raise InvalidArgumentError(
                f"StagingArea: {len(components)} components are put in; {len(self.dtypes)} are required"
            )
        return components

    def _named(self, found: list[Tensor]) -> Any:
        for tensor, shape in zip(found, self.shapes, strict=True):
            tensor.set_shape(shape)
        return list(found) if self.names is None else dict(zip(self.names, found, strict=True))


guard([sys.modules[__name__]])
