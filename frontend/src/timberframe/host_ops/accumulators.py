"""Accumulators of gradients, and the ops on them."""

from __future__ import annotations

import threading
from functools import cmp_to_key
from typing import Any

import numpy as np

from timberframe.host_ops.handles import resource_of
from timberframe_core import logging
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.plugin.contracts import CancelToken
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import Shape, compatible, format_shape


class Accumulator:
    """Adds up gradients of one step: dense arrays. shape: of each. mean: whether what is taken is divided.

    Sums have the same bits in whatever order gradients come: where more than two floats make a sum, gradients are kept
    until they are taken, and are then added up in an order that follows from their bytes.
    """

    kind = "ConditionalAccumulator"

    def __init__(self, name: str, dtype: DType, shape: Shape, mean: bool) -> None:
        self.name, self.dtype, self.shape, self.mean = name, dtype, shape, mean
        self.step = 0
        self.count = 0
        self._changed = threading.Condition()
        self._kept: list[Any] = []
        self._required = 0
        self._clear()

    def __repr__(self) -> str:
        return f"accumulator '{self.name}'"

    # What the other kind does otherwise

    def _clear(self) -> None:
        self._sum: np.ndarray | None = None

    def _check(self, gradient: Any) -> None:
        first = self._kept[0] if self._kept else self._sum
        wanted = self.shape if first is None else first.shape
        if not compatible(wanted, gradient.shape):
            raise InvalidArgumentError(
                f"the gradient has shape {format_shape(gradient.shape)}; {self} takes {format_shape(wanted)}"
            )

    def _add(self, gradient: Any) -> None:
        if self._sum is None:
            self._sum = np.array(gradient)  # a copy: a feed may be changed by its owner
        else:
            self._sum += gradient

    def _arrays(self, gradient: Any) -> list[np.ndarray]:
        return [gradient]

    def _owned(self, gradient: Any) -> Any:
        return np.array(gradient)  # a copy: a feed may be changed by its owner

    def _taken(self) -> list[np.ndarray]:
        assert self._sum is not None
        return [_divided(self._sum, np.asarray(self.count)) if self.mean else self._sum]

    # What both do

    def apply(self, step: int, gradient: Any) -> None:
        """Adds a gradient that was computed for this step of the accumulator, or a later one; drops others."""
        with self._changed:
            if step < self.step:
                logging.debug("%s: a gradient of step %d is dropped; it is at step %d", self, step, self.step)
                return
            self._check(gradient)
            if self._any_order():
                self._add(gradient)
            else:
                self._kept.append(self._owned(gradient))
            self.count += 1
            self._changed.notify_all()

    def _any_order(self) -> bool:
        """Returns whether the order of the sum does not matter: of integers, and of two, as
        the last take has asked for.
        """
        return self.dtype.is_integer or 0 < self._required <= 2

    def take(self, required: int, cancel: CancelToken) -> list[np.ndarray]:
        """Returns what has been added, as soon as there are as many; raises what cancels the
        run, and then takes nothing.
        """
        with self._changed:
            self._required = required
            cancel.wait_for(self._changed, lambda: self.count >= required)
            for gradient in sorted(self._kept, key=cmp_to_key(self._compared)):
                self._add(gradient)
            self._kept.clear()
            taken = self._taken()
            self.count = 0
            self.step += 1
            self._clear()
            return taken

    def _compared(self, a: Any, b: Any) -> int:
        """Returns which of two gradients is added first: below 0 for a; 0 where they are equal."""
        found = (_compared_bytes(x, y) for x, y in zip(self._arrays(a), self._arrays(b), strict=True))
        return next((order for order in found if order), 0)

    def set_step(self, step: int) -> None:
        """Sets the step; what was added stays."""
        with self._changed:
            if step < self.step:
                logging.warning("%s: its step is set to %d, and was %d", self, step, self.step)
            self.step = step


class SparseAccumulator(Accumulator):
    """Adds up gradients of some rows: pairs of indices and values. The mean of a row counts the gradients with it."""

    kind = "SparseConditionalAccumulator"

    def _clear(self) -> None:
        self._rows: dict[int, tuple[np.ndarray, int]] = {}
        self._row_shape: tuple[int, ...] | None = None

    def _check(self, gradient: Any) -> None:
        indices, values, shape = gradient
        if indices.ndim != 1 or not values.ndim or not len(indices) or len(values) != len(indices):
            raise InvalidArgumentError(
                f"the gradient has indices of shape {format_shape(indices.shape)} and values of shape "
                f"{format_shape(values.shape)}; at least one index, and as many rows of values, are required"
            )
        found = (None, *values.shape[1:])
        if self._row_shape not in (None, found[1:]):
            raise InvalidArgumentError(
                f"the gradient has rows of shape {format_shape(found[1:])}; {self} has rows of "
                f"{format_shape(self._row_shape)}"
            )
        if self.shape:  # a scalar's shape stands for any
            known = found if shape is None else tuple(shape.tolist())
            if not compatible(self.shape, known) or not compatible(self.shape, found):
                raise InvalidArgumentError(
                    f"the gradient has shape {format_shape(known)} and rows of shape {format_shape(found[1:])}; "
                    f"{self} takes {format_shape(self.shape)}"
                )
        rows = self.shape[0] if self.shape else None if shape is None else int(shape[0])
        outside = [i for i in indices.tolist() if i < 0 or (rows is not None and i >= rows)]
        if outside:
            raise InvalidArgumentError(f"the gradient has row {outside[0]}; {self} has {rows} rows")

    def _arrays(self, gradient: Any) -> list[np.ndarray]:
        return list(gradient[:2])

    def _owned(self, gradient: Any) -> Any:
        indices, values, shape = gradient
        self._row_shape = values.shape[1:]
        return np.array(indices), np.array(values), shape

    def _add(self, gradient: Any) -> None:
        indices, values, _ = gradient
        self._row_shape = values.shape[1:]
        own, places = np.unique(indices, return_inverse=True)
        sums = np.zeros((len(own), *values.shape[1:]), values.dtype)
        np.add.at(sums, places, values)
        for i, row in zip(own.tolist(), sums, strict=True):
            held, count = self._rows.get(i, (None, 0))
            self._rows[i] = (row if held is None else held + row), count + 1

    def _taken(self) -> list[np.ndarray]:
        indices = np.array(sorted(self._rows), np.int64)
        values = np.stack([self._rows[i][0] for i in indices.tolist()])
        if self.mean:
            counts = np.array([self._rows[i][1] for i in indices.tolist()])
            values = _divided(values, counts.reshape(-1, *[1] * (values.ndim - 1)))
        shape = self.shape or (None, *values.shape[1:])
        return [indices, values, np.array([-1 if n is None else n for n in shape], np.int64)]


