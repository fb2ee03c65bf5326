"""The ops that keep sparse tensors, so that a queue can hold numbers in their place."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np

from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_ops.sparse.shapes import Parts, rows_of, stacked


class SparseTensors:
    """Sparse tensors by number."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = itertools.count()
        self._held: dict[int, Parts] = {}

    def add(self, sparse: Parts) -> int:
        """Keeps a sparse tensor and returns its number."""
        with self._lock:
            number = next(self._next)
            self._held[number] = sparse
        return number

    def take(self, numbers: list[int]) -> list[Parts]:
        """Drops the sparse tensors of these numbers and returns them; KeyError, and all stay, where one is missing."""
        with self._lock:
            found = [self._held[n] for n in numbers]
            for n in numbers:
                self._held.pop(n, None)
        return found


def _map(call: HostCall) -> SparseTensors:
    attrs = call.attrs
    key = f"sparse_tensors {attrs['container']} {attrs['shared_name'] or call.path}"
    return call.resources.get_or_make(key, SparseTensors)


@host_op("AddSparseToTensorsMap")
def _add(call: HostCall) -> list[Any]:
    indices, values, shape = (np.array(x) for x in call.inputs)
    return [np.array(_map(call).add((indices, values, shape)), np.int64)]


@host_op("AddManySparseToTensorsMap")
def _add_many(call: HostCall) -> list[Any]:
    indices, values, shape = (np.array(x) for x in call.inputs)
    if not shape.size:
        raise call.error("sparse_shape is empty; a sparse tensor with rows is required")
    held = _map(call)
    return [np.array([held.add(row) for row in rows_of(indices, values, shape)], np.int64)]


@host_op("TakeManySparseFromTensorsMap")
def _take(call: HostCall) -> list[Any]:
    try:
        found = _map(call).take(call.inputs[0].tolist())
    except KeyError as e:
        raise call.error(f"there is no sparse tensor {e}; each can be taken once") from None
    if not found:
        raise call.error("sparse_handles is empty; one sparse tensor at least is required")
    dtype, ranks = call.attrs["dtype"], {s[2].size for s in found}
    if len(ranks) > 1 or any(s[1].dtype != dtype.numpy for s in found):
        raise call.error(f"the sparse tensors have ranks {sorted(ranks)}; one rank and dtype {dtype.name} are required")
    return list(stacked(found))
