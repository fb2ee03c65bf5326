"""Rows that are changed one after the other, histograms and distances of sequences, as NumPy computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher, UnimplementedError


def _change_rows(node: KernelNode) -> Launcher:
    """Of rows that are named twice the last change wins, or both are made."""
    count, dtype = max(node.inputs[0].shape[0], 1), node.inputs[0].dtype
    change: np.ufunc | None = {"InplaceAdd": np.add, "InplaceSub": np.subtract}.get(node.op)
    if change is np.subtract and dtype.hasobject:
        raise UnimplementedError(f"{node.op} '{node.name}': T is string; strings cannot be subtracted")
    if change is np.subtract and dtype.kind == "b":
        change = np.logical_xor

    def launch(x: np.ndarray, i: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
        out[...] = x
        if not out.size:
            return
        if change is not None:
            with np.errstate(all="ignore"):
                change.at(out, i % count, v)
            return
        for row, value in zip((i % count).tolist(), v, strict=True):
            out[row] = value

    return launch


def _histogram(node: KernelNode) -> Launcher:
    from timberframe_ops.math.histogram import NAN, RANGE

    bins = node.outputs[0].shape[0]
    head = f"{node.op} '{node.name}'"

    def launch(values: np.ndarray, limits: np.ndarray, out: np.ndarray) -> None:
        low, high = (np.float64(x) for x in limits)
        if not (limits[0] < limits[1] and high - low < np.inf):
            raise InvalidArgumentError(f"{head}: value_range is [{limits[0]}, {limits[1]}]; {RANGE}", node.name)
        wrong = np.flatnonzero(np.isnan(values))
        if wrong.size:
            raise InvalidArgumentError(f"{head}: values[{wrong[0]}] {NAN}", node.name)
        with np.errstate(over="ignore"):
            parts = (values.reshape(-1).astype(np.float64) - low) / ((high - low) / bins)
        out[...] = np.bincount(np.clip(parts, 0, bins - 1).astype(np.int64), minlength=bins)

    return launch


def _distance(a: list[Any], b: list[Any]) -> int:
    """Levenshtein's distance. A row of its table at a time: insertions are the least over what is to the left."""
    steps = np.arange(len(b) + 1)
    row = steps
    for i, x in enumerate(a, 1):
        differs = np.array([x != y for y in b], np.int64)
        reached = np.concatenate([[i], np.minimum(row[1:] + 1, row[:-1] + differs)])
        row = np.minimum.accumulate(reached - steps) + steps
    return int(row[-1])


def _edit_distance(node: KernelNode) -> Launcher:
    sizes = [np.asarray(node.const(i)) for i in (2, 5)]
    normalize = node.attrs["normalize"]

    def sequences(indices: np.ndarray, values: np.ndarray, which: int) -> dict[tuple[int, ...], list[Any]]:
        if ((indices < 0) | (indices >= sizes[which])).any():
            name = ("hypothesis", "truth")[which]
            fact = f"{name}_indices leave {name}_shape {sizes[which].tolist()}"
            raise InvalidArgumentError(f"{node.op} '{node.name}': {fact}; they must not", node.name)
        found: dict[tuple[int, ...], list[Any]] = {}
        for row, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
            found.setdefault(tuple(row), []).append(value)
        return found

    def launch(at: np.ndarray, values: np.ndarray, true_at: np.ndarray, truth: np.ndarray, out: np.ndarray) -> None:
        given, wanted = sequences(at, values, 0), sequences(true_at, truth, 1)
        out[...] = 0
        for row in {**given, **wanted}:
            length = len(wanted.get(row, ()))
            distance = np.float32(_distance(given.get(row, []), wanted.get(row, [])))
            if normalize:
                distance = distance / np.float32(length) if length else np.float32(np.inf)
            out[row] = distance

    return launch


KERNELS = [
    *(KernelDef(f"Inplace{change}", "CPU", _change_rows, inplace=((0, 0),)) for change in ("Update", "Add", "Sub")),
    KernelDef("HistogramFixedWidth", "CPU", _histogram),
    KernelDef("EditDistance", "CPU", _edit_distance),
]
