"""The methods of variables that change their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.framework import IndexedSlices
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor


class Updates:
    """Assignments, and scatter updates by rows (`scatter_*`) and by index tuples (`scatter_nd_*`).

    Each returns the value thereafter. sparse_delta: IndexedSlices. indices: index tuples in the last dimension;
    updates: a slice for each.
    """

    name: Any
    save_slice_info: Any = None
    """Which part of a partitioned variable it is, a SaveSliceInfo."""

    @property
    def _save_slice_info(self) -> Any:
        """`save_slice_info` by the name that TensorFlow 1 has for it."""
        return self.save_slice_info

    def _get_save_slice_info(self) -> Any:
        return self.save_slice_info

    def _set_save_slice_info(self, save_slice_info: Any) -> None:
        self.save_slice_info = save_slice_info

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Makes `value` the value; returns it as read thereafter, or the operation without read_value."""
        return self.update("AssignVariableOp", [value], name, read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`; returns like `assign`."""
        return self.update("AssignAddVariableOp", [delta], name, read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`; returns like `assign`."""
        return self.update("AssignSubVariableOp", [delta], name, read_value)

    def update(self, op: str, inputs: Sequence[Any], name: str | None, read_value: bool = True) -> Any:
        """Runs an op that changes the variable."""
        raise NotImplementedError

    def _rows(self, op: str, sparse_delta: Any, name: str | None) -> Any:
        if not isinstance(sparse_delta, IndexedSlices):
            raise InvalidArgumentError(
                f"{op} '{name or op}': sparse_delta for variable '{self.name}' is {type(sparse_delta).__name__}; "
                "tf.IndexedSlices are required"
            )
        return self.scatter(op, sparse_delta.indices, sparse_delta.values, name)

    def scatter(self, op: str, indices: Any, updates: Any, name: str | None) -> Any:
        """Runs a scatter op on the variable."""
        where = convert_to_tensor(indices, name=f"{name or op}/indices")
        return self.update(op, [where, updates], name)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds to rows; every delta of a row named twice counts."""
        return self._rows("ResourceScatterAdd", sparse_delta, name)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts from rows; see scatter_add."""
        return self._rows("ResourceScatterSub", sparse_delta, name)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiplies rows; see scatter_add."""
        return self._rows("ResourceScatterMul", sparse_delta, name)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divides rows; see scatter_add."""
        return self._rows("ResourceScatterDiv", sparse_delta, name)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Keeps the smaller of row and delta."""
        return self._rows("ResourceScatterMin", sparse_delta, name)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Keeps the larger of row and delta."""
        return self._rows("ResourceScatterMax", sparse_delta, name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replaces rows; of a row named twice one delta stays."""
        return self._rows("ResourceScatterUpdate", sparse_delta, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Adds to slices; every update of a slice named twice counts."""
        return self.scatter("ResourceScatterNdAdd", indices, updates, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtracts from slices; see scatter_nd_add."""
        return self.scatter("ResourceScatterNdSub", indices, updates, name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replaces slices; of a slice named twice the last update stays."""
        return self.scatter("ResourceScatterNdUpdate", indices, updates, name)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Keeps the larger of slice and update."""
        return self.scatter("ResourceScatterNdMax", indices, updates, name)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Keeps the smaller of slice and update."""
        return self.scatter("ResourceScatterNdMin", indices, updates, name)
