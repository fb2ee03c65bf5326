"""Kernels for tensors of strings, which are Python objects: the native kernel runs on numbers that stand for them.

Ops that move elements, or ask whether they are equal, do not care what the elements are. So each string gets a number,
0 for the empty one, which pads as zero does; the kernel for int64 moves the numbers, and results are read back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from timberframe_cpu.native import call
from timberframe_sdk import KernelNode, Launcher, Value, as_dtype, passed_inputs
from timberframe_sdk.native import Native

_NUMBER = as_dtype(np.int64)
_STRING = as_dtype("string")

Builder = Callable[[KernelNode], Native]


class _Positions:
    """Numbers strings in the order in which they come, equal ones or not."""

    def __init__(self) -> None:
        self._parts, self._count = [np.array([b""], object)], 1

    def numbers(self, x: np.ndarray) -> np.ndarray:
        """Returns the numbers of strings, in the same shape."""
        found = np.arange(self._count, self._count + x.size, dtype=np.int64).reshape(x.shape)
        self._parts.append(x.reshape(-1))
        self._count += x.size
        return found

    def table(self) -> np.ndarray:
        """Returns the strings by number."""
        return np.concatenate(self._parts)


class _Equals:
    """Numbers strings so that equal ones have equal numbers."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {b"": 0}

    def numbers(self, x: np.ndarray) -> np.ndarray:
        """Returns the numbers of strings, in the same shape."""
        found = [self._known.setdefault(s, len(self._known)) for s in x.reshape(-1).tolist()]
        return np.array(found, np.int64).reshape(x.shape)

    def table(self) -> np.ndarray:
        """Returns the strings by number."""
        strings = np.empty(len(self._known), object)
        strings[:] = list(self._known)
        return strings


def with_strings(build: Builder) -> Callable[[KernelNode], Native | Launcher]:
    """Returns the builder for native dtypes of an op that moves elements: for strings its kernel moves numbers."""
    return _choosing(build, _Positions)


def with_equal_strings(build: Builder) -> Callable[[KernelNode], Native | Launcher]:
    """Returns the same for an op that asks which elements are equal."""
    return _choosing(build, _Equals)


def _choosing(build: Builder, numbering: type[_Positions | _Equals]) -> Callable[[KernelNode], Native | Launcher]:
    @wraps(build)
    def choose(node: KernelNode) -> Any:
        strings = any(v.dtype.hasobject for v in (*node.inputs, *node.outputs))
        return _through_numbers(node, build, numbering) if strings else build(node)

    return choose


def _through_numbers(node: KernelNode, build: Builder, numbering: type[_Positions | _Equals]) -> Launcher:
    """Returns the launcher that runs the kernel which `build` gives for int64 on numbers in place of strings."""
    numbers = _in_numbers(node)
    kernel, passed = build(numbers), len(passed_inputs(node))

    def launch(*arrays: np.ndarray) -> list[tuple[int, ...]] | None:
        known = numbering()
        given = [known.numbers(x) if x.dtype.hasobject else x for x in arrays[:passed]]
        outputs = arrays[passed : passed + len(node.outputs)]
        made = [np.empty(x.shape, np.int64) if x.dtype.hasobject else x for x in outputs]
        workspace = np.empty(numbers.workspace_bytes, np.uint8) if numbers.workspace_bytes else None
        shapes = call(kernel, given, made, workspace, op=node.op, node=node.name)
        strings = known.table()
        for out, result, shape in zip(outputs, made, shapes, strict=True):
            if out.dtype.hasobject:
                count = int(np.prod(shape, dtype=np.int64))
                out.reshape(-1)[:count] = strings[result.reshape(-1)[:count]]
        return [s for s, v in zip(shapes, node.outputs, strict=True) if v.dynamic] or None

    return launch


def _in_numbers(node: KernelNode) -> KernelNode:
    """Returns the same node for int64 in place of strings."""

    def changed(value: Value) -> Value:
        return dataclasses.replace(value, dtype=_NUMBER.numpy) if value.dtype.hasobject else value

    attrs = {name: _NUMBER if v is _STRING else v for name, v in node.attrs.items()}
    inputs, outputs = list(map(changed, node.inputs)), list(map(changed, node.outputs))
    return dataclasses.replace(node, attrs=attrs, inputs=inputs, outputs=outputs, workspace_bytes=0)


def copies(node: KernelNode) -> Launcher:
    """Returns the launcher that hands strings on, each output those of the input at its index."""
    count = len(node.outputs)

    def launch(*arrays: np.ndarray) -> None:
        for x, out in zip(arrays, arrays[len(arrays) - count :], strict=False):
            np.copyto(out, x.reshape(out.shape))

    return launch


def scatter_sums(node: KernelNode, rows_of: Callable[[KernelNode], Any]) -> Launcher:
    """ScatterNd of strings: those for one element are joined. rows_of: the builder of GatherNd, which finds rows."""
    indices, output = node.inputs[0], node.outputs[0]
    depth = indices.shape[-1]
    sizes, count = output.shape[:depth], int(np.prod(indices.shape[:-1], dtype=np.int64))
    table = np.arange(1, 1 + int(np.prod(sizes, dtype=np.int64)), dtype=np.int64).reshape(sizes)
    params = Value(0, table.dtype, sizes)
    finding = dataclasses.replace(node, inputs=[params, indices], outputs=[Value(1, table.dtype, (count,))])
    kernel = rows_of(finding)

    def launch(at: np.ndarray, updates: np.ndarray, out: np.ndarray) -> None:
        rows = np.zeros(count, np.int64)  # from 1 on; 0 where an index outside is ignored
        call(kernel, [table, np.ascontiguousarray(at)], [rows], op=node.op, node=node.name)
        out[...] = b""
        slices, parts = out.reshape(max(table.size, 1), -1), updates.reshape(max(count, 1), -1)
        for row, part in zip(rows.tolist(), parts, strict=False):
            if row:
                slices[row - 1] += part

    return launch
