"""What the definitions of ops on sparse tensors have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import InferenceContext
from timberframe_core.shapes import Shape, compatible, format_shape, rank_of_sparse

Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


def check_parts(c: InferenceContext, first: int = 0, label: str = "", with_shape: bool = True) -> int | None:
    """Returns the rank of the sparse tensor whose parts are the inputs from `first` on, None where it is unknown.

    Raises where their shapes do not fit. label: of the tensor, such as "a", where the op has several.
    """
    before = f"{label}_" if label else ""
    indices, values = c.shapes[first : first + 2]
    shape = c.shapes[first + 2] if with_shape else None
    for what, found, rank in (("indices", indices, 2), ("values", values, 1), ("shape", shape, 1)):
        if found is not None and len(found) != rank:
            raise c.late_error(f"{before}{what} has shape {format_shape(found)}; it must have rank {rank}")
    if indices is not None and not compatible(values, indices[:1]):
        raise c.late_error(f"{indices[0]} {before}indices for values of shape {format_shape(values)}; each needs one")
    if indices is not None and not compatible(shape, indices[1:]):
        raise c.late_error(f"{before}indices has {indices[1]} columns for {format_shape(shape)} sizes; each needs one")
    return rank_of_sparse(indices, shape)


def count_of(c: InferenceContext, first: int = 0) -> int | None:
    """Returns how many elements the sparse tensor has whose parts are the inputs from
    `first` on, where that is known.
    """
    for shape in c.shapes[first : first + 2]:
        if shape is not None and shape[0] is not None:
            return shape[0]
    return None


def some(rank: int | None) -> Sequence[Shape]:
    """Returns the shapes of the parts of a sparse tensor with some elements."""
    return [(None, rank), (None,), (rank,)]


def check_inside(indices: np.ndarray, shape: Any, label: str = "indices") -> None:
    """Raises InvalidArgumentError where indices leave the shape."""
    shape = np.asarray(shape)
    if not len(indices):
        return
    wrong = ((indices < 0) | (indices >= shape)).any(axis=1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidArgumentError(
            f"{label}[{at}] is {indices[at].tolist()}, outside the shape {shape.tolist()}; it must lie inside"
        )


def flat(indices: np.ndarray, shape: Any) -> np.ndarray:
    """Returns the row-major numbers of elements, int64; InvalidArgumentError where indices leave the shape."""
    check_inside(indices, shape)
    numbers = np.zeros(len(indices), np.int64)
    for column, size in zip(indices.T, np.asarray(shape).tolist(), strict=True):
        numbers = numbers * size + column
    return numbers


def unflat(numbers: np.ndarray, shape: Any) -> np.ndarray:
    """Returns the indices [elements, rank] of elements with row-major numbers."""
    sizes = [int(d) for d in np.asarray(shape)]
    made = np.empty((len(numbers), len(sizes)), np.int64)
    left = np.asarray(numbers, np.int64)
    for i in reversed(range(len(sizes))):
        made[:, i] = left % max(sizes[i], 1)
        left = left // max(sizes[i], 1)
    return made


def stacked(tensors: Sequence[Parts]) -> Parts:
    """Sparse tensors of one rank as the rows of one that has one dimension more and in the others the largest sizes."""
    rows = [np.insert(indices, 0, i, axis=1) for i, (indices, _, _) in enumerate(tensors)]
    sizes = np.max([shape for _, _, shape in tensors], axis=0)
    whole = np.array([len(tensors), *sizes], np.int64)
    return np.concatenate(rows), np.concatenate([values for _, values, _ in tensors]), whole


def rows_of(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> list[Parts]:
    """Returns the rows of a sparse tensor, each with one dimension less; InvalidArgumentError
    where indices leave the shape.
    """
    check_inside(indices, shape)
    order = np.argsort(indices[:, 0], kind="stable")
    ends = np.searchsorted(indices[order, 0], np.arange(int(shape[0])), side="right")
    parts = [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return [(indices[part, 1:], values[part], shape[1:]) for part in parts]
