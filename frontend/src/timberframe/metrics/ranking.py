"""Metrics of the k best predictions."""

from __future__ import annotations

from functools import partial
from typing import Any

from timberframe.api.reduction import reduce_sum
from timberframe.api.selection import cast
from timberframe.metrics.state import added, metric, metric_variable, total
from timberframe_core.dtypes import float32, float64, int64
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor


def _scope(kind: str, k: int | None = None, class_id: int | None = None, **_: Any) -> str:
    if k is None:
        return f"{kind}_top_k"
    return f"{kind}_{k}" if class_id is None else f"{kind}_{k}_class{class_id}"


def _hits(labels: Any, best: Tensor, class_id: int | None) -> tuple[Any, Any, Any]:
    """For each row: how many of its best are labels, how many best there are, how many labels; of class_id alone."""
    wanted = cast(convert_to_tensor(labels), int64)
    if best.shape.ndims is not None and wanted.shape.ndims == best.shape.ndims - 1:
        wanted = apply_op("ExpandDims", [wanted, -1])
    chosen = cast(best, int64)
    pairs = [apply_op("ExpandDims", [chosen, -1]), apply_op("ExpandDims", [wanted, -2])]
    same = cast(apply_op("Equal", pairs), float64)
    if class_id is not None:
        mine = cast(apply_op("Equal", [chosen, class_id]), float64)
        same = same * apply_op("ExpandDims", [mine, -1])
        counted, true = mine, cast(apply_op("Equal", [wanted, class_id]), float64)
    else:
        counted = apply_op("OnesLike", [cast(chosen, float64)])
        true = cast(apply_op("GreaterEqual", [wanted, 0]), float64)
    found = reduce_sum(apply_op("Max", [same, [-1]]), -1)
    return found, reduce_sum(counted, -1), reduce_sum(true, -1)


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


def _state(kind: str, k: int | None, class_id: int | None) -> str:
    return (f"{kind}_at_k" if k is None else f"{kind}_at_{k}") + ("" if class_id is None else f"_class{class_id}")
