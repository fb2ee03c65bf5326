"""Pooling over windows of sizes that differ by one, as NumPy computes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from timberframe_sdk import InvalidArgumentError, KernelDef, KernelNode, Launcher


def _ends(limits: np.ndarray, size: int, overlapping: bool) -> tuple[np.ndarray, np.ndarray]:
    """Returns where windows begin and end along an axis; those that overlap share a border."""
    return limits[:-1], np.minimum(limits[1:] + int(overlapping), size)


def _reduced(reduce: np.ufunc, x: np.ndarray, limits: np.ndarray, overlapping: bool, axis: int) -> np.ndarray:
    """Returns one value of each window along an axis."""
    edges = np.stack(_ends(limits, x.shape[axis], overlapping), 1).reshape(-1)
    longer = np.concatenate([x, x.take([0], axis)], axis)  # the last end is an index, too
    return np.asarray(reduce.reduceat(longer, edges, axis).take(range(0, edges.size, 2), axis))


def _counts(rows: np.ndarray, columns: np.ndarray, shape: Sequence[int], overlapping: bool) -> np.ndarray:
    """Returns how many elements of an image each window has, to broadcast over batch and channels."""
    sizes = [np.subtract(*_ends(x, n, overlapping)[::-1]) for x, n in ((rows, shape[1]), (columns, shape[2]))]
    return np.asarray(np.multiply.outer(*sizes))[None, :, :, None]


def _pool(node: KernelNode) -> Launcher:
    from timberframe_ops.nn.fractional_pooling import window_limits

    shape, wanted = node.inputs[0].shape, list(node.outputs[0].shape[1:3])
    overlapping, mean = node.attrs["overlapping"], node.op == "FractionalAvgPool"

    def launch(x: np.ndarray, out: np.ndarray, *sequences: np.ndarray) -> None:
        rows, columns = window_limits(node.attrs, shape[1:3], wanted)
        sequences[0][...], sequences[1][...] = rows, columns
        reduce = np.add if mean else np.maximum
        found = _reduced(reduce, _reduced(reduce, x, rows, overlapping, 1), columns, overlapping, 2)
        if mean:
            counts = _counts(rows, columns, shape, overlapping).astype(x.dtype)
            found = found / counts if x.dtype.kind == "f" else np.sign(found) * (np.abs(found) // counts)
        out[...] = found

    return launch


def _check(node: KernelNode, *sequences: np.ndarray) -> None:
    from timberframe_ops.nn.fractional_pooling import OUTSIDE

    for limits, size in zip(sequences, node.outputs[0].shape[1:3], strict=True):
        if ((limits < 0) | (limits > size)).any():
            message = f"{node.op} '{node.name}': {OUTSIDE.format(limits.tolist(), size)}"
            raise InvalidArgumentError(message, node.name)


def _mean_gradient(node: KernelNode) -> Launcher:
    shape, overlapping = node.outputs[0].shape, node.attrs["overlapping"]

    def spread(shares: np.ndarray, limits: np.ndarray, axis: int) -> np.ndarray:
        """Returns the sum of the shares of the windows that each position of an axis is in."""
        found = np.zeros((shape[axis], *np.delete(shares.shape, axis)))
        for share, begin, end in zip(
            np.moveaxis(shares, axis, 0), *_ends(limits, shape[axis], overlapping), strict=True
        ):
            found[begin:end] += share
        return np.moveaxis(found, 0, axis)

    def launch(grads: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        _check(node, rows, columns)
        shares = grads / _counts(rows, columns, shape, overlapping)
        out[...] = spread(spread(shares, rows, 1), columns, 2)

    return launch


def _maximum_gradient(node: KernelNode) -> Launcher:
    overlapping = node.attrs["overlapping"]

    def launch(x: np.ndarray, y: np.ndarray, grads: np.ndarray, *rest: np.ndarray) -> None:
        *sequences, out = rest
        _check(node, *sequences)
        tall, wide = (_ends(s, x.shape[i], overlapping) for i, s in enumerate(sequences, 1))
        batch, channel = np.ix_(range(x.shape[0]), range(x.shape[3]))
        out[...] = 0
        for i, (top, bottom) in enumerate(zip(*tall, strict=True)):
            for j, (left, right) in enumerate(zip(*wide, strict=True)):
                window = x[:, top:bottom, left:right].reshape(len(x), -1, x.shape[3])
                down, across = np.divmod(window.argmax(1), right - left)
                np.add.at(out, (batch, top + down, left + across, channel), grads[:, i, j])

    return launch


_TYPES = {"T": ("float32", "float64", "int32", "int64")}

KERNELS = [
    KernelDef("FractionalMaxPool", "CPU", _pool, _TYPES),
    KernelDef("FractionalAvgPool", "CPU", _pool, _TYPES),
    KernelDef("FractionalMaxPoolGrad", "CPU", _maximum_gradient, _TYPES),
    KernelDef("FractionalAvgPoolGrad", "CPU", _mean_gradient, _TYPES),
]
