"""`tf.image.non_max_suppression`: the best of boxes that cover much of each other."""

from __future__ import annotations

import math
from typing import Any

from timberframe.api.framework import name_scope
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

NAMESPACES = {
    "image": ("non_max_suppression", "non_max_suppression_padded", "non_max_suppression_with_scores"),
}


def _inputs(boxes: Any, scores: Any, size: Any, *limits: Any) -> list[Tensor]:
    given = convert_to_tensor(boxes, name="boxes")
    ranks = convert_to_tensor(scores, given.dtype, "scores")
    return [given, ranks, convert_to_tensor(size, "int32"), *(convert_to_tensor(x, given.dtype) for x in limits)]


def non_max_suppression(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = -math.inf,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Returns the indices of at most max_output_size boxes, the best first, int32.

    boxes: float32 or float16 [boxes, 4], two corners: y, x, y, x. scores: [boxes]; those up to score_threshold are left
    out. iou_threshold: the part, in [0, 1], of what two boxes cover together above which the worse one is left out.
    """
    with name_scope(name, "non_max_suppression") as scope:
        inputs = _inputs(boxes, scores, max_output_size, iou_threshold, score_threshold)
        made: Tensor = apply_op("NonMaxSuppressionV3", inputs, None, scope)
        return made


def non_max_suppression_padded(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = -math.inf,
    pad_to_max_output_size: bool = False, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`non_max_suppression`, perhaps with zeros up to max_output_size, and how many boxes there are."""
    with name_scope(name, "non_max_suppression_padded") as scope:
        inputs = _inputs(boxes, scores, max_output_size, iou_threshold, score_threshold)
        attrs = {"pad_to_max_output_size": pad_to_max_output_size}
        indices, count = apply_op("NonMaxSuppressionV4", inputs, attrs, scope)
        return indices, count


def non_max_suppression_with_scores(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = -math.inf,
    soft_nms_sigma: Any = 0.0, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`non_max_suppression` and the scores of the boxes.

    soft_nms_sigma: above 0, scores of boxes that a better one covers become smaller, by exp(-part^2 / (2 sigma)), and
    boxes are left out by their scores (Bodla et al. 2017).
    """
    with name_scope(name, "non_max_suppression_with_scores") as scope:
        inputs = _inputs(boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
        indices, kept, _ = apply_op("NonMaxSuppressionV5", inputs, {"pad_to_max_output_size": False}, scope)
        return indices, kept
