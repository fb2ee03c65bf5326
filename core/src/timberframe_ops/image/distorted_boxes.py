"""SampleDistortedBoundingBox: random parts of images that show enough of what is in them."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_ATTRS = (
    "T: {uint8, int8, int16, int32, int64}", "seed: int = 0", "seed2: int = 0",
    "aspect_ratio_range: list(float) = [0.75, 1.33]", "area_range: list(float) = [0.05, 1.0]",
    "max_attempts: int = 100", "use_image_if_no_bounding_boxes: bool = false",
)  # fmt: skip


def _shape(c: InferenceContext) -> Sequence[Shape]:
    if c.shapes[0] not in (None, (3,), (None,)):
        raise c.error(f"image_size has shape {format_shape(c.shapes[0])}; [3] is required: height, width, channels")
    boxes = c.require_rank(1, 3)
    if boxes[2] not in (None, 4):
        raise c.error(f"bounding_boxes has shape {format_shape(boxes)}; [batch, boxes, 4] is required")
    return [(3,), (3,), (1, 1, 4)]


for _name, _input, _attr in (
    ("SampleDistortedBoundingBoxV2", ("min_object_covered: float",), ()),
    ("SampleDistortedBoundingBox", (), ("min_object_covered: float = 0.1",)),
):
    define_op(
        _name,
        inputs=["image_size: T", "bounding_boxes: float", *_input],
        outputs=["begin: T", "size: T", "bboxes: float"],
        attrs=[*_ATTRS, *_attr],
        doc="A random box in an image of this size whose aspect ratio and share of the area lie in ranges, and which "
        "covers min_object_covered of one of bounding_boxes (y_min, x_min, y_max, x_max in [0, 1]): where tf.slice "
        "begins and how much it takes, and the box. The whole image where max_attempts find none.",
        shape=_shape,
        gradient=NotDifferentiable("a random box is no function of its inputs"),
        on_host=True,
        stateful=True,
    )
