"""Metrics of the k best predictions."""

from __future__ import annotations

from functools import partial
from typing import Any

from timberframe.api.reduction import cumsum, reduce_sum
from timberframe.api.selection import cast
from timberframe.api.sparse import sparse_tensor_to_dense
from timberframe.metrics.state import added, metric, metric_variable, ratio, total, weighted
from timberframe_core.dtypes import float32, float64, int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.sparse_tensor import SparseTensor, SparseTensorValue


def _scope(kind: str, k: int | None = None, class_id: int | None = None, **_: Any) -> str:
    if k is None:
        return f"{kind}_top_k"
    return f"{kind}_{k}" if class_id is None else f"{kind}_{k}_class{class_id}"


def _hits(labels: Any, best: Tensor, class_id: int | None) -> tuple[Any, Any, Any]:
    """For each row: how many of its best are labels, how many best there are, how many labels; of class_id alone."""
    wanted, chosen = _rows(labels, best), cast(best, int64)
    same = _same(chosen, wanted)
    if class_id is not None:
        mine = cast(apply_op("Equal", [chosen, class_id]), float64)
        same = same * apply_op("ExpandDims", [mine, -1])
        counted, true = mine, cast(apply_op("Equal", [wanted, class_id]), float64)
    else:
        counted = apply_op("OnesLike", [cast(chosen, float64)])
        true = cast(apply_op("GreaterEqual", [wanted, 0]), float64)
    found = reduce_sum(apply_op("Max", [same, [-1]]), -1)
    return found, reduce_sum(counted, -1), reduce_sum(true, -1)


def _rows(labels: Any, best: Tensor) -> Any:
    """Labels with an axis for those of one row, where negative ones fill it; a SparseTensor is filled with -1."""
    dense = sparse_tensor_to_dense(labels, -1) if isinstance(labels, SparseTensor | SparseTensorValue) else labels
    wanted = cast(convert_to_tensor(dense), int64)
    one_each = best.shape.ndims is not None and wanted.shape.ndims == best.shape.ndims - 1
    return apply_op("ExpandDims", [wanted, -1]) if one_each else wanted


def _same(chosen: Any, wanted: Any) -> Any:
    """[..., k, labels]: 1 where a class of the best is a label."""
    pairs = [apply_op("ExpandDims", [chosen, -1]), apply_op("ExpandDims", [wanted, -2])]
    return cast(apply_op("Equal", pairs), float64)


def _best(predictions: Any, k: int) -> Tensor:
    result: Tensor = apply_op("TopKV2", [cast(predictions, float32), k])[1]
    return result


def _scaled(values: Any, weights: Any) -> Any:
    return values if weights is None else values * cast(convert_to_tensor(weights), float64)


def _part(hits: Any, others: Any, weights: Any, names: tuple[str, str]) -> tuple[Any, Any]:
    """hits / (hits + others), both summed over all updates; not a number before the first one, as in TensorFlow."""
    counts = [metric_variable([], float64, n) for n in names]
    amounts = [total(_scaled(x, weights)) for x in (hits, others)]
    new = [added(c, a) for c, a in zip(counts, amounts, strict=True)]
    sums: list[Any] = [c.value() for c in counts]
    value = sums[0] / (sums[0] + sums[1])
    return value, new[0] / (new[0] + new[1])


@metric(partial(_scope, "recall_at"))
def recall_at_top_k(
    labels: Any, predictions_idx: Any, k: int | None = None, class_id: int | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """The part of labels among the classes predictions_idx [..., k]; see `recall_at_k`."""
    best = convert_to_tensor(predictions_idx)
    return _recall(labels, best, k, class_id, weights)


@metric(partial(_scope, "recall_at"))
def recall_at_k(
    labels: Any, predictions: Any, k: int, class_id: int | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """The part of labels that are among the k best of predictions [..., classes]: (value, update), float64.

    labels: [...] or [..., labels], int; negative ones fill rows. class_id: only labels of this class count. weights:
    one for each row. See `mean` for the others.
    """
    best = _best(predictions, k)
    return _recall(labels, best, k, class_id, weights)


def _recall(labels: Any, best: Any, k: int | None, class_id: int | None, weights: Any) -> tuple[Any, Any]:
    hits, _, true = _hits(labels, best, class_id)
    names = (_state("true_positive", k, class_id), _state("false_negative", k, class_id))
    return _part(hits, true - hits, weights, names)


@metric(partial(_scope, "precision_at"))
def precision_at_top_k(
    labels: Any, predictions_idx: Any, k: int | None = None, class_id: int | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """The part of the classes predictions_idx [..., k] that are labels; see `precision_at_k`."""
    best = convert_to_tensor(predictions_idx)
    return _precision(labels, best, k, class_id, weights)


@metric(partial(_scope, "precision_at"))
def precision_at_k(
    labels: Any, predictions: Any, k: int, class_id: int | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """The part of the k best of predictions [..., classes] that are labels; arguments as of `recall_at_k`."""
    best = _best(predictions, k)
    return _precision(labels, best, k, class_id, weights)


def _precision(labels: Any, best: Any, k: int | None, class_id: int | None, weights: Any) -> tuple[Any, Any]:
    hits, chosen, _ = _hits(labels, best, class_id)
    names = (_state("true_positive", k, class_id), _state("false_positive", k, class_id))
    return _part(hits, chosen - hits, weights, names)


sparse_precision_at_k = precision_at_k


@metric(partial(_scope, "average_precision_at"))
def average_precision_at_k(labels: Any, predictions: Any, k: int, weights: Any = None) -> tuple[Any, Any]:
    """The mean of the rows' average precision among the k best of predictions [..., classes]: (value, update), float64.

    That of a row is the sum, over the i at which the i-th best is a label, of the precision among the i best, divided
    by the number of labels or k, whichever is less. Arguments as of `recall_at_k`; labels that are no class do not
    count.
    """
    if k < 1:
        raise InvalidArgumentError(f"tf.metrics.average_precision_at_k: k is {k}; 1 or more is required")
    given, best = convert_to_tensor(predictions), cast(_best(predictions, k), int64)
    wanted = _rows(labels, best)
    known = apply_op("Less", [wanted, cast(apply_op("Shape", [given])[-1], int64)])
    wanted = apply_op("SelectV2", [known, wanted, cast(-1, int64)])
    relevant: Any = apply_op("Max", [_same(best, wanted), [-1]])
    found: Any = cumsum(relevant, -1)
    precision = found / cumsum(apply_op("OnesLike", [relevant]), -1)
    labelled = cast(reduce_sum(cast(apply_op("GreaterEqual", [wanted, 0]), int64), -1), float64)
    values = reduce_sum(precision * relevant, -1) / apply_op("Minimum", [labelled, cast(k, float64)])
    made, counted = weighted(values, None if weights is None else cast(convert_to_tensor(weights), float64))
    highest, sums = (metric_variable([], float64, n) for n in ("max", "total"))
    rows, new = added(highest, total(counted)), added(sums, total(made))
    return ratio(sums.value(), highest.value()), ratio(new, rows)


sparse_average_precision_at_k = average_precision_at_k


def _state(kind: str, k: int | None, class_id: int | None) -> str:
    return (f"{kind}_at_k" if k is None else f"{kind}_at_{k}") + ("" if class_id is None else f"_class{class_id}")
