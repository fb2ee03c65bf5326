"""Ops that make summaries, protobufs as strings, which TensorBoard shows: TensorFlow's logging_ops."""

from __future__ import annotations

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
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


define_op(
    "ScalarSummary",
    inputs=["tags: string", "values: T"],
    outputs=["summary: string"],
    attrs=[f"T: {_NUMBERS}"],
    doc="A summary with one number for each tag.",
    shape=_scalars,
    gradient=_TEXT,
    on_host=True,
)

define_op(
    "HistogramSummary",
    inputs=["tag: string", "values: T"],
    outputs=["summary: string"],
    attrs=[f"T: {_NUMBERS} = DT_FLOAT"],
    doc="A summary with the histogram of all values, which must be finite.",
    shape=_scalar,
    gradient=_TEXT,
    on_host=True,
)

define_op(
    "ImageSummary",
    inputs=["tag: string", "tensor: T"],
    outputs=["summary: string"],
    attrs=[
        "max_images: int >= 1 = 3",
        "T: {uint8, float, half, double} = DT_FLOAT",
        "bad_color: tensor = None",
    ],
    doc="A summary with up to max_images PNG images of a batch. Floats are scaled so that the largest is 255, or where "
    "there are negative ones, so that 0 is 128; pixels that are not finite become bad_color, red by default.",
    shape=_images,
    gradient=_TEXT,
    on_host=True,
)

define_op(
    "AudioSummaryV2",
    inputs=["tag: string", "tensor: float", "sample_rate: float"],
    outputs=["summary: string"],
    attrs=["max_outputs: int >= 1 = 3"],
    doc="A summary with up to max_outputs sounds [frames, channels] of a batch, with values in [-1, 1], as WAV files.",
    shape=_scalar,
    gradient=_TEXT,
    on_host=True,
)

define_op(
    "TensorSummaryV2",
    inputs=["tag: string", "tensor: T", "serialized_summary_metadata: string"],
    outputs=["summary: string"],
    attrs=["T: type"],
    doc="A summary with a tensor, and what a plugin of TensorBoard needs to show it.",
    shape=_scalar,
    gradient=_TEXT,
    on_host=True,
)

define_op(
    "MergeSummary",
    inputs=["inputs: N * string"],
    outputs=["summary: string"],
    attrs=["N: int >= 1"],
    doc="One summary with the values of all; no two may have the same tag.",
    shape=_scalar,
    gradient=_TEXT,
    on_host=True,
)
