"""Pictures and whole files, read and written in graphs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import timberframe as tf

pytestmark = pytest.mark.usefixtures("session")

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 5, 3)).astype(np.uint8)
SMOOTH = np.stack([np.add.outer(np.arange(32), np.arange(24)) * 4] * 3, -1).astype(np.uint8)


def encoded(pixels: np.ndarray, kind: str, **settings: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **settings)
    return out.getvalue()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_png_is_read_as_written(session: tf.Session, channels: int) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (6, 5, channels)).astype(np.uint8)
    assert session.run(tf.image.decode_png(tf.image.encode_png(pixels))).tolist() == pixels.tolist()


def test_png_of_16_bits(session: tf.Session) -> None:
    pixels = np.arange(0, 60_000, 3_000).astype(np.uint16).reshape(4, 5, 1)
    decoded = tf.image.decode_png(tf.image.encode_png(pixels), dtype=tf.uint16)
    assert session.run(decoded).tolist() == pixels.tolist()


def test_channels_are_converted(session: tf.Session) -> None:
    contents = encoded(PIXELS, "PNG")
    gray, wide = tf.image.decode_png(contents, 1), tf.image.decode_png(contents, 4)
    assert (gray.shape.as_list(), wide.shape.as_list()) == ([None, None, 1], [None, None, 4])
    a, b = session.run([gray, wide])
    assert np.abs(a[..., 0] - PIXELS @ [0.299, 0.587, 0.114]).max() <= 1
    assert b[..., :3].tolist() == PIXELS.tolist()
    assert (b[..., 3] == 255).all()


def test_jpeg_is_nearly_as_written(session: tf.Session) -> None:
    contents = tf.image.encode_jpeg(SMOOTH, quality=95)
    decoded, shape = session.run([tf.image.decode_jpeg(contents), tf.image.extract_jpeg_shape(contents)])
    assert shape.tolist() == [32, 24, 3]
    assert np.abs(decoded.astype(int) - SMOOTH).max() <= 4


def test_part_of_a_jpeg(session: tf.Session) -> None:
    contents = encoded(SMOOTH, "JPEG")
    whole, part = session.run([tf.image.decode_jpeg(contents), tf.image.decode_and_crop_jpeg(contents, [3, 4, 10, 8])])
    assert part.tolist() == whole[3:13, 4:12].tolist()
    assert session.run(tf.image.decode_jpeg(contents, ratio=2)).shape == (16, 12, 3)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "JPEG"])
def test_any_picture(session: tf.Session, kind: str) -> None:
    contents = encoded(SMOOTH, kind)
    bytes_, floats = session.run([tf.image.decode_image(contents), tf.image.decode_image(contents, dtype=tf.float32)])
    assert np.abs(bytes_.astype(int) - SMOOTH).max() <= 4
    np.testing.assert_allclose(floats, bytes_ / 255, rtol=1e-6)


def test_frames_of_a_gif(session: tf.Session) -> None:
    frames = [Image.fromarray(np.full((4, 5), v, np.uint8)) for v in (10, 200)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    all_frames = session.run(tf.image.decode_gif(out.getvalue()))
    assert all_frames[:, 0, 0, 0].tolist() == [10, 200]
    first = tf.image.decode_image(out.getvalue(), expand_animations=False)
    assert first.shape.ndims == 3
    assert session.run(first).tolist() == all_frames[0].tolist()


def test_files_are_written_and_read(session: tf.Session, tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b.png")
    session.run(tf.write_file(path, tf.image.encode_png(PIXELS)))
    assert session.run(tf.image.decode_png(tf.read_file(path))).tolist() == PIXELS.tolist()
    assert session.run(tf.matching_files([str(tmp_path / "a" / "*")])).tolist() == [path.encode()]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tf.image.decode_png(b"no picture"), r"DecodePng '.*': contents of 10 bytes are no picture; PNG or"),
        (lambda: tf.image.decode_png(encoded(PIXELS, "PNG")[:60]), "are damaged"),
        (lambda: tf.image.decode_gif(encoded(PIXELS, "PNG")), "contents are a PNG picture; GIF is required"),
        (lambda: tf.image.decode_png(["a", "b"]), r"contents have shape \(2,\); a scalar is required"),
        (lambda: tf.image.decode_and_crop_jpeg(encoded(SMOOTH, "JPEG"), [30, 0, 10, 8]), "must lie inside"),
        (lambda: tf.image.encode_jpeg(np.zeros((2, 2, 4), np.uint8)), r"shape \(2, 2, 4\).* 1 or 3 channels"),
        (lambda: tf.image.decode_png(b"", channels=2), "channels is 2; it must be 0"),
    ],
)
def test_wrong_pictures(session: tf.Session, build: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(build())


def test_missing_files_are_named(session: tf.Session, tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"ReadFile 'ReadFile': '.*no': No such file"):
        session.run(tf.read_file(str(tmp_path / "no")))


def test_a_jpeg_of_low_quality_loses_detail(session: tf.Session) -> None:
    for image in (SMOOTH, SMOOTH.astype(np.float32) / 255):
        best, worst = (session.run(tf.image.adjust_jpeg_quality(image, quality)) for quality in (100, 5))
        assert worst.dtype == image.dtype
        assert np.abs(worst - image.astype(np.float64)).mean() > 2 * np.abs(best - image.astype(np.float64)).mean()
