"""Pictures as files hold them, read and written by Pillow."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from timberframe_core.extras import extra
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import format_shape

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_CHROMA = {True: 2, False: 0}  # Pillow's numbers of 4:2:0 and 4:4:4


def _pillow(call: HostCall) -> AbstractContextManager[None]:
    """Returns a block that imports Pillow; see `extra`."""
    return extra("images", f"{call.op} '{call.name}'")


def _contents(call: HostCall) -> bytes:
    given = call.inputs[0]
    if given.ndim:
        raise call.error(f"contents have shape {format_shape(given.shape)}; a scalar is required")
    return bytes(given.item())


def _opened(call: HostCall, kinds: tuple[str, ...]) -> Any:
    """Returns the picture, of one of these kinds; InvalidArgumentError for anything else."""
    with _pillow(call):
        from PIL import Image, UnidentifiedImageError  # takes long to import

    data = _contents(call)
    try:
        picture = Image.open(io.BytesIO(data))
        picture.load()
    except UnidentifiedImageError:
        raise call.error(f"contents of {len(data)} bytes are no picture; {' or '.join(kinds)} is required") from None
    except (OSError, SyntaxError, ValueError) as e:
        raise call.error(f"contents of {len(data)} bytes are damaged ({e}); a whole picture is required") from None
    if picture.format not in kinds:
        raise call.error(f"contents are a {picture.format} picture; {' or '.join(kinds)} is required")
    return picture


def _pixels(picture: Any, channels: int) -> np.ndarray:
    """[height, width, channels] as bytes; channels 0 is as in the file."""
    if not channels:
        own = {"1": 1, "L": 1, "LA": 4, "I": 1, "I;16": 1, "RGBA": 4, "PA": 4}.get(picture.mode, 3)
        channels = 4 if "transparency" in picture.info else own
    array = np.asarray(picture.convert(_MODES[channels]))
    return array.reshape((*array.shape[:2], channels))


def _deep(picture: Any, channels: int) -> np.ndarray:
    """Returns the same as uint16: 16 bits of a channel where the picture has them, else 8 bits as the upper ones."""
    if picture.mode.startswith("I;16") and channels in (0, 1):
        return np.asarray(picture, np.uint16)[..., None]
    return _pixels(picture, channels).astype(np.uint16) * 257


@host_op("DecodeJpeg")
def _decode_jpeg(call: HostCall) -> list[np.ndarray]:
    picture = _opened(call, ("JPEG", "PNG", "GIF", "BMP"))
    ratio = call.attrs["ratio"]
    if ratio not in (1, 2, 4, 8):
        raise call.error(f"ratio is {ratio}; 1, 2, 4 or 8 is required")
    pixels = _pixels(picture if ratio == 1 else picture.reduce(ratio), call.attrs["channels"])
    return [pixels]


@host_op("DecodeAndCropJpeg")
def _decode_part(call: HostCall) -> list[np.ndarray]:
    pixels, window = _pixels(_opened(call, ("JPEG",)), call.attrs["channels"]), call.inputs[1]
    if window.shape != (4,):
        raise call.error(f"crop_window has shape {format_shape(window.shape)}; [y, x, height, width] is required")
    y, x, height, width = (int(v) for v in window)
    if min(y, x) < 0 or min(height, width) < 1 or y + height > pixels.shape[0] or x + width > pixels.shape[1]:
        raise call.error(
            f"crop_window is {window.tolist()} for a picture of {pixels.shape[0]} x {pixels.shape[1]} pixels; "
            "it must lie inside"
        )
    return [np.ascontiguousarray(pixels[y : y + height, x : x + width])]


@host_op("DecodePng")
def _decode_png(call: HostCall) -> list[np.ndarray]:
    picture = _opened(call, ("PNG", "JPEG", "GIF", "BMP"))
    made = _deep if call.attrs["dtype"].name == "uint16" else _pixels
    return [made(picture, call.attrs["channels"])]


@host_op("DecodeBmp")
def _decode_bmp(call: HostCall) -> list[np.ndarray]:
    return [_pixels(_opened(call, ("BMP",)), call.attrs["channels"])]


@host_op("DecodeGif")
def _decode_gif(call: HostCall) -> list[np.ndarray]:
    return [_frames(_opened(call, ("GIF",)))]


def _frames(picture: Any) -> np.ndarray:
    found = []
    for i in range(picture.n_frames):
        picture.seek(i)
        found.append(_pixels(picture, 3))
    return np.stack(found)


@host_op("DecodeImage")
def _decode_image(call: HostCall) -> list[np.ndarray]:
    picture = _opened(call, ("JPEG", "PNG", "GIF", "BMP"))
    channels, dtype = call.attrs["channels"], call.attrs["dtype"].name
    if picture.format == "GIF":
        pixels = _frames(picture) if call.attrs["expand_animations"] else _pixels(picture, 3)
    elif dtype == "uint16":
        return [_deep(picture, channels)]
    else:
        pixels = _pixels(picture, channels)
    if dtype == "uint16":
        return [pixels.astype(np.uint16) * 257]
    return [pixels.astype(np.float32) / np.float32(255) if dtype == "float32" else pixels]


@host_op("ExtractJpegShape")
def _shape(call: HostCall) -> list[np.ndarray]:
    picture = _opened(call, ("JPEG",))
    return [np.array([picture.height, picture.width, len(picture.getbands())], call.attrs["output_type"].numpy)]


def _image(call: HostCall, channels: tuple[int, ...]) -> np.ndarray:
    pixels: np.ndarray = call.inputs[0]
    if pixels.ndim != 3 or pixels.shape[2] not in channels or not pixels.size:
        raise call.error(
            f"image has shape {format_shape(pixels.shape)}; [height, width, channels] with "
            f"{' or '.join(map(str, channels))} channels is required"
        )
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels


@host_op("EncodeJpeg")
def _encode_jpeg(call: HostCall) -> list[np.ndarray]:
    with _pillow(call):
        from PIL import Image

    attrs = call.attrs
    wanted = {"grayscale": (1,), "rgb": (3,)}.get(attrs["format"], (1, 3))
    scale = 1.0 if attrs["density_unit"] == "in" else 2.54
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(_image(call, wanted))).save(
        out, "JPEG", quality=attrs["quality"], progressive=attrs["progressive"], optimize=attrs["optimize_size"],
        subsampling=_CHROMA[attrs["chroma_downsampling"]], dpi=(attrs["x_density"] * scale, attrs["y_density"] * scale),
    )  # fmt: skip
    return [np.array(out.getvalue(), object)]


@host_op("EncodePng")
def _encode_png(call: HostCall) -> list[np.ndarray]:
    with _pillow(call):
        from PIL import Image

    pixels = np.ascontiguousarray(_image(call, (1, 2, 3, 4)))
    if pixels.dtype == np.uint16 and pixels.ndim == 3:
        raise call.error("image is uint16 with several channels; such a picture must have one channel")
    level = call.attrs["compression"]
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=6 if level < 0 else min(level, 9))
    return [np.array(out.getvalue(), object)]