def _compared_bytes(a: np.ndarray, b: np.ndarray) -> int:
    """Returns the order of two arrays by their sizes, then by their first bytes that differ."""
    if a.nbytes != b.nbytes:
        return a.nbytes - b.nbytes
    x, y = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (a, b))
    start, count = 0, 1 << 10
    while start < x.size:
        one, other = (v[start : start + count].tobytes() for v in (x, y))
        if one != other:
            return -1 if one < other else 1
        start, count = start + count, min(2 * count, 1 << 20)
    return 0


def _divided(total: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Quotients of the dtype of `total`, towards zero for integers."""
    if np.issubdtype(total.dtype, np.integer):
        return np.asarray(np.sign(total) * (np.abs(total) // counts), total.dtype)
    return np.asarray(total / counts.astype(total.dtype), total.dtype)


@host_op("ConditionalAccumulator", "ResourceConditionalAccumulator", shared=True)
def _make_dense(call: HostCall) -> list[Any]:
    return _make(call, Accumulator)


@host_op("SparseConditionalAccumulator", shared=True)
def _make_sparse(call: HostCall) -> list[Any]:
    return _make(call, SparseAccumulator)


def _make(call: HostCall, kind: type[Accumulator]) -> list[Any]:
    """Makes the accumulator, or checks that the one with this name is as it would be."""
    attrs, name = call.attrs, call.made.partition(" ")[2]
    mean = attrs["reduction_type"] == "MEAN"
    found = call.resources.get_or_make(call.made, lambda: kind(name, attrs["dtype"], attrs["shape"], mean))
    for what, is_, wanted in (
        ("is a", found.kind, kind.kind),
        ("has dtype", found.dtype.name, attrs["dtype"].name),
        ("has shape", format_shape(found.shape), format_shape(attrs["shape"])),
        ("has reduction", "MEAN" if found.mean else "SUM", attrs["reduction_type"]),
    ):
        if is_ != wanted:
            raise call.error(f"{found} {what} {is_}; {wanted} is asked for under the same name")
    return []


def _of(call: HostCall, kind: type[Accumulator] = Accumulator) -> Accumulator:
    """Returns the accumulator that the handle means, which must be of a kind and, where the
    op has one, of its dtype.
    """
    found = resource_of(call, Accumulator)
    dtype = call.attrs.get("dtype", found.dtype)
    if not isinstance(found, kind) or (kind is Accumulator and isinstance(found, SparseAccumulator)):
        raise call.error(f"{found} is a {found.kind}; a {kind.kind} is required")
    if dtype is not found.dtype:
        raise call.error(f"dtype is {dtype.name}; {found} has {found.dtype.name}")
    return found


@host_op("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient", shared=True)
def _apply(call: HostCall) -> list[Any]:
    step, gradient = call.inputs
    _of(call).apply(int(step), gradient)
    return []


@host_op("SparseAccumulatorApplyGradient", shared=True)
def _apply_sparse(call: HostCall) -> list[Any]:
    step, indices, values, shape = call.inputs
    known = shape if call.attrs["has_known_shape"] else None
    _of(call, SparseAccumulator).apply(int(step), (indices, values, known))
    return []


@host_op("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", shared=True)
def _take(call: HostCall) -> list[Any]:
    return _taken(call, _of(call))


@host_op("SparseAccumulatorTakeGradient", shared=True)
def _take_sparse(call: HostCall) -> list[Any]:
    return _taken(call, _of(call, SparseAccumulator))


def _taken(call: HostCall, accumulator: Accumulator) -> list[Any]:
    required = int(call.inputs[0])
    if required < 1:
        raise call.error(f"num_required is {required}; at least 1 is required")
    return accumulator.take(required, call.cancel)


@host_op("AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated", shared=True)
def _count(call: HostCall) -> list[Any]:
    return [np.array(resource_of(call, Accumulator).count, np.int32)]


@host_op("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep", shared=True)
def _set_step(call: HostCall) -> list[Any]:
    resource_of(call, Accumulator).set_step(int(call.inputs[0]))
    return []
