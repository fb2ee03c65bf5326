"""Ops on sets, the elements along the last dimension of tensors and sparse tensors: TensorFlow's set_ops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, compatible, format_shape
from timberframe_ops.sparse.shapes import Parts, check_inside, check_parts

_SETS = NotDifferentiable("sets are no functions with derivatives")
_T = "T: {int8, int16, int32, int64, uint8, uint16, string}"
_VALIDATE = "validate_indices: bool = true"
_OPERATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "a-b": np.setdiff1d,
    "b-a": lambda a, b: np.setdiff1d(b, a),
    "intersection": np.intersect1d,
    "union": np.union1d,
}


def _checked(attrs: Attrs, indices: np.ndarray, shape: np.ndarray, label: str) -> None:
    """Raises InvalidArgumentError where indices leave the shape or, with validate_indices, are not in order."""
    check_inside(indices, shape, f"{label}_indices")
    order = np.lexsort(indices.T[::-1])
    repeated = (indices[1:] == indices[:-1]).all(axis=1).any()
    if attrs["validate_indices"] and (repeated or (order != np.arange(len(indices))).any()):
        raise InvalidArgumentError(f"{label}_indices are not in order, each once; with validate_indices they must be")


def _set_size(attrs: Attrs, indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> np.ndarray:
    _checked(attrs, indices, shape, "set")
    groups, (keys, _), distinct = _numbered((indices[:, :-1], values), (indices[:0, :-1], values[:0]))
    sizes = np.zeros(shape[:-1].tolist(), np.int32)
    np.add.at(sizes, tuple(groups[np.unique(keys) // max(len(distinct), 1)].T), 1)
    return sizes


def _numbered(*sets: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Returns numbers for the elements of two families of sets, equal where set and value are.

    sets: of each family the index of the set of each element, and the element's value. Returns the different indices,
    the numbers of each family's elements, and the different values, all in order: a number is the position of the index
    times the count of the values, plus the position of the value.
    """
    rows, values = (np.concatenate(x) for x in zip(*sets, strict=True))
    groups, group = np.unique(rows, axis=0, return_inverse=True)
    distinct, position = np.unique(values, return_inverse=True)
    keys = group.reshape(-1) * len(distinct) + position.reshape(-1)
    return groups, np.split(keys, [len(sets[0][1])]), distinct


def _combined(
    attrs: Attrs, first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], shape: Sequence[int]
) -> Parts:
    """Returns the sparse tensor of what the operation makes of each pair of sets; shape: of the families."""
    groups, keys, distinct = _numbered(first, second)
    kept = _OPERATIONS[attrs["set_operation"].lower()](*keys)
    group, value = np.divmod(kept, max(len(distinct), 1))
    place = np.arange(len(kept)) - np.searchsorted(group, group)
    largest = int(place.max()) + 1 if len(place) else 0
    indices = np.concatenate([groups[group], place[:, np.newaxis]], axis=1)
    return indices, distinct[value], np.array([*shape, largest], np.int64)


