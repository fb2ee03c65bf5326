"""Variables that are kept in several parts along a dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from timberframe.api.slice_info import SaveSliceInfo as SaveSliceInfo
from timberframe.api.variables import Variable
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, UnimplementedError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.shapes import format_shape


class PartitionInfo(NamedTuple):
    """What an initializer learns of the whole: its sizes, and where the part begins."""

    full_shape: list[int]
    var_offset: list[int]

    def single_offset(self, shape: Sequence[int]) -> int:
        """Returns where the part begins along the dimension in which it differs from the whole."""
        return self.var_offset[self.single_slice_dim(shape) or 0]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """Returns the dimension in which a part of these sizes differs from the whole."""
        return next((i for i, (a, b) in enumerate(zip(shape, self.full_shape, strict=True)) if a != b), None)


class PartitionedVariable:
    """A variable in parts, each a Variable, along one dimension; used as a tensor it is the whole.

    variable_list: the parts, each with its SaveSliceInfo. partitions: how many parts there are along each dimension. A
    Saver saves and restores the whole under its name.
    """

    __array_priority__ = 100

    def __init__(
        self, name: str, shape: Any, dtype: DType, variable_list: Sequence[Variable], partitions: Sequence[int]
    ) -> None:
        if not variable_list or any(v.save_slice_info is None for v in variable_list):
            bare = [v.name for v in variable_list if v.save_slice_info is None]
            raise InvalidArgumentError(
                f"PartitionedVariable '{name}': of its {len(variable_list)} variables {bare} have no SaveSliceInfo; "
                "one variable at least, each with a SaveSliceInfo, is required"
            )
        self._parts = sorted(variable_list, key=lambda v: list(v.save_slice_info.var_offset))
        self._name = name
        self._shape = TensorShape(shape)
        self._dtype = dtype
        self._partitions = list(partitions)

    @property
    def name(self) -> str:
        """The name of the whole."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The dtype of the parts."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Returns the shape of the whole."""
        return self._shape

    @property
    def axis(self) -> int:
        """The dimension along which the parts lie."""
        return next((i for i, count in enumerate(self._partitions) if count > 1), 0)

    @property
    def graph(self) -> Graph:
        """The graph of the parts."""
        return self._parts[0].graph

    @property
    def partitions(self) -> list[int]:
        """How many parts there are along each dimension."""
        return self._partitions

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def as_tensor(self) -> Tensor:
        """Returns the whole value."""
        graph = get_default_graph()
        with graph.control_dependencies(None):
            if len(self._parts) == 1:
                with graph.name_scope(None):
                    one: Tensor = apply_op("Identity", [self._parts[0]], name=self._name)
                return one
            with graph.name_scope(f"{self._name}/ConcatPartitions/"):
                whole = apply_op("ConcatV2", [[v.value() for v in self._parts], self.axis])
            with graph.name_scope(None):
                made: Tensor = apply_op("Identity", [whole], name=self._name)
        made.set_shape(self._shape)
        return made

    def __tf_tensor__(self, dtype: DType | None = None, name: str | None = None) -> Tensor:
        return self.as_tensor()

    def _as_graph_element(self) -> Tensor:
        return self.as_tensor()

    def _each(self, change: str, value: Any, name: str | None, read_value: bool) -> list[Any]:
        if isinstance(value, list | PartitionedVariable):
            values = list(value)
        else:
            sizes = [v.shape.as_list()[self.axis] for v in self._parts]
            values = apply_op(
                "SplitV", [convert_to_tensor(value, self._dtype), sizes, self.axis], {"num_split": len(sizes)}
            )
        return [
            getattr(v, change)(x, name=name, read_value=read_value) for v, x in zip(self._parts, values, strict=True)
        ]

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Gives the parts their values of the whole, or of a list; returns what each part's assign returns."""
        return self._each("assign", value, name, read_value)

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Adds to the parts; see `assign`."""
        return self._each("assign_add", value, name, read_value)

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Subtracts from the parts; see `assign`."""
        return self._each("assign_sub", value, name, read_value)

    def eval(self, session: Any = None) -> Any:
        """Returns the whole value in `session`, or in the default session."""
        return np.concatenate([v.eval(session=session) for v in self._parts], self.axis)

    @property
    def op(self) -> Operation:
        """The operation that makes the handle of the first part."""
        return self._parts[0].op

    def __repr__(self) -> str:
        return f"<tf.PartitionedVariable '{self._name}' shape={self._shape} dtype={self._dtype.name} parts={len(self)}>"


def call_partitioner(name: str, partitioner: Callable[..., Any], shape: TensorShape, dtype: DType) -> list[int]:
    """Returns how many parts a partitioner wants along each dimension; one dimension at most may have several."""
    if not shape.is_fully_defined() or not shape.ndims:
        raise InvalidArgumentError(
            f"get_variable '{name}': shape is {shape}; with a partitioner it must be known and have a dimension"
        )
    found = partitioner(shape=shape, dtype=dtype)
    if not isinstance(found, list | tuple) or len(found) != shape.ndims or any(int(n) < 1 for n in found):
        raise InvalidArgumentError(
            f"get_variable '{name}': the partitioner gives {found!r} for shape {shape}; a positive number for each "
            "dimension is required"
        )
    if sum(n > 1 for n in found) > 1:
        raise UnimplementedError(
            f"get_variable '{name}': the partitioner gives {list(found)}; one dimension alone can be divided"
        )
    return [int(n) for n in found]


def slices(shape: Sequence[int], partitions: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yields where each part begins and its sizes; the first ones are larger by one where a size cannot be divided."""
    axis = next((i for i, n in enumerate(partitions) if n > 1), 0)
    count = partitions[axis]
    least, longer = divmod(shape[axis], count)
    offset = [0] * len(shape)
    for i in range(count):
        sizes = [*shape]
        sizes[axis] = least + (i < longer)
        yield [*offset], sizes
        offset[axis] += sizes[axis]


def parts_of(variables: Any) -> list[Variable]:
    """Returns all variables of a list, those of partitioned ones one by one."""
    return [p for v in variables for p in (v if isinstance(v, PartitionedVariable) else [v])]


def grouped(name: str, parts: Sequence[Variable]) -> PartitionedVariable:
    """Returns the whole of parts that are saved under one name; InvalidArgumentError where they do not make it up."""
    infos = [v.save_slice_info for v in parts]
    if any(info is None for info in infos):
        raise InvalidTypeError(f"Saver: '{name}' is a list of variables that are no parts of one; give parts alone")
    full = list(infos[0].full_shape)
    counts = [len({info.var_offset[i] for info in infos}) for i in range(len(full))]
    made = PartitionedVariable(name, full, parts[0].dtype, parts, counts)
    expected = [sizes for _, sizes in slices(full, counts)]
    if sum(n > 1 for n in counts) > 1 or [list(v.save_slice_info.var_shape) for v in made] != expected:
        raise InvalidArgumentError(
            f"Saver: '{name}' has parts at {[list(info.var_offset) for info in infos]} of "
            f"{format_shape(tuple(full))}, which are not all; a partitioned variable is saved whole"
        )
    return made
