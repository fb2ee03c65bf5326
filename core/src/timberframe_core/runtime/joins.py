"""Putting arrays together and taking them apart on the device where they are, for what the executor does itself.

On a device that works in the host's memory this is NumPy's; on others small clusters of Pack, ConcatV2 and similar ops.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_core.compiler.plan import Located
from timberframe_core.dtypes import DType, int32, int64
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import evaluate
from timberframe_core.plugin.contracts import Array, Cluster, Device, KernelNode, RunContext, Value
from timberframe_core.runtime.located import move
from timberframe_core.shapes import StaticShape

_Program = Callable[[Sequence[Array]], list[Array]]

_CHUNK = 64  # the most tensors that one kernel puts together
_PROGRAMS = 256  # small clusters that are kept


def zeros(shape: StaticShape, dtype: DType) -> Located:
    """Returns zeros (empty strings) on the host."""
    if dtype.numpy.hasobject:
        return np.full(shape, b"", object), None
    return np.zeros(shape, dtype.numpy), None


def target_device(items: Sequence[Located]) -> Device | None:
    """Returns the device on which arrays are joined: that of the first that is on one; None for the host's memory."""
    for _, device in items:
        if device is not None and not device.host_memory:
            return device
    return None


class Joins:
    """The small programs of one session."""

    def __init__(self) -> None:
        self._programs: OrderedDict[Any, _Program] = OrderedDict()
        self._lock = threading.Lock()

    def stack(self, items: Sequence[Located], shape: StaticShape, dtype: DType) -> Located:
        """Arrays of one shape as the rows of one array."""
        device = target_device(items)
        if device is None:
            made = np.empty((len(items), *shape), dtype.numpy)
            for i, (array, _) in enumerate(items):
                made[i] = array if shape else array[()]
            return made, None
        rows = [move(item, device) for item in items]
        parts: list[Located] = []
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK]
            attrs = {"T": dtype, "N": len(chunk), "axis": 0}
            parts.append((self._run(device, "Pack", attrs, chunk, [(len(chunk), *shape)], dtype)[0], device))
        return self.concat(parts, dtype)

    def concat(self, items: Sequence[Located], dtype: DType) -> Located:
        """Arrays one after the other along their first dimension."""
        if len(items) == 1:
            return items[0]
        device = target_device(items)
        if device is None:
            return np.concatenate([array for array, _ in items]), None
        arrays = [move(item, device) for item in items]
        while len(arrays) > 1:
            chunks = [arrays[i : i + _CHUNK] for i in range(0, len(arrays), _CHUNK)]
            arrays = [self._concat(device, chunk, dtype) if len(chunk) > 1 else chunk[0] for chunk in chunks]
        return arrays[0], device

    def _concat(self, device: Device, arrays: list[Array], dtype: DType) -> Array:
        shape = (sum(a.shape[0] for a in arrays), *arrays[0].shape[1:])
        attrs = {"T": dtype, "Tidx": int32, "N": len(arrays)}
        return self._run(device, "ConcatV2", attrs, arrays, [shape], dtype, (np.array(0, np.int32),))[0]

    def split(self, item: Located, lengths: Sequence[int], dtype: DType) -> list[Located]:
        """Pieces of an array along its first dimension; on the host they share its memory."""
        array, device = item
        if device is None or device.host_memory:
            ends = np.cumsum(lengths, dtype=np.int64).tolist()
            return [(array[end - n : end], device) for n, end in zip(lengths, ends, strict=True)]
        shapes = [(n, *array.shape[1:]) for n in lengths]
        attrs = {"T": dtype, "Tlen": int64, "num_split": len(lengths)}
        sizes = np.array(lengths, np.int64), np.array(0, np.int32)
        return [(a, device) for a in self._run(device, "SplitV", attrs, [array], shapes, dtype, sizes)]

    def rows(self, item: Located, dtype: DType) -> list[Located]:
        """Returns the rows of an array, without their first dimension; on the host they share its memory."""
        array, device = item
        count = array.shape[0]
        if device is None or device.host_memory:
            return [(array[i, ...], device) for i in range(count)]
        if count > _CHUNK:
            lengths = [min(_CHUNK, count - start) for start in range(0, count, _CHUNK)]
            return [row for part in self.split(item, lengths, dtype) for row in self.rows(part, dtype)]
        attrs = {"T": dtype, "num": count, "axis": 0}
        made = self._run(device, "Unpack", attrs, [array], [tuple(array.shape[1:])] * count, dtype)
        return [(a, device) for a in made]

    def add(self, a: Located, b: Located, dtype: DType, device: Device) -> Located:
        """Returns the sum of two arrays of one shape, by the kernel of the device where
        they are (`device`: of none).
        """
        home = a[1] or b[1] or device
        arrays = [move(a, home), move(b, home)]
        return self._run(home, "AddV2", {"T": dtype}, arrays, [tuple(a[0].shape)], dtype)[0], home

    def _run(
        self,
        device: Device,
        op: str,
        attrs: Mapping[str, Any],
        arrays: Sequence[Array],
        shapes: Sequence[StaticShape],
        dtype: DType,
        constants: tuple[np.ndarray, ...] = (),
    ) -> list[Array]:
        """Runs one kernel on arrays and, after them, constants; on the host where the device has none."""
        given = tuple(tuple(a.shape) for a in arrays)
        key = device.spec, op, dtype, given, tuple(shapes), tuple(c.tobytes() for c in constants)
        with self._lock:
            program = self._programs.get(key)
            if program is None:
                program = self._programs[key] = _compile(device, op, attrs, given, shapes, dtype, constants)
                if len(self._programs) > _PROGRAMS:
                    self._programs.popitem(last=False)
            else:
                self._programs.move_to_end(key)
        return program(arrays)

    def close(self) -> None:
        """Drops all programs, and with them their memory."""
        with self._lock:
            self._programs.clear()


def _compile(
    device: Device,
    op: str,
    attrs: Mapping[str, Any],
    given: Sequence[StaticShape],
    shapes: Sequence[StaticShape],
    dtype: DType,
    constants: Sequence[np.ndarray],
) -> _Program:
    inputs = [Value(i, dtype.numpy, shape, "input") for i, shape in enumerate(given)]
    known = [Value(len(given) + i, c.dtype, c.shape, "const", c) for i, c in enumerate(constants)]
    first = len(given) + len(known)
    outputs = [Value(first + i, dtype.numpy, shape) for i, shape in enumerate(shapes)]
    node = KernelNode(op, op, attrs, [*inputs, *known], outputs, device)
    if device.supports(node) is not None:
        return lambda arrays: _on_host(node, [*(device.copy_out(a) for a in arrays), *constants])
    executable = device.compile(Cluster(device, [node], inputs, outputs))
    return lambda arrays: executable.run(arrays, RunContext())


def _on_host(node: KernelNode, inputs: Sequence[np.ndarray]) -> list[Array]:
    """Returns the node's outputs by its op's reference, as arrays of its device."""
    results = evaluate(registry.get(node.op), node.attrs, inputs)
    return [node.device.copy_in(np.asarray(x, v.dtype)) for x, v in zip(results, node.outputs, strict=True)]
