"""The ops of summaries: numbers, histograms, images, sounds and tensors as protobufs for TensorBoard."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np

from timberframe.host_ops.histograms import histogram_of
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.extras import extra
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import encode_array
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import format_shape

_RED = np.array([255, 0, 0, 255], np.uint8)


def _text(call: HostCall, value: np.ndarray) -> str:
    if value.ndim:
        raise call.error(f"tag has shape {format_shape(value.shape)}; a scalar is required")
    return bytes(value.item()).decode(errors="backslashreplace")


def _serialized(summary: Any) -> list[np.ndarray]:
    return [np.array(summary.SerializeToString(deterministic=True), object)]


@host_op("ScalarSummary")
def _scalars(call: HostCall) -> list[np.ndarray]:
    tags, values = call.inputs
    if tags.shape != values.shape:
        raise call.error(
            f"tags have shape {format_shape(tags.shape)} and values {format_shape(values.shape)}; "
            "both must have one shape"
        )
    summary = messages.Summary()
    for tag, value in zip(tags.ravel(), values.ravel(), strict=True):
        summary.value.add(tag=tag.decode(errors="backslashreplace"), simple_value=float(value))
    return _serialized(summary)


@host_op("HistogramSummary")
def _histogram(call: HostCall) -> list[np.ndarray]:
    tag, values = _text(call, call.inputs[0]), call.inputs[1].astype(np.float64).ravel()
    if not np.isfinite(values).all():
        kind = "NaN" if np.isnan(values).any() else "infinity"
        raise call.error(f"values for tag '{tag}' have {kind}; they must be finite")
    summary = messages.Summary()
    summary.value.add(tag=tag).histo.CopyFrom(histogram_of(values))
    return _serialized(summary)


@host_op("ImageSummary")
def _images(call: HostCall) -> list[np.ndarray]:
    tag, batch, most = _text(call, call.inputs[0]), call.inputs[1], call.attrs["max_images"]
    if batch.ndim != 4 or batch.shape[3] not in (1, 3, 4):
        raise call.error(
            f"tensor has shape {format_shape(batch.shape)}; "
            "[batch, height, width, channels] with 1, 3 or 4 channels is required"
        )
    bad = call.attrs["bad_color"]
    color = _RED if bad is None else np.asarray(bad, np.uint8).ravel()
    if len(color) < batch.shape[3]:
        raise call.error(f"bad_color has {len(color)} values; {batch.shape[3]}, one for each channel, are required")
    summary = messages.Summary()
    for i, pixels in enumerate(batch[:most]):
        image = summary.value.add(tag=f"{tag}/image" if most == 1 else f"{tag}/image/{i}").image
        image.height, image.width, image.colorspace = pixels.shape
        image.encoded_image_string = _png(call, pixels if pixels.dtype == np.uint8 else _scaled(pixels, color))
    return _serialized(summary)


def _scaled(pixels: np.ndarray, bad_color: np.ndarray) -> np.ndarray:
    """Floats as bytes, as TensorFlow scales them."""
    values = pixels.astype(np.float32)
    finite = np.isfinite(values).all(axis=-1)
    good = values[finite]
    least, largest = (float(good.min()), float(good.max())) if good.size else (0.0, 0.0)
    most, offset, span = (max(-least, largest), 128.0, 127.0) if least < 0 else (largest, 0.0, 255.0)
    scale = np.float32(0.0 if most < 1e-6 else span / most)
    made = np.empty(values.shape, np.uint8)
    made[finite] = (good * scale + np.float32(offset)).astype(np.uint8)
    made[~finite] = bad_color[: values.shape[-1]]
    return made


def _png(call: HostCall, pixels: np.ndarray) -> bytes:
    with extra("images", f"{call.op} '{call.name}'"):
        from PIL import Image
    if not pixels.size:
        raise InvalidArgumentError(f"an image has shape {format_shape(pixels.shape)}; one pixel at least is required")
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)).save(out, "PNG")
    return out.getvalue()


@host_op("AudioSummaryV2")
def _sounds(call: HostCall) -> list[np.ndarray]:
    tag, batch, rate = _text(call, call.inputs[0]), call.inputs[1], float(call.inputs[2].item())
    if batch.ndim not in (2, 3):
        raise call.error(f"tensor has shape {format_shape(batch.shape)}; [batch, frames(, channels)] is required")
    if rate <= 0:
        raise call.error(f"sample_rate is {rate:g}; it must be positive")
    sounds, most = batch.reshape((*batch.shape[:2], -1)), call.attrs["max_outputs"]
    summary = messages.Summary()
    for i, sound in enumerate(sounds[:most]):
        audio = summary.value.add(tag=f"{tag}/audio" if most == 1 else f"{tag}/audio/{i}").audio
        audio.sample_rate, audio.content_type = rate, "audio/wav"
        audio.length_frames, audio.num_channels = sound.shape
        audio.encoded_audio_string = _wav(sound, round(rate))
    return _serialized(summary)


def _wav(sound: np.ndarray, rate: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(sound.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())
    return out.getvalue()


@host_op("TensorSummaryV2")
def _tensor(call: HostCall) -> list[np.ndarray]:
    tag, value, metadata = call.inputs
    summary = messages.Summary()
    made = summary.value.add(tag=_text(call, tag))
    made.tensor.CopyFrom(encode_array(value))
    made.metadata.ParseFromString(bytes(metadata.item()))
    return _serialized(summary)


@host_op("MergeSummary")
def _merge(call: HostCall) -> list[np.ndarray]:
    merged, tags = messages.Summary(), set()
    for given in call.inputs:
        for text in given.ravel():
            for value in messages.as_message(text, messages.Summary, f"MergeSummary '{call.name}'").value:
                if value.tag in tags:
                    raise call.error(f"tag '{value.tag}' comes twice; tags must differ")
                tags.add(value.tag)
                merged.value.add().CopyFrom(value)
    return _serialized(merged)
