"""CTCLoss and CTCGreedyDecoder: sequences of labels without alignment. Graves et al. 2006, and TensorFlow's ctc_ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.gradients import apply_op, constant
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_TYPE = "T: {float, double} = DT_FLOAT"


def lengths_of(inputs: np.ndarray, lengths: np.ndarray) -> list[int]:
    """Returns the lengths of the sequences in inputs [time, batch, classes];
    InvalidArgumentError where they do not fit.
    """
    steps, batch = inputs.shape[:2]
    if lengths.shape != (batch,):
        raise InvalidArgumentError(
            f"sequence_length has shape {format_shape(lengths.shape)} for a batch of {batch}; one for each is required"
        )
    found: list[int] = lengths.tolist()
    for b, length in enumerate(found):
        if not 0 <= length <= steps:
            raise InvalidArgumentError(f"sequence_length[{b}] is {length}; it must lie in [0, {steps}], the time")
    return found


def sparse_rows(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns rows of labels as the parts of a sparse matrix."""
    places = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    widest = max((len(row) for row in rows), default=0)
    return (
        np.array(places, np.int64).reshape(-1, 2),
        np.array([x for row in rows for x in row], np.int64),
        np.array([len(rows), widest], np.int64),
    )


def _log_softmax(x: np.ndarray) -> np.ndarray:
    shifted = x - x.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def _labels(attrs: Attrs, indices: np.ndarray, values: np.ndarray, batch: int, classes: int) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(batch)]
    for (b, _), value in zip(indices.tolist(), values.tolist(), strict=True):
        if not 0 <= b < batch:
            raise InvalidArgumentError(f"labels_indices has row {b} for a batch of {batch}; it must lie inside")
        if not 0 <= value < classes - 1:
            raise InvalidArgumentError(
                f"labels_values has {value} in row {b}; it must lie in [0, {classes - 1}), the last class is the blank"
            )
        if not (attrs["preprocess_collapse_repeated"] and rows[b][-1:] == [value]):
            rows[b].append(value)
    return rows


def _paths(extended: np.ndarray, blank: int, merge: bool) -> tuple[np.ndarray, np.ndarray]:
    """For each place in labels with blanks between them: whether it follows itself, and the one two before it."""
    stays = np.full(len(extended), True) if merge else extended == blank
    skips = np.zeros(len(extended), bool)
    skips[2:] = extended[2:] != blank
    if merge:
        skips[2:] &= extended[2:] != extended[:-2]
    return stays, skips


def _forward(logs: np.ndarray, stays: np.ndarray, skips: np.ndarray) -> np.ndarray:
    """For each step and place the log probability of all ways that lead there; logs: of the place's class."""
    alpha = np.full(logs.shape, -np.inf)
    alpha[0, :2] = logs[0, :2]
    none = np.array([-np.inf])
    for t in range(1, len(logs)):
        before = alpha[t - 1]
        total = np.where(stays, before, -np.inf)
        total = np.logaddexp(total, np.concatenate([none, before[:-1]]))
        two = np.concatenate([none, none, before])[: len(before)]
        alpha[t] = np.logaddexp(total, np.where(skips, two, -np.inf)) + logs[t]
    return alpha


def _one(logs: np.ndarray, label: list[int], merge: bool) -> tuple[float, np.ndarray]:
    """Returns the loss of one sequence and its gradient, from the log probabilities [time, classes].

    Where no alignment exists, as repeated labels need blanks between them, the loss is infinite, as in TensorFlow.
    """
    blank = logs.shape[1] - 1
    extended = np.full(2 * len(label) + 1, blank)
    extended[1::2] = label
    stays, skips = _paths(extended, blank, merge)
    own = logs[:, extended]
    with np.errstate(invalid="ignore"):
        alpha = _forward(own, stays, skips)
        turned = np.zeros(len(skips), bool)  # going back, a place is skipped from where it is skipped to
        turned[2:] = skips[::-1][: len(skips) - 2]
        beta = _forward(own[::-1, ::-1], stays[::-1], turned)[::-1, ::-1] - own
        whole = np.logaddexp.reduce(alpha[-1, -2:])
        shares = np.exp(alpha + beta - whole)
    gradient = np.exp(logs)
    if np.isfinite(whole):
        np.subtract.at(gradient.T, extended, np.nan_to_num(shares).T)
    return -float(whole), gradient


