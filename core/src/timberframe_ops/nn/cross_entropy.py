"""The cross entropies that follow a softmax."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import int32
from timberframe_core.ops.definition.accuracy import Bound
from timberframe_core.ops.definition.gradients import apply_op, constant, sum_to_shape
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, define_op
from timberframe_core.ops.definition.samples import Arg, ErrorSample, Sample
from timberframe_core.ops.definition.value_checks import check_indices
from timberframe_core.shapes import Shape, format_shape
from timberframe_ops.nn.windows import widen


def _cross_entropy_shape(c: InferenceContext) -> Sequence[Shape]:
    pair = []
    for i in (0, 1):
        shape = c.shapes[i]
        if shape is not None and len(shape) != 2:
            error = c.late_error if i else c.error
            raise error(f"{('features', 'labels')[i]} has shape {format_shape(shape)}; it must have rank 2")
        pair.append((None, None) if shape is None else shape)
    sizes: list[int | None] = []
    for a, b in zip(*pair, strict=True):
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise c.error(
                f"features {format_shape(pair[0])} and labels {format_shape(pair[1])} do not broadcast; "
                "sizes must be equal or 1"
            )
        known = [d for d in (a, b) if d not in (None, 1)]
        sizes.append(known[0] if known else None if None in (a, b) else 1)
    return [(sizes[0],), tuple(sizes)]


def _log_softmax(x: np.ndarray) -> np.ndarray:
    shifted = x - x.max(axis=1, keepdims=True, initial=-np.inf)
    log: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log


def _cross_entropy_reference(attrs: Attrs, features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.broadcast_arrays(widen(features), widen(labels))
    if not x.size:
        return np.zeros(x.shape[0], features.dtype), np.zeros(x.shape, features.dtype)
    log = _log_softmax(x)
    loss = np.where(y == 0, 0, -log * y).sum(axis=1)
    return loss.astype(features.dtype), (np.exp(log) - y).astype(features.dtype)


LABEL_OUTSIDE = "label {0} of row {1} is outside [0, {2}); it must be the number of a class"


def _sparse_reference(attrs: Attrs, features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    check_indices(labels, features.shape[1], LABEL_OUTSIDE)
    if not features.size:
        return np.zeros(features.shape[0], features.dtype), features
    one_hot = (labels[:, None] == np.arange(features.shape[1])).astype(features.dtype)
    return _cross_entropy_reference(attrs, features, one_hot)


def _cross_entropy_error(
    attrs: Attrs, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], u: float
) -> list[np.ndarray]:
    """With n classes and d = max x - x: exp(-d) is off by (d + 3) u relatively (rounding d, and exp's 3 ULP), the
    sum by (n + max d + 3) u, its log by that plus 3 u |log|; products and their sum add (n + 2) u of magnitudes.
    """
    features, labels = inputs
    if not expected[1].size:
        return [np.zeros_like(e) for e in expected]
    if labels.ndim == 1:
        labels = (labels[:, None] == np.arange(features.shape[1])).astype(np.float64)
    x, y = np.broadcast_arrays(features, labels)
    n, span = x.shape[1], x.max(axis=1, keepdims=True) - x
    log = np.abs(_log_softmax(x))
    sum_error = (n + 3 + span.max(axis=1, keepdims=True)) * u
    log_error = sum_error + u * (span + 4 * log + 3 * np.log(n) + 1)
    loss = (np.abs(y) * (log_error + (n + 2) * u * log)).sum(axis=1)
    return [loss, np.exp(-log) * (log_error + sum_error + 6 * u) + 2 * u * np.abs(y) + u * np.abs(expected[1])]


_CROSS_ENTROPY_ACCURACY = Bound(_cross_entropy_error, "Higham, sections 3.1 and 27.8; OpenCL C's 3 ULP for exp and log")
_REALS = "T: {half, bfloat16, float, double}"


def _cross_entropy_samples() -> Iterator[Sample]:
    pairs = (
        ((2, 3), (2, 3)),
        ((5, 131), (5, 131)),
        ((4, 7), (1, 7)),
        ((1, 8), (4, 1)),
        ((0, 3), (0, 3)),
        ((2, 0), (2, 0)),
        ((1, 1), (1, 1)),
    )
    for features, labels in pairs:
        yield Sample(
            (
                Arg(features, low=-30.0, high=30.0, special=False),
                Arg(values=_probabilities(labels, features[1]), fixed=True),
            )
        )


def _probabilities(shape: tuple[int, int], classes: int) -> np.ndarray:
    """Returns rows that sum to 1 in every dtype, as only then the second output is the gradient: shares of 128 parts.

    One column stands for all classes.
    """
    rows, columns = shape
    shares = np.full((rows, columns), 128 // max(classes, 1), np.float64)
    shares[:, : 128 - int(shares[:1].sum()) if columns > 1 else 0] += 1
    return np.array([np.roll(row, i) for i, row in enumerate(shares)]).reshape(shape) / 128


def _sparse_samples() -> Iterator[Sample]:
    for batch, classes in ((2, 3), (5, 131), (0, 3), (1, 1)):
        labels: Any = [(i * 37) % classes for i in range(batch)]
        labels = labels or np.zeros(0, np.int64)
        types = {"T": ("float32",)} if classes == 1 else {}  # a loss that is always 0 has no slope to look for
        yield Sample((Arg((batch, classes), low=-30.0, high=30.0, special=False), Arg(values=labels)), types=types)
    yield Sample((Arg((3, 300), low=-30.0, high=30.0, special=False), Arg(values=[299, 2, 257])))


def _sparse_shape(c: InferenceContext) -> Sequence[Shape]:
    batch, classes = c.require_rank(0, 2)
    (count,) = c.require_rank(1, 1)
    if classes == 0:
        raise c.error(f"features has shape {format_shape((batch, classes))}; it must have at least one class")
    if batch is not None and count is not None and batch != count:
        raise c.error(f"features has {batch} rows and labels {count} elements; they must agree")
    batch = count if batch is None else batch
    return [(batch,), (batch, classes)]


def _by_rows(grad: Any, x: Any) -> Any:
    """Returns each row of x times its element of grad."""
    return apply_op("ExpandDims", [grad, constant(-1, int32)]) * x


def _features_gradient(op: Any, grad: Any, backprop_grad: Any) -> Any:
    """Returns the gradient: the loss's derivative is the second output; that output's own matters
    in second derivatives only.
    """
    total = _by_rows(grad, op.outputs[1])
    if backprop_grad.op.type == "ZerosLike":
        return total
    softmax = apply_op("Softmax", [op.inputs[0]])
    mean = apply_op("Sum", [backprop_grad * softmax, constant([1], int32)], {"keep_dims": True})
    return total + (backprop_grad - mean) * softmax


def _cross_entropy_gradient(op: Any, grad: Any, backprop_grad: Any) -> list[Any]:
    features = sum_to_shape(_features_gradient(op, grad, backprop_grad), op.inputs[0])
    labels = _by_rows(grad, -apply_op("LogSoftmax", [op.inputs[0]]))
    if backprop_grad.op.type != "ZerosLike":
        labels = labels - backprop_grad
    return [features, sum_to_shape(labels, op.inputs[1])]


define_op(
    "SoftmaxCrossEntropyWithLogits",
    inputs=("features: T", "labels: T"),
    outputs=("loss: T", "backprop: T"),
    attrs=(_REALS,),
    doc="Cross entropy of labels and softmax(features) for each row, and its gradient softmax(features) - labels.",
    shape=_cross_entropy_shape,
    reference=_cross_entropy_reference,
    gradient=_cross_entropy_gradient,
    accuracy=_CROSS_ENTROPY_ACCURACY,
    samples=_cross_entropy_samples,
    errors=lambda: [
        ErrorSample((Arg((2, 3)), Arg((2, 4))), "do not broadcast"),
        ErrorSample((Arg((3,)), Arg((3,))), "must have rank 2"),
    ],
)

define_op(
    "SparseSoftmaxCrossEntropyWithLogits",
    inputs=("features: T", "labels: Tlabels"),
    outputs=("loss: T", "backprop: T"),
    attrs=(_REALS, "Tlabels: {int32, int64} = DT_INT64"),
    doc="SoftmaxCrossEntropyWithLogits where each row's label is the number of the one class that has probability 1.",
    shape=_sparse_shape,
    reference=_sparse_reference,
    gradient=lambda op, grad, backprop_grad: [_features_gradient(op, grad, backprop_grad), None],
    accuracy=_CROSS_ENTROPY_ACCURACY,
    samples=_sparse_samples,
    errors=lambda: [
        ErrorSample((Arg((2, 3)), Arg(values=[0, 3])), r"label 3 of row 1 is outside \[0, 3\)"),
        ErrorSample((Arg((2, 3)), Arg(values=[-1, 0])), r"label -1 of row 0 is outside \[0, 3\)"),
        ErrorSample((Arg((2, 3)), Arg(values=[0])), "they must agree"),
        ErrorSample((Arg((3,)), Arg(values=[0])), "must have rank 2"),
        ErrorSample((Arg((1, 0)), Arg(values=[0])), "at least one class"),
    ],
)
