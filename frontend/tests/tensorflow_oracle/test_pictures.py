"""Pictures are decoded to TensorFlow's pixels, but for rounding in JPEG."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe

PIXELS = np.stack([np.add.outer(np.arange(32), np.arange(24)) * 4] * 3, -1).astype(np.uint8)


@pytest.mark.parametrize("channels", [0, 1, 3])
@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_pixels(kind: str, channels: int) -> None:
    tensorflow = pytest.importorskip("tensorflow").compat.v1
    pictures: list[Any] = []
    for tf in (tensorflow, timberframe):
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            pictures.append(session.run(getattr(tf.image, f"encode_{kind}")(PIXELS)))
    for picture in pictures:
        decoded = []
        for tf in (tensorflow, timberframe):
            with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
                more = {"dct_method": "INTEGER_ACCURATE"} if kind == "jpeg" else {}
                tensor = getattr(tf.image, f"decode_{kind}")(picture, channels=channels, **more)
                decoded.append(session.run(tensor).astype(int))
        assert decoded[1].shape == decoded[0].shape
        assert np.abs(decoded[1] - decoded[0]).max() <= (1 if kind == "jpeg" else channels == 1)
