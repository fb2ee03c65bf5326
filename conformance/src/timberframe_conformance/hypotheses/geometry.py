"""Hypotheses on where windows and operands lie, and along which dimension an op works."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from timberframe_conformance.hypotheses.wrong import Hypothesis, Wrong


def odd_padding(wrong: Wrong) -> Iterator[str]:
    """Recognizes SAME padding of an odd number of pixels whose larger half is at the start: operands are mirrored."""
    if wrong.attrs.get("padding") != "SAME" or wrong.got.ndim not in (4, 5):
        return
    first = 2 if str(wrong.attrs.get("data_format", "")).startswith("NC") else 1
    space = tuple(first + i for i in range(wrong.got.ndim - 2))
    mirrored = [
        np.flip(x, tuple(axis - first for axis in space)) if arg.name == "filter" else np.flip(x, space)
        for arg, x in zip(wrong.op.inputs, wrong.inputs, strict=False)
        if x.ndim == wrong.got.ndim
    ]
    if len(mirrored) == len(wrong.inputs):
        found = wrong.result_of(inputs=mirrored)
        if found is not None and wrong.equals(np.flip(found, space)):
            yield "equals SAME padding with the odd pixel on the other side"


def mirrored_filter(wrong: Wrong) -> Iterator[str]:
    """Recognizes a convolution of signal processing in place of a correlation."""
    for i, (arg, x) in enumerate(zip(wrong.op.inputs, wrong.inputs, strict=False)):
        if arg.name == "filter" and x.ndim > 2:
            flipped = np.flip(x, tuple(range(x.ndim - 2)))
            if wrong.equals(wrong.result_of(inputs=[flipped if k == i else y for k, y in enumerate(wrong.inputs)])):
                yield "equals the result with the taps of the filter in reverse order"


def counted_padding(wrong: Wrong) -> Iterator[str]:
    """Recognizes pooling that takes SAME padding for zeros, which lower a mean and may be the largest."""
    if wrong.attrs.get("padding") != "SAME" or "ksize" not in wrong.attrs or len(wrong.inputs) != 1:
        return
    (x,) = wrong.inputs
    pads = []
    for size, window, stride in zip(x.shape, wrong.attrs["ksize"], wrong.attrs["strides"], strict=True):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        pads.append((total // 2, total - total // 2))
    if wrong.equals(wrong.result_of({**wrong.attrs, "padding": "VALID"}, [np.pad(x, pads)])):
        yield "equals the result with padding that counts as zeros"


def other_dimension(wrong: Wrong) -> Iterator[str]:
    """Recognizes an op along the last dimension, as a softmax, that took another one."""
    if len(wrong.inputs) == 1 and wrong.inputs[0].shape == wrong.got.shape:
        for axis in range(wrong.got.ndim - 1):
            found = wrong.result_of(inputs=[wrong.inputs[0].swapaxes(axis, -1)])
            if found is not None and wrong.equals(found.swapaxes(axis, -1)):
                yield f"equals the result along dimension {axis} in place of {wrong.got.ndim - 1}"


HYPOTHESES: tuple[Hypothesis, ...] = (odd_padding, mirrored_filter, counted_padding, other_dimension)
