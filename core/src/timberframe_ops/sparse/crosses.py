"""Crosses of the features in the rows of matrices and sparse matrices: TensorFlow's sparse_ops.cc."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape
from timberframe_ops.sparse.shapes import Parts, check_inside, some
from timberframe_ops.strings.hashing import fingerprint, joined_fingerprints

_LARGEST = 2**63 - 1
_KIND = "{int64, string}"


def _columns(attrs: Attrs, inputs: Sequence[np.ndarray]) -> tuple[int, list[list[list[Any]]]]:
    """Returns the number of rows, and for each sparse matrix, then each dense one, the list of
    its features in each row.
    """
    n, kinds = attrs["N"], len(attrs["sparse_types"])
    indices, values, shapes = inputs[:n], inputs[n : n + kinds], inputs[n + kinds : 2 * n + kinds]
    dense = inputs[2 * n + kinds :]
    sizes = [int(shape[0]) for shape in shapes] + [len(x) for x in dense]
    if len(set(sizes)) > 1:
        raise InvalidArgumentError(f"the inputs have {sizes} rows; equal numbers are required")
    columns: list[list[list[Any]]] = []
    for i, (places, found, shape) in enumerate(zip(indices, values, shapes, strict=True)):
        check_inside(places, shape, f"indices[{i}]")
        rows: list[list[Any]] = [[] for _ in range(sizes[0])]
        for row, value in zip(places[:, 0].tolist(), found.tolist(), strict=True):
            rows[row].append(value)
        columns.append(rows)
    return sizes[0] if sizes else 0, columns + [x.tolist() for x in dense]


def _crossed(attrs: Attrs, *inputs: np.ndarray) -> Parts:
    count, columns = _columns(attrs, inputs)
    combined = _hashed if attrs["hashed_output"] else _written
    made = [list(combined(attrs, [column[row] for column in columns])) for row in range(count)]
    places = [(row, place) for row, values in enumerate(made) for place in range(len(values))]
    flat = [value for values in made for value in values]
    values = np.array(flat, np.int64 if attrs["hashed_output"] else object)
    most = max((len(values) for values in made), default=0)
    return np.array(places, np.int64).reshape(-1, 2), values, np.array([count, most], np.int64)


def _hashed(attrs: Attrs, row: list[list[Any]]) -> Iterator[int]:
    """Yields the number of each combination of a row's features, in [0, num_buckets), or
    without buckets up to 2**63 - 2.
    """
    numbers = [[fingerprint(x) if isinstance(x, bytes) else x for x in features] for features in row]
    for features in itertools.product(*numbers):
        joined = attrs["hash_key"]
        for number in features:
            joined = joined_fingerprints(joined, number)
        yield joined % (attrs["num_buckets"] or _LARGEST)


def _written(attrs: Attrs, row: list[list[Any]]) -> Iterator[bytes]:
    """Returns each combination of a row's features as a text, such as b"red_X_7"."""
    texts = [[x if isinstance(x, bytes) else str(x).encode() for x in features] for features in row]
    return map(b"_X_".join, itertools.product(*texts))


def _shape(c: InferenceContext) -> Sequence[Shape]:
    n, kinds = c.attrs["N"], len(c.attrs["sparse_types"])
    if kinds != n:
        raise c.error(f"{n} indices for {kinds} values; as many of each are required")
    for i in range(2 * n + kinds, len(c.shapes)):
        if c.rank(i) not in (None, 2):
            raise c.late_error(f"a dense input has rank {c.rank(i)}; it must be a matrix")
    return some(2)


define_op(
    "SparseCross",
    inputs=("indices: N * int64", "values: sparse_types", "shapes: N * int64", "dense_inputs: dense_types"),
    outputs=("output_indices: int64", "output_values: out_type", "output_shape: int64"),
    attrs=(
        "N: int >= 0", "hashed_output: bool", "num_buckets: int >= 0", "hash_key: int", "sparse_types: list(type) >= 0",
        "dense_types: list(type) >= 0", f"out_type: {_KIND}", f"internal_type: {_KIND}",
    ),
    doc="The combinations of the features in each row of several matrices, the sparse ones first, as a sparse matrix. "
    "hashed_output: numbers below num_buckets instead of texts, by their fingerprints and hash_key. internal_type is "
    "TensorFlow's and changes nothing.",
    shape=_shape,
    reference=_crossed,
    gradient=NotDifferentiable("features and their numbers have no derivatives"),
    on_host=True,
)  # fmt: skip
