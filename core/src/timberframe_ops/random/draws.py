"""How random ops make their numbers of Philox blocks, in NumPy: the reference, and all that a NumPy device needs.

The order in which the 32-bit numbers are used up is TensorFlow's, so equal seeds give its numbers. Normals come in
float64 (the value before it is rounded); kernels compute them in their own precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_ops.random.philox import Philox, to_bfloat16, to_float16, to_float32, to_float64, wide

SAMPLES_PER_OUTPUT = 256
"""Blocks that a stream keeps for each output of an op that may reject some; all ops but a few reserve that many."""

TRUNCATION = 2.0
"""A truncated normal lies within so many standard deviations."""

SMALLEST_UNIFORM = 1.0e-7
"""What a uniform below it is taken for before its logarithm is."""

_TO_UNIFORM = {"float32": to_float32, "float64": to_float64, "float16": to_float16, "bfloat16": to_bfloat16}


def uniform_bits(bits: np.ndarray, dtype: str) -> np.ndarray:
    """Uniforms in [0, 1) of 32-bit numbers; bfloat16 as float32."""
    return _TO_UNIFORM[dtype](bits)


def numbers_per_output(dtype: str) -> int:
    """32-bit numbers that make one uniform or normal of this dtype."""
    return 2 if dtype == "float64" else 1


def uniform(philox: Philox, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Returns uniform numbers in [0, 1); bfloat16 as float32."""
    count = int(np.prod(shape, dtype=np.int64))
    return uniform_bits(philox.numbers(count * numbers_per_output(dtype)), dtype).reshape(shape)


def box_muller(bits: np.ndarray, double: bool) -> np.ndarray:
    """Standard normals of 32-bit numbers, as many as there are numbers (half as many where `double`), in float64.

    Each pair of uniforms u, v gives sqrt(-2 log u) sin(2 pi v) and the same with cos. Below float64, u and the angle
    are those of float32.
    """
    uniforms = (to_float64 if double else to_float32)(bits)
    pairs = uniforms.reshape(*uniforms.shape[:-1], uniforms.shape[-1] // 2, 2)
    u = np.maximum(pairs[..., 0], pairs.dtype.type(SMALLEST_UNIFORM)).astype(np.float64)
    angle = (2 * np.pi * pairs[..., 1].astype(np.float64)).astype(pairs.dtype).astype(np.float64)
    radius = np.sqrt(-2 * np.log(u))
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], -1).reshape(uniforms.shape)


def normal(philox: Philox, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Standard normals."""
    count = int(np.prod(shape, dtype=np.int64))
    per_block = 4 // numbers_per_output(dtype)
    blocks = philox.blocks(-(-count // per_block))
    return box_muller(blocks, dtype == "float64").reshape(-1)[:count].reshape(shape)


def truncated_normal(philox: Philox, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Standard normals of magnitude below 2: as many outputs as a block has normals share a run of 256 numbers each.

    The first that are small enough fill the group.
    """
    count = int(np.prod(shape, dtype=np.int64))
    group = 4 // numbers_per_output(dtype)
    starts = np.arange(-(-count // group), dtype=np.uint64) * np.uint64(group * SAMPLES_PER_OUTPUT // 4)
    out = np.empty((len(starts), group))
    filled = np.zeros(len(starts), np.int64)
    open_groups, iteration = np.arange(len(starts)), 0
    while len(open_groups):
        drawn = box_muller(philox.blocks_at(starts[open_groups] + np.uint64(iteration)), dtype == "float64")
        for column in drawn.T:
            fits = (np.abs(column) < TRUNCATION) & (filled[open_groups] < group)
            rows = open_groups[fits]
            out[rows, filled[rows]] = column[fits]
            filled[rows] += 1
        open_groups = open_groups[filled[open_groups] < group]
        iteration += 1
    return out.reshape(-1)[:count].reshape(shape)


def full_range(philox: Philox, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Returns integers with every bit random."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.itemsize == 4:
        return philox.numbers(count).view(dtype).reshape(shape)
    return wide(philox.numbers(2 * count)).view(dtype).reshape(shape)


def uniform_int(philox: Philox, shape: tuple[int, ...], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Returns integers in [low, high): the remainder of a random one, so that small numbers
    are a little more frequent.
    """
    dtype = low.dtype
    unsigned = np.dtype(dtype.name.removeprefix("u").replace("int", "uint"))
    bits = full_range(philox, shape, unsigned)
    span = unsigned.type((int(high) - int(low)) % 2 ** (8 * dtype.itemsize))
    with np.errstate(over="ignore"):
        return np.asarray(bits % span + low.reshape(()).view(unsigned)).view(dtype)


def permutation(philox: Philox, size: int) -> np.ndarray:
    """Returns a random order of `size` rows: each row swaps with one after it or itself, chosen by a remainder."""
    order = np.arange(size)
    if size > 1:
        steps = philox.numbers(size - 1) % np.arange(size, 1, -1, dtype=np.uint32)
        for i, step in enumerate(steps.tolist()):
            j = i + step
            order[i], order[j] = order[j], order[i]
    return order


def multinomial(philox: Philox, logits: np.ndarray, count: int) -> np.ndarray:
    """Classes drawn with probabilities in proportion to exp(logits), `count` for each row, as int64.

    Infinite and NaN logits have probability zero. One row after another takes `count` uniform float64 numbers.
    """
    wide_logits = logits.astype(np.float64)
    finite = np.isfinite(wide_logits)
    top = np.max(np.where(finite, wide_logits, -np.inf), axis=1, keepdims=True, initial=-np.inf)
    with np.errstate(all="ignore"):
        weights = np.where(finite, np.exp(wide_logits - top), 0.0)
    totals = np.cumsum(weights, axis=1)
    points = to_float64(philox.numbers(2 * len(logits) * count)).reshape(len(logits), count)
    out = np.empty(points.shape, np.int64)
    for i, row in enumerate(totals):
        out[i] = np.searchsorted(row, points[i] * row[-1], side="right")
    return out
