"""Ops that make summaries, protobufs as strings, which TensorBoard shows: TensorFlow's logging_ops."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, ShapeFunction, define_op
from timberframe_core.shapes import Shape, format_shape

_TEXT = NotDifferentiable("a summary is a text")
_NUMBERS = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"


def _scalar(c: InferenceContext) -> list[Shape]:
    return [()]


def _scalars(c: InferenceContext) -> list[Shape]:
    tags, values = c.shapes
    if tags is not None and values is not None and tags != values and tags != ():
        raise c.late_error(
            f"tags have shape {format_shape(tags)} and values {format_shape(values)}; both must have one shape"
        )
    return [()]


def _images(c: InferenceContext) -> list[Shape]:
    shape = c.shapes[1]
    if shape is not None and (len(shape) != 4 or shape[3] not in (None, 1, 3, 4)):
        raise c.late_error(
            f"tensor has shape {format_shape(shape)}; "
            "[batch, height, width, channels] with 1, 3 or 4 channels is required"
        )
    return [()]


def _define(name: str, inputs: Sequence[str], attrs: Sequence[str], doc: str, shape: ShapeFunction = _scalar) -> None:
    define_op(
        name,
        inputs=inputs,
        outputs=["summary: string"],
        attrs=attrs,
        doc=doc,
        shape=shape,
        gradient=_TEXT,
        on_host=True,
    )


_define(
    "ScalarSummary",
    ["tags: string", "values: T"],
    [f"T: {_NUMBERS}"],
    "A summary with one number for each tag.",
    _scalars,
)
_define(
    "HistogramSummary",
    ["tag: string", "values: T"],
    [f"T: {_NUMBERS} = DT_FLOAT"],
    "A summary with the histogram of all values, which must be finite.",
)
_define(
    "ImageSummary",
    ["tag: string", "tensor: T"],
    ["max_images: int >= 1 = 3", "T: {uint8, float, half, double} = DT_FLOAT", "bad_color: tensor = None"],
    "A summary with up to max_images PNG images of a batch. Floats are scaled so that the largest is 255, or where "
    "there are negative ones, so that 0 is 128; pixels that are not finite become bad_color, red by default.",
    _images,
)
_define(
    "AudioSummaryV2",
    ["tag: string", "tensor: float", "sample_rate: float"],
    ["max_outputs: int >= 1 = 3"],
    "A summary with up to max_outputs sounds [frames, channels] of a batch, with values in [-1, 1], as WAV files.",
)
_define(
    "TensorSummaryV2",
    ["tag: string", "tensor: T", "serialized_summary_metadata: string"],
    ["T: type"],
    "A summary with a tensor, and what a plugin of TensorBoard needs to show it.",
)
_define(
    "MergeSummary",
    ["inputs: N * string"],
    ["N: int >= 1"],
    "One summary with the values of all; no two may have the same tag.",
)
