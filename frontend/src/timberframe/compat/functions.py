"""Functions and names of TensorFlow's own modules that have no public name."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from typing import Any

from timberframe.api.arrays import concat
from timberframe.api.framework import control_dependencies
from timberframe.api.initializers import zeros_initializer
from timberframe.api.nn import bias_add
from timberframe.api.variable_scope import get_variable
from timberframe.records.writing import TFRecordWriter
from timberframe.recurrent.base import RNNCell
from timberframe.summary.writer import EVENT_VERSION
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.indexed_slices import IndexedSlices
from timberframe_core.graph.tensor_shape import TensorShape
from timberframe_core.graphdef import messages


def with_dependencies(dependencies: Iterable[Any], output_tensor: Any, name: str | None = None) -> Any:
    """Returns the value of a tensor, or IndexedSlices, that waits for operations."""
    with control_dependencies(list(dependencies)):
        if isinstance(output_tensor, IndexedSlices):
            values = apply_op("Identity", [output_tensor.values], name=name)
            return IndexedSlices(values, output_tensor.indices, output_tensor.dense_shape)
        return apply_op("Identity", [convert_to_tensor(output_tensor)], name=name)


def unknown_shape(rank: int | None = None, ndims: int | None = None) -> TensorShape:
    """Returns a shape of unknown sizes, also of an unknown rank where none is given."""
    given = ndims if rank is None else rank
    return TensorShape(None if given is None else [None] * given)


def scalar() -> TensorShape:
    """Returns the shape of a scalar."""
    return TensorShape([])


def vector(length: int | None) -> TensorShape:
    """Returns the shape of a vector."""
    return TensorShape([length])


def matrix(rows: int | None, cols: int | None) -> TensorShape:
    """Returns the shape of a matrix."""
    return TensorShape([rows, cols])


def like_rnn_cell(cell: Any) -> bool:
    """Returns whether an object can be called as a recurrent cell."""
    return isinstance(cell, RNNCell) or (
        callable(cell) and all(hasattr(cell, name) for name in ("output_size", "state_size", "zero_state"))
    )


def concat_sizes(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """Returns the sizes of a state: those of a batch, then its own. static: a list, None for what is not known."""
    if static:
        first, second = (TensorShape([p] if isinstance(p, int | None) else p) for p in (prefix, suffix))
        return first.concatenate(second).as_list()
    sizes = [convert_to_tensor([p] if isinstance(p, int) else p) for p in (prefix, suffix)]
    return concat([apply_op("Reshape", [s, [-1]]) for s in sizes], 0)


class Linear:
    """An affine map of several matrices, whose variables are those of the scope in which it is made.

    Called with the matrices that it was made for, or others of their widths, it gives [batch, output_size].
    """

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        parts = [convert_to_tensor(x) for x in _listed(args)]
        width, dtype = sum(x.shape[1].value or 0 for x in parts), parts[0].dtype
        self._kernel = get_variable("kernel", [width, output_size], dtype, kernel_initializer)
        first = zeros_initializer() if bias_initializer is None else bias_initializer
        self._bias = get_variable("bias", [output_size], dtype, first) if build_bias else None

    def __call__(self, args: Any) -> Any:
        parts = _listed(args)
        joined = parts[0] if len(parts) == 1 else concat(parts, 1)
        product = apply_op("MatMul", [joined, self._kernel])
        return product if self._bias is None else bias_add(product, self._bias)


def _listed(args: Any) -> list[Any]:
    given = list(args) if isinstance(args, list | tuple) else [args]
    if not given:
        raise InvalidArgumentError("_Linear: args is empty; a matrix at least is required")
    return given


class EventsWriter:
    """Writes events to a new file whose path begins with `file_prefix`."""

    def __init__(self, file_prefix: Any) -> None:
        ending = f"out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
        self._path = f"{os.fsdecode(file_prefix)}.{ending}"
        self._writer = TFRecordWriter(self._path)
        self.WriteEvent(messages.Event(wall_time=time.time(), file_version=EVENT_VERSION))

    def FileName(self) -> bytes:  # noqa: N802 - TensorFlow's name
        """Returns the path of the file."""
        return os.fsencode(self._path)

    def WriteEvent(self, event: Any) -> None:  # noqa: N802 - TensorFlow's name
        """Writes an Event message, or its bytes."""
        self._writer.write(event if isinstance(event, bytes) else event.SerializeToString())

    def Flush(self) -> bool:  # noqa: N802 - TensorFlow's name
        """Makes the file hold all events so far; returns True."""
        self._writer.flush()
        return True

    def Close(self) -> bool:  # noqa: N802 - TensorFlow's name
        """Closes the file; returns True."""
        self._writer.close()
        return True