def _of_dense(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the index of the set of each element of a tensor, and the elements."""
    rows = np.indices(x.shape[:-1], np.int64).reshape(x.ndim - 1, math.prod(x.shape[:-1])).T
    return np.repeat(rows, x.shape[-1], axis=0), x.reshape(-1)


def _check_families(first: Sequence[int], second: Sequence[int]) -> None:
    if list(first) != list(second):
        raise InvalidArgumentError(
            f"the sets have shapes {list(first)} and {list(second)} but for the last dimension; they must be equal"
        )


def _dense_to_dense(attrs: Attrs, set1: np.ndarray, set2: np.ndarray) -> Parts:
    _check_families(set1.shape[:-1], set2.shape[:-1])
    return _combined(attrs, _of_dense(set1), _of_dense(set2), set1.shape[:-1])


def _dense_to_sparse(
    attrs: Attrs, set1: np.ndarray, indices: np.ndarray, values: np.ndarray, shape: np.ndarray
) -> Parts:
    _checked(attrs, indices, shape, "set2")
    _check_families(set1.shape[:-1], shape[:-1].tolist())
    return _combined(attrs, _of_dense(set1), (indices[:, :-1], values), set1.shape[:-1])


def _sparse_to_sparse(attrs: Attrs, *parts: np.ndarray) -> Parts:
    (indices1, values1, shape1), (indices2, values2, shape2) = parts[:3], parts[3:]
    _checked(attrs, indices1, shape1, "set1")
    _checked(attrs, indices2, shape2, "set2")
    _check_families(shape1[:-1].tolist(), shape2[:-1].tolist())
    return _combined(attrs, (indices1[:, :-1], values1), (indices2[:, :-1], values2), shape1[:-1].tolist())


def _require_families(c: InferenceContext, rank: int | None, label: str) -> None:
    if rank is not None and rank < 2:
        raise c.late_error(
            f"{label} has rank {rank}; at least 2 is required, the last dimension being that of the sets"
        )


def _size_shape(c: InferenceContext) -> Sequence[Shape]:
    rank = check_parts(c, label="set")
    _require_families(c, rank, "set")
    return [c.unknown_sizes(None if rank is None else rank - 1)]


def _set_shape(c: InferenceContext) -> Sequence[Shape]:
    """Checks both sets, which are tensors or the three parts of sparse ones, and gives the shapes of the result."""
    if c.attrs["set_operation"].lower() not in _OPERATIONS:
        raise c.late_error(f"set_operation is {c.attrs['set_operation']!r}; it must be {', '.join(_OPERATIONS)}")
    names = [argument.name for argument in c.op.inputs]
    ranks = [
        c.rank(names.index(label)) if label in names else check_parts(c, names.index(f"{label}_indices"), label)
        for label in ("set1", "set2")
    ]
    for label, rank in zip(("set1", "set2"), ranks, strict=True):
        _require_families(c, rank, label)
    known = [rank for rank in ranks if rank is not None]
    if len(set(known)) > 1:
        raise c.late_error(f"set1 has rank {ranks[0]} and set2 rank {ranks[1]}; they must be equal")
    if c.op.name == "DenseToDenseSetOperation" and len(known) == 2:
        first, second = (tuple(shape or ())[:-1] for shape in c.shapes)
        if not compatible(first, second):
            raise c.error(
                f"the sets have shapes {format_shape(first)} and {format_shape(second)} but for the last dimension; "
                "they must be equal"
            )
    rank = known[0] if known else None
    return [(None, rank), (None,), (rank,)]


define_op(
    "SetSize",
    inputs=("set_indices: int64", "set_values: T", "set_shape: int64"),
    outputs=("size: int32",),
    attrs=(_VALIDATE, _T),
    doc="How many different elements each set has, the sets being along the last dimension of a sparse tensor. "
    "validate_indices: the indices must be in order, each once.",
    shape=_size_shape,
    reference=_set_size,
    gradient=_SETS,
    on_host=True,
)

_SPARSE_1, _SPARSE_2 = (
    (f"set{i}_indices: int64", f"set{i}_values: T", f"set{i}_shape: int64") for i in (1, 2)
)  # fmt: skip
for _name, _inputs, _reference in (
    ("DenseToDenseSetOperation", ("set1: T", "set2: T"), _dense_to_dense),
    ("DenseToSparseSetOperation", ("set1: T", *_SPARSE_2), _dense_to_sparse),
    ("SparseToSparseSetOperation", (*_SPARSE_1, *_SPARSE_2), _sparse_to_sparse),
):
    define_op(
        _name,
        inputs=_inputs,
        outputs=("result_indices: int64", "result_values: T", "result_shape: int64"),
        attrs=("set_operation: string", _VALIDATE, _T),
        doc="The set_operation (a-b, b-a, intersection or union) of each set along the last dimension of set1 with "
        "that of set2, as a sparse tensor: each element once, in order. validate_indices: indices must be in order, "
        "each once.",
        shape=_set_shape,
        reference=_reference,
        gradient=_SETS,
        on_host=True,
    )