def _loss(
    attrs: Attrs, inputs: np.ndarray, indices: np.ndarray, values: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    sizes, merge = lengths_of(inputs, lengths), attrs["ctc_merge_repeated"]
    labels = _labels(attrs, indices, values, inputs.shape[1], inputs.shape[2])
    loss, gradient = np.zeros(inputs.shape[1], inputs.dtype), np.zeros(inputs.shape, inputs.dtype)
    for b, (size, label) in enumerate(zip(sizes, labels, strict=True)):
        if not size or (len(label) > size and attrs["ignore_longer_outputs_than_inputs"]):
            continue
        if len(label) > size:
            raise InvalidArgumentError(
                f"row {b} has {len(label)} labels, and sequence_length is {size}; ignore_longer_outputs_than_inputs "
                "leaves such rows out"
            )
        loss[b], gradient[:size, b] = _one(_log_softmax(inputs[:size, b].astype(np.float64)), label, merge)
    return loss, gradient


def _loss_shape(c: InferenceContext) -> Sequence[Shape]:
    inputs = c.require_rank(0, 3)
    c.require_rank(1, 2)
    c.require_rank(2, 1)
    lengths = c.require_rank(3, 1)
    if None not in (inputs[1], lengths[0]) and inputs[1] != lengths[0]:
        raise c.error(f"sequence_length has {lengths[0]} elements for a batch of {inputs[1]}; one for each is required")
    return [(inputs[1] if inputs[1] is not None else lengths[0],), inputs]


def _loss_gradient(op: Any, grad: Any, _: Any) -> list[Any]:
    """Returns the gradient: the op has computed it; as in TensorFlow it has no derivative of its own."""
    wide = apply_op("Reshape", [grad, constant([1, -1, 1], "int32")])
    return [apply_op("Mul", [wide, apply_op("PreventGradient", [op.outputs[1]])]), None, None, None]


define_op(
    "CTCLoss",
    inputs=["inputs: T", "labels_indices: int64", "labels_values: int32", "sequence_length: int32"],
    outputs=["loss: T", "gradient: T"],
    attrs=[
        "preprocess_collapse_repeated: bool = false", "ctc_merge_repeated: bool = true",
        "ignore_longer_outputs_than_inputs: bool = false", _TYPE,
    ],
    doc="The negative log probability of each row of labels under logits [time, batch, classes], whose last class is "
    "the blank, over all alignments; and its gradient.",
    shape=_loss_shape,
    reference=_loss,
    gradient=_loss_gradient,
    constant_outputs=("gradient",),
    on_host=True,
)  # fmt: skip


def _greedy(attrs: Attrs, inputs: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
    sizes, classes = lengths_of(inputs, lengths), inputs.shape[2]
    blank = attrs["blank_index"] + (classes if attrs["blank_index"] < 0 else 0)
    if not 0 <= blank < classes:
        raise InvalidArgumentError(f"blank_index is {attrs['blank_index']} for {classes} classes; it must lie inside")
    rows, sums = [], np.zeros((len(sizes), 1), inputs.dtype)
    for b, size in enumerate(sizes):
        best = inputs[:size, b].argmax(axis=1).tolist()
        sums[b] = -inputs[:size, b].max(axis=1).sum(dtype=inputs.dtype) if size else 0
        before = [-1, *best[:-1]]
        repeats = attrs["merge_repeated"]
        rows.append([x for x, old in zip(best, before, strict=False) if x != blank and not (repeats and x == old)])
    return (*sparse_rows(rows), sums)


def _greedy_shape(c: InferenceContext) -> Sequence[Shape]:
    batch = c.require_rank(0, 3)[1]
    c.require_rank(1, 1)
    return [(None, 2), (None,), (2,), (batch, 1)]


define_op(
    "CTCGreedyDecoder",
    inputs=["inputs: T", "sequence_length: int32"],
    outputs=["decoded_indices: int64", "decoded_values: int64", "decoded_shape: int64", "log_probability: T"],
    attrs=["merge_repeated: bool = false", "blank_index: int = -1", _TYPE],
    doc="The most probable class at each step of logits [time, batch, classes] without blanks, as a sparse matrix, "
    "and the negative sum of these logits; merge_repeated: equal ones that follow each other count once.",
    shape=_greedy_shape,
    reference=_greedy,
    gradient=NotDifferentiable("labels are integers"),
    on_host=True,
)
