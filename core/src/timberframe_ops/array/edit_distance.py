"""EditDistance: how many insertions, deletions and replacements turn one sequence into another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.shapes import Shape, compatible, format_shape

Sequences = dict[tuple[int, ...], list[Any]]


def _shape(c: InferenceContext) -> list[Shape]:
    for first, operand in ((0, "hypothesis"), (3, "truth")):
        for i, (part, rank) in enumerate((("indices", 2), ("values", 1), ("shape", 1)), first):
            found = c.shapes[i]
            if found is not None and len(found) != rank:
                raise c.late_error(f"{operand}_{part} has shape {format_shape(found)}; it must have rank {rank}")
        indices, values, shape = c.shapes[first : first + 3]
        if indices is not None and not compatible(values, indices[:1]):
            raise c.late_error(
                f"{operand} has {indices[0]} indices and values of shape {format_shape(values)}; each has one"
            )
        if indices is not None and not compatible(shape, indices[1:]):
            raise c.late_error(
                f"{operand}_indices has {indices[1]} columns and {operand}_shape {format_shape(shape)} sizes"
            )
    hypothesis, truth = c.shape_value(2), c.shape_value(5)
    if hypothesis is None or truth is None:
        return [None]
    if len(hypothesis) != len(truth) or len(hypothesis) < 2:
        raise c.late_error(
            f"hypothesis_shape has {len(hypothesis)} elements and truth_shape {len(truth)}; equally many are required"
        )
    return [
        tuple(None if a is None or b is None else max(a, b) for a, b in zip(hypothesis[:-1], truth[:-1], strict=True))
    ]


def _sequences(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, operand: str) -> Sequences:
    """Returns the values of each sequence, by its row."""
    if ((indices < 0) | (indices >= shape)).any():
        raise InvalidArgumentError(f"{operand}_indices leave {operand}_shape {shape.tolist()}; they must not")
    found: Sequences = {}
    for row, value in zip(map(tuple, indices[:, :-1].tolist()), values, strict=True):
        found.setdefault(row, []).append(value)
    return found


def _distance(a: list[Any], b: list[Any]) -> int:
    """Levenshtein's distance, row after row of its table."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + int(x != y))
    return row[-1]


def _reference(
    attrs: Attrs,
    hypothesis_indices: np.ndarray,
    hypothesis_values: np.ndarray,
    hypothesis_shape: np.ndarray,
    truth_indices: np.ndarray,
    truth_values: np.ndarray,
    truth_shape: np.ndarray,
) -> np.ndarray:
    hypotheses = _sequences(hypothesis_indices, hypothesis_values, hypothesis_shape, "hypothesis")
    truths = _sequences(truth_indices, truth_values, truth_shape, "truth")
    result = np.zeros(np.maximum(hypothesis_shape, truth_shape)[:-1], np.float32)
    for row in hypotheses.keys() | truths.keys():
        truth = truths.get(row, [])
        distance = np.float32(_distance(hypotheses.get(row, []), truth))
        if attrs["normalize"]:
            distance = distance / np.float32(len(truth)) if truth else np.float32(np.inf)
        result[row] = distance
    return result


def _case(rows: list[list[int]], shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Returns a sparse matrix of these rows."""
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = np.array([x for row in rows for x in row], np.int64)
    return np.array(indices, np.int64).reshape(-1, 2), values, np.array(shape, np.int64)


def _samples() -> Iterator[Sample]:
    cases = [
        (_case([[1, 2, 3], [4]], (2, 3)), _case([[1, 3], [4, 5]], (2, 2))),
        (_case([[], [7, 7]], (2, 2)), _case([[1], [], [2]], (3, 1))),
        (_case([], (0, 0)), _case([], (0, 0))),
        (_case([[1, 2, 3, 4, 5, 6, 7]], (1, 7)), _case([[7, 6, 5, 4, 3, 2, 1]], (1, 7))),
    ]
    for hypothesis, truth in cases:
        for normalize in (True, False):
            parts = [Arg(values=x) for x in (*hypothesis, *truth)]
            yield Sample(parts, {"normalize": normalize}, {"T": ("int64",)})


def _errors() -> Iterator[ErrorSample]:
    good, bad = _case([[1, 2]], (1, 2)), _case([[1, 2]], (1, 1))
    yield ErrorSample(
        [Arg(values=x) for x in (*bad, *good)], r"leave hypothesis_shape \[1, 1\]", types={"T": ("int64",)}
    )
    wide = (good[0], np.array([1, 2, 3]), good[2])
    yield ErrorSample(
        [Arg(values=x) for x in (*good, *wide)], "truth has 2 indices and values of shape", types={"T": ("int64",)}
    )


define_op(
    "EditDistance",
    inputs=[
        "hypothesis_indices: int64", "hypothesis_values: T", "hypothesis_shape: int64",
        "truth_indices: int64", "truth_values: T", "truth_shape: int64",
    ],
    outputs=["output: float"],
    attrs=["normalize: bool = true", "T: type"],
    doc="Levenshtein's distance between sequences along the last dimension of two sparse tensors; with normalize "
    "divided by the length of the truth (infinite where that is empty).",
    shape=_shape,
    reference=_reference,
    gradient=NotDifferentiable("a count does not change with small changes of the inputs"),
    shape_inputs=("hypothesis_shape", "truth_shape"),
    samples=_samples,
    errors=_errors,
)  # fmt: skip
