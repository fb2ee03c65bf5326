"""Ops that read and write pictures as files hold them: TensorFlow's image_ops."""

from __future__ import annotations

from timberframe_core.ops.definition.opdef import InferenceContext, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_FILES = NotDifferentiable("a file is no function of numbers")


def _check_contents(c: InferenceContext) -> None:
    if c.shapes[0] not in (None, ()):
        raise c.late_error(f"contents have shape {format_shape(c.shapes[0])}; a scalar is required")


def _picture(c: InferenceContext) -> list[Shape]:
    _check_contents(c)
    channels = c.attrs["channels"]
    if channels not in (0, 1, 3, 4):
        raise c.error(f"channels is {channels}; it must be 0 (as in the file), 1, 3 or 4")
    return [(None, None, channels or None)]


def _any_picture(c: InferenceContext) -> list[Shape]:
    picture = _picture(c)
    return [None] if c.attrs["expand_animations"] else picture


def _encoded(c: InferenceContext) -> list[Shape]:
    c.require_rank(0, 3)
    return [()]


_JPEG = (
    "channels: int = 0",
    "ratio: int = 1",
    "fancy_upscaling: bool = true",
    "try_recover_truncated: bool = false",
    "acceptable_fraction: float = 1.0",
    "dct_method: string = ''",
)

for _name, _inputs, _attrs, _doc in (
    ("DecodeJpeg", ("contents: string",), _JPEG, "The pixels [height, width, channels] of a JPEG picture."),
    (
        "DecodeAndCropJpeg",
        ("contents: string", "crop_window: int32"),
        _JPEG,
        "The pixels of the part [y, x, height, width] of a JPEG picture.",
    ),
    (
        "DecodePng",
        ("contents: string",),
        ("channels: int = 0", "dtype: {uint8, uint16} = DT_UINT8"),
        "The pixels [height, width, channels] of a PNG picture.",
    ),
    ("DecodeBmp", ("contents: string",), ("channels: int = 0",), "The pixels of a BMP picture."),
):
    define_op(
        _name,
        inputs=_inputs,
        outputs=("image: dtype" if _name == "DecodePng" else "image: uint8",),
        attrs=_attrs,
        doc=f"{_doc} channels: 0 is as in the file.",
        shape=_picture,
        gradient=_FILES,
        on_host=True,
    )

define_op(
    "DecodeGif",
    inputs=("contents: string",),
    outputs=("image: uint8",),
    doc="The pixels [frames, height, width, 3] of a GIF picture.",
    shape=lambda c: [(None, None, None, 3)],
    gradient=_FILES,
    on_host=True,
)

define_op(
    "DecodeImage",
    inputs=("contents: string",),
    outputs=("image: dtype",),
    attrs=("channels: int = 0", "dtype: {uint8, uint16, float} = DT_UINT8", "expand_animations: bool = true"),
    doc="The pixels of a JPEG, PNG, BMP or GIF picture, as floats in [0, 1]; a GIF has frames first if "
    "expand_animations, else the first frame is taken.",
    shape=_any_picture,
    gradient=_FILES,
    on_host=True,
)

define_op(
    "ExtractJpegShape",
    inputs=("contents: string",),
    outputs=("image_shape: output_type",),
    attrs=("output_type: {int32, int64} = DT_INT32",),
    doc="Height, width and channels of a JPEG picture, from its header alone.",
    shape=lambda c: [(3,)],
    gradient=_FILES,
    on_host=True,
)

define_op(
    "EncodeJpeg",
    inputs=("image: uint8",),
    outputs=("contents: string",),
    attrs=(
        "format: {'', 'grayscale', 'rgb'} = ''",
        "quality: int = 95",
        "progressive: bool = false",
        "optimize_size: bool = false",
        "chroma_downsampling: bool = true",
        "density_unit: {'in', 'cm'} = 'in'",
        "x_density: int = 300",
        "y_density: int = 300",
        "xmp_metadata: string = ''",
    ),
    doc="A JPEG picture of pixels [height, width, channels] with 1 or 3 channels.",
    shape=_encoded,
    gradient=_FILES,
    on_host=True,
)

define_op(
    "EncodePng",
    inputs=("image: T",),
    outputs=("contents: string",),
    attrs=("compression: int = -1", "T: {uint8, uint16} = DT_UINT8"),
    doc="A PNG picture of pixels [height, width, channels] with 1 to 4 channels.",
    shape=_encoded,
    gradient=_FILES,
    on_host=True,
)
