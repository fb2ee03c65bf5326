"""`tf.image.*`: pictures as files hold them; and whole files."""

from __future__ import annotations

from typing import Any

from timberframe_core.dtypes import as_dtype, int32, uint8
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.operation import Operation, Tensor

__all__ = ["matching_files", "read_file", "write_file"]

NAMESPACES = {
    "image": (
        "decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_image", "decode_jpeg", "decode_png", "encode_jpeg",
        "encode_png", "extract_jpeg_shape",
    ),
}  # fmt: skip


def _jpeg_attrs(
    channels: int | None, ratio: int | None, fancy_upscaling: bool | None, try_recover_truncated: bool | None,
    acceptable_fraction: float | None, dct_method: str | None,
) -> dict[str, Any]:  # fmt: skip
    given = {
        "channels": channels, "ratio": ratio, "fancy_upscaling": fancy_upscaling,
        "try_recover_truncated": try_recover_truncated, "acceptable_fraction": acceptable_fraction,
        "dct_method": dct_method,
    }  # fmt: skip
    return {key: value for key, value in given.items() if value is not None}


def decode_jpeg(
    contents: Any, channels: int | None = 0, ratio: int | None = 1, fancy_upscaling: bool | None = True,
    try_recover_truncated: bool | None = False, acceptable_fraction: float | None = 1, dct_method: str | None = "",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Returns the pixels of a JPEG picture, uint8 [height, width, channels].

    contents: the bytes of a file, a scalar. channels: 1, 3 or 4, or 0 for those of the file. ratio: 1, 2, 4 or 8, by
    which the picture becomes smaller. The others are TensorFlow's and change nothing. PNG, GIF and BMP pictures are
    read, too. Raises InvalidArgumentError for anything else.
    """
    attrs = _jpeg_attrs(
        channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method
    )  # fmt: skip
    result: Tensor = apply_op("DecodeJpeg", [contents], attrs, name)
    return result


def decode_and_crop_jpeg(
    contents: Any, crop_window: Any, channels: int | None = 0, ratio: int | None = 1,
    fancy_upscaling: bool | None = True, try_recover_truncated: bool | None = False,
    acceptable_fraction: float | None = 1, dct_method: str | None = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Returns the part [y, x, height, width] of a JPEG picture; the other arguments are those of `decode_jpeg`."""
    attrs = _jpeg_attrs(
        channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method
    )  # fmt: skip
    result: Tensor = apply_op("DecodeAndCropJpeg", [contents, crop_window], attrs, name)
    return result


def decode_png(contents: Any, channels: int | None = 0, dtype: Any = uint8, name: str | None = None) -> Tensor:
    """Returns the pixels of a PNG picture, uint8 or uint16 [height, width, channels]; otherwise as `decode_jpeg`."""
    result: Tensor = apply_op("DecodePng", [contents], {"channels": channels or 0, "dtype": as_dtype(dtype)}, name)
    return result


def decode_bmp(contents: Any, channels: int | None = 0, name: str | None = None) -> Tensor:
    """Returns the pixels of a BMP picture, uint8 [height, width, channels]."""
    result: Tensor = apply_op("DecodeBmp", [contents], {"channels": channels or 0}, name)
    return result


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """Returns the pixels of a GIF picture, uint8 [frames, height, width, 3]."""
    result: Tensor = apply_op("DecodeGif", [contents], None, name)
    return result


def decode_image(
    contents: Any, channels: int | None = None, dtype: Any = uint8, name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:  # fmt: skip
    """Returns the pixels of a JPEG, PNG, BMP or GIF picture; float32 pixels are in [0, 1].

    A GIF has its frames as a first axis, or with expand_animations=False only the first one, so that the rank is known.
    """
    attrs = {"channels": channels or 0, "dtype": as_dtype(dtype), "expand_animations": expand_animations}
    result: Tensor = apply_op("DecodeImage", [contents], attrs, name)
    return result


def extract_jpeg_shape(contents: Any, output_type: Any = int32, name: str | None = None) -> Tensor:
    """Height, width and channels of a JPEG picture."""
    result: Tensor = apply_op("ExtractJpegShape", [contents], {"output_type": as_dtype(output_type)}, name)
    return result


def encode_jpeg(
    image: Any, format: str | None = "", quality: int | None = 95, progressive: bool | None = False,
    optimize_size: bool | None = False, chroma_downsampling: bool | None = True, density_unit: str | None = "in",
    x_density: int | None = 300, y_density: int | None = 300, xmp_metadata: str | None = "",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Returns a JPEG picture, a scalar string, of uint8 pixels [height, width, 1 or 3].

    format: "grayscale", "rgb", or "" for what the channels say. quality: 0 to 100. chroma_downsampling: whether colors
    have half the resolution. xmp_metadata is not written.
    """
    given = {
        "format": format, "quality": quality, "progressive": progressive, "optimize_size": optimize_size,
        "chroma_downsampling": chroma_downsampling, "density_unit": density_unit, "x_density": x_density,
        "y_density": y_density, "xmp_metadata": xmp_metadata,
    }  # fmt: skip
    attrs = {key: value for key, value in given.items() if value is not None}
    result: Tensor = apply_op("EncodeJpeg", [image], attrs, name)
    return result


def encode_png(image: Any, compression: int | None = -1, name: str | None = None) -> Tensor:
    """Returns a PNG picture, a scalar string, of uint8 or uint16 pixels [height, width, 1 to 4];
    compression: 0 to 9, or -1.
    """
    result: Tensor = apply_op("EncodePng", [image], {"compression": -1 if compression is None else compression}, name)
    return result


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """Returns the bytes of a file, a scalar string. Running it raises NotFoundError where there is none."""
    result: Tensor = apply_op("ReadFile", [filename], None, name)
    return result


def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """Writes a string to a file; folders are made as needed."""
    made: Operation = apply_op("WriteFile", [filename, contents], None, name)
    return made


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """Returns the files that a pattern, or any of several, matches, in order."""
    result: Tensor = apply_op("MatchingFiles", [pattern], None, name)
    return result
