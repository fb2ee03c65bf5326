"""What every kind of checkpoint offers for reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe.saving.files import file_errors
from timberframe.saving.tensor_slices import slice_range
from timberframe_core.dtypes import DType
from timberframe_core.errors import DataLossError, NotFoundError, UnimplementedError
from timberframe_core.shapes import MAX_ARRAY_RANK, MAX_ELEMENTS, num_elements

_SHOWN = 10


class MissingCheckpointError(NotFoundError, ValueError):
    """There is no checkpoint of this name. TensorFlow raises a ValueError."""


@dataclass(frozen=True)
class Entry:
    """Dtype and shape of a tensor in a checkpoint."""

    dtype: DType
    shape: tuple[int, ...]


class CheckpointReader(ABC):
    """The tensors of a checkpoint, by name. `path` is what the user named it by."""

    def __init__(self, path: str, entries: Mapping[str, Entry]) -> None:
        self.path = path
        self.entries = dict(entries)

    def read(self, name: str) -> np.ndarray:
        """Returns the checked value of a tensor that is there: an array that must not be written to."""
        shape, dtype = self.entries[name].shape, self.entries[name].dtype
        rank = len(shape)
        if rank > MAX_ARRAY_RANK:
            raise UnimplementedError(
                f"checkpoint '{self.path}': tensor '{name}' has {rank} dimensions; up to {MAX_ARRAY_RANK} can be read"
            )
        if num_elements(tuple(d for d in shape if d)) * dtype.numpy.itemsize > MAX_ELEMENTS:
            raise DataLossError(
                f"checkpoint '{self.path}': tensor '{name}' has shape {list(shape)}, more than memory can hold; "
                "the file is damaged, another copy of it is required"
            )
        with file_errors(f"checkpoint '{self.path}' cannot be read"):
            return self._read(name)

    def slices(self, name: str) -> list[Any]:
        """Returns the slices, as TensorSliceProtos, in which a tensor that is there is kept;
        none where it is kept whole.
        """
        return []

    def read_slice(self, name: str, part: Any) -> np.ndarray:
        """Returns the checked value of a slice, a TensorSliceProto that lies in the tensor: an
        array not to be written to.

        It may be there although the whole is not.
        """
        with file_errors(f"checkpoint '{self.path}' cannot be read"):
            return self._read_slice(name, part)

    def _read_slice(self, name: str, part: Any) -> np.ndarray:
        where = slice_range(part, self.entries[name].shape)
        assert where is not None, f"slice of '{name}' lies outside"
        return self.read(name)[where]

    @abstractmethod
    def _read(self, name: str) -> np.ndarray:
        """Implements `read` for a tensor that an array can hold."""

    def has_tensor(self, tensor_str: str) -> bool:
        """Returns whether the checkpoint has a tensor of this name."""
        return tensor_str in self.entries

    def get_tensor(self, tensor_str: str) -> np.ndarray:
        """Returns the value of a tensor; NotFoundError where there is none, DataLossError where it is damaged."""
        self.require(tensor_str)
        return self.read(tensor_str).copy()

    def require(self, name: str) -> Entry:
        """Dtype and shape of a tensor; NotFoundError where there is none."""
        if name not in self.entries:
            names = sorted(self.entries)
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise NotFoundError(
                f"checkpoint '{self.path}': has no tensor '{name}'; it has {', '.join(names[:_SHOWN])}{more}"
            )
        return self.entries[name]

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Returns the shapes of all tensors, by name."""
        return {name: list(entry.shape) for name, entry in self.entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Returns the dtypes of all tensors, by name."""
        return {name: entry.dtype for name, entry in self.entries.items()}

    def debug_string(self) -> bytes:
        """Returns a line for each tensor: name, dtype and shape."""
        lines = (f"{name} ({e.dtype.name}) {list(e.shape)}\n" for name, e in sorted(self.entries.items()))
        return "".join(lines).encode()
