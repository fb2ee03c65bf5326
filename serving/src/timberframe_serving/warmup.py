"""Requests that a version computes before it serves: recorded requests, or made-up ones at every size of batch.

Plans are made for shapes, so that after this no request waits for one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import timberframe as tf
from timberframe_core.dtypes import string
from timberframe_core.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from timberframe_serving import messages
from timberframe_serving.batching import BatchingSettings, Costs
from timberframe_serving.signatures import Array, Port, Signature

RECORDED = Path("assets.extra") / "tf_serving_warmup_requests"
MOST_RECORDED = 1000
_REPEATS = 3
_OPEN_SIZE = 1
"""The value that an open size other than the first is taken as."""


def recorded_requests(folder: Path) -> Iterator[Any]:
    """Yields the PredictionLog messages that are recorded in a version's folder; none where there is no such file.

    Raises FailedPreconditionError where there are more than 1,000, as TensorFlow Serving does, and DataLossError where
    the file is damaged.
    """
    file = folder / RECORDED
    if not file.is_file():
        return
    for count, record in enumerate(tf.io.tf_record_iterator(str(file)), 1):
        if count > MOST_RECORDED:
            raise FailedPreconditionError(
                f"warm-up '{file}': has over {MOST_RECORDED} requests; at most that many may be"
            )
        yield messages.parse(messages.serving("PredictionLog"), record)


def batch_sizes(settings: BatchingSettings) -> list[int]:
    """Returns the sizes that batches are likely to have: the allowed ones, or powers of two up to the largest."""
    if not settings.enabled:
        return [1]
    if settings.allowed_batch_sizes:
        return list(settings.allowed_batch_sizes)
    sizes = [1]
    while sizes[-1] * 2 <= settings.max_batch_size:
        sizes.append(sizes[-1] * 2)
    return sizes


def made_up(port: Port, rows: int, random: np.random.Generator) -> Array:
    """Returns an array that an input takes, of small numbers or empty strings, with so many rows where it has rows."""
    sizes = port.shape or ()
    shape = [rows if i == 0 and size is None else _OPEN_SIZE if size is None else size for i, size in enumerate(sizes)]
    if port.dtype == string:
        array = np.empty(shape, object)
        array.fill(b"")
        return array
    if port.dtype.is_floating or port.dtype.is_complex:
        return random.uniform(0, 1, shape).astype(port.dtype.numpy)
    return random.integers(0, 2, shape).astype(port.dtype.numpy)


def try_signature(signature: Signature, sizes: list[int]) -> tuple[bool, Costs]:
    """Runs a signature with made-up inputs of each size; says whether its rows may be computed together, and its costs.

    They may where two rows at once give what each gives alone. A model may refuse made-up inputs (InvalidArgumentError,
    OutOfRangeError, DataLossError), and its declared shapes decide; what else it raises goes on. Costs are those of
    inputs whose first size alone is open; of others nothing is known.
    """
    random = np.random.default_rng(0)
    if not all(p.takes_rows for p in signature.inputs) or not signature.inputs:
        sizes = [1]
    costs: dict[int, float] = {}
    try:
        together = signature.takes_rows and _independent(signature, random)
        for rows in sizes:
            arrays = [made_up(p, rows, random) for p in signature.inputs]
            costs[rows.bit_length()] = min(_timed(signature, arrays) for _ in range(_REPEATS))
    except (InvalidArgumentError, OutOfRangeError, DataLossError):
        return signature.takes_rows and all(p.shape is not None for p in signature.outputs), {}
    closed = all(p.shape is not None and None not in p.shape[1:] for p in signature.inputs)
    return together, costs if closed else {}


def _timed(signature: Signature, arrays: list[Array]) -> float:
    begin = time.perf_counter()
    signature.call(*arrays)
    return time.perf_counter() - begin


def _independent(signature: Signature, random: np.random.Generator) -> bool:
    both = [made_up(p, 2, random) for p in signature.inputs]
    outputs = [np.asarray(o) for o in signature.call(*both)]
    alone = [[np.asarray(o) for o in signature.call(*(a[i : i + 1] for a in both))] for i in range(2)]
    return all(
        o.ndim > 0 and o.shape[0] == 2 and all(_alike(o[i : i + 1], alone[i][at]) for i in range(2))
        for at, o in enumerate(outputs)
    )


def _alike(a: Array, b: Array) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "fcV":
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        return bool(np.allclose(a.astype(wide), b.astype(wide), rtol=1e-2, atol=1e-3, equal_nan=True))
    return bool((a == b).all())
