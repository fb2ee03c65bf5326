"""NonMaxSuppression: the best of boxes that cover much of each other."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.ops.definition.opdef import Attrs, InferenceContext, MissingGradient, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_CHOICE = NotDifferentiable("which boxes are best changes in jumps")


def _similarity(corners: np.ndarray, areas: np.ndarray, one: int, others: list[int]) -> np.ndarray:
    """Returns what a box and each of others have in common, as a part of what they cover together."""
    low = np.maximum(corners[one, :2], corners[others, :2])
    high = np.minimum(corners[one, 2:], corners[others, 2:])
    common = np.maximum(high - low, 0).prod(1)
    both = areas[one] + areas[others] - common
    some = (areas[one] > 0) & (areas[others] > 0)
    parts: np.ndarray = np.divide(common, both, out=np.zeros_like(common), where=some)
    return parts


def _selected(
    boxes: np.ndarray, scores: np.ndarray, size: int, most: float, least: float, sigma: float = 0.0
) -> tuple[list[int], list[float]]:
    """Returns the boxes that are kept, the best first, and their scores (Bodla et al. 2017 where sigma is not 0)."""
    if size < 0:
        raise InvalidArgumentError(f"max_output_size is {size}; it must not be negative")
    if not 0 <= most <= 1:
        raise InvalidArgumentError(f"iou_threshold is {most:g}; it must lie in [0, 1]")
    wide, ranks = boxes.astype(np.float32), scores.astype(np.float32)
    corners = np.concatenate([np.minimum(wide[:, :2], wide[:, 2:]), np.maximum(wide[:, :2], wide[:, 2:])], 1)
    areas = (corners[:, 2:] - corners[:, :2]).prod(1)
    queue = [(-s, i, 0) for i, s in enumerate(ranks.tolist()) if s > least]
    heapq.heapify(queue)
    chosen: list[int] = []
    kept: list[float] = []
    while queue and len(chosen) < size:
        negative, i, begin = heapq.heappop(queue)
        before = score = -negative
        similar = _similarity(corners, areas, i, chosen[begin:])
        if sigma <= 0 and (similar > most).any():
            continue
        for part in similar[::-1].tolist() if sigma > 0 else ():
            score = float(np.float32(score * math.exp(-0.5 / sigma * part * part))) if part <= most else 0.0
            if score <= least:
                break
        if score == before:
            chosen.append(i)
            kept.append(score)
        elif score > least:
            heapq.heappush(queue, (-score, i, len(chosen)))
    return chosen, kept


def _padded(attrs: Attrs, values: Sequence[float], size: int, dtype: np.dtype) -> np.ndarray:
    missing = max(size - len(values), 0) if attrs["pad_to_max_output_size"] else 0
    return np.array([*values, *[0] * missing], dtype)


def _best(_: Attrs, boxes: np.ndarray, scores: np.ndarray, *limits: np.ndarray) -> np.ndarray:
    return np.array(_selected(boxes, scores, *(x.item() for x in limits))[0], np.int32)


def _best_padded(
    attrs: Attrs, boxes: np.ndarray, scores: np.ndarray, *limits: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    chosen, _ = _selected(boxes, scores, *(x.item() for x in limits))
    return _padded(attrs, chosen, limits[0].item(), np.dtype(np.int32)), np.array(len(chosen), np.int32)


def _best_scored(
    attrs: Attrs, boxes: np.ndarray, scores: np.ndarray, *limits: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    chosen, kept = _selected(boxes, scores, *(x.item() for x in limits))
    size = limits[0].item()
    return (
        _padded(attrs, chosen, size, np.dtype(np.int32)),
        _padded(attrs, kept, size, scores.dtype),
        np.array(len(chosen), np.int32),
    )


def _shape(c: InferenceContext) -> Sequence[Shape]:
    boxes, scores = c.require_rank(0, 2), c.require_rank(1, 1)
    if boxes[1] not in (None, 4):
        raise c.error(f"boxes has shape {format_shape(boxes)}; [boxes, 4] is required")
    if None not in (boxes[0], scores[0]) and boxes[0] != scores[0]:
        raise c.error(f"there are {boxes[0]} boxes and {scores[0]} scores; each box needs one")
    for i in range(2, len(c.shapes)):
        c.require_rank(i, 0)
    return [(None,)]


def _shape_padded(c: InferenceContext) -> Sequence[Shape]:
    return [*_shape(c), ()]


def _shape_scored(c: InferenceContext) -> Sequence[Shape]:
    return [*_shape(c), (None,), ()]


_DOC = (
    "The indices of boxes [boxes, 4] (two corners: y, x, y, x) in the order of their scores, those left out that have "
    "more than iou_threshold in common with a better one, or score_threshold or less as their score"
)
_TYPES = ("T: {half, float} = DT_FLOAT", "T_threshold: {half, float} = DT_FLOAT")
_INPUTS = ("boxes: T", "scores: T", "max_output_size: int32")
_THRESHOLDS = ("iou_threshold: T_threshold", "score_threshold: T_threshold")

define_op(
    "NonMaxSuppressionV3",
    inputs=[*_INPUTS, *_THRESHOLDS],
    outputs=["selected_indices: int32"],
    attrs=_TYPES,
    doc=f"{_DOC}.",
    shape=_shape,
    reference=_best,
    gradient=_CHOICE,
    on_host=True,
)

define_op(
    "NonMaxSuppressionV4",
    inputs=[*_INPUTS, *_THRESHOLDS],
    outputs=["selected_indices: int32", "valid_outputs: int32"],
    attrs=[*_TYPES, "pad_to_max_output_size: bool = false"],
    doc=f"{_DOC}; perhaps zeros up to max_output_size; and how many there are.",
    shape=_shape_padded,
    reference=_best_padded,
    gradient=_CHOICE,
    on_host=True,
)

define_op(
    "NonMaxSuppressionV5",
    inputs=[*_INPUTS, "iou_threshold: T", "score_threshold: T", "soft_nms_sigma: T"],
    outputs=["selected_indices: int32", "selected_scores: T", "valid_outputs: int32"],
    attrs=[_TYPES[0], "pad_to_max_output_size: bool = false"],
    doc=f"{_DOC}; with soft_nms_sigma above 0 scores become smaller instead; their scores; and how many there are.",
    shape=_shape_scored,
    reference=_best_scored,
    gradient=MissingGradient("TensorFlow has none of the scores that it lowers either"),
    on_host=True,
)
