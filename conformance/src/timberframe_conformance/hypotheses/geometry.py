"""Hypotheses on where windows and operands lie."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from timberframe_conformance.hypotheses.wrong import Hypothesis, Wrong


def odd_padding(wrong: Wrong) -> Iterator[str]:
    """SAME padding of an odd number of pixels has the larger half at the end: it is mirrored, with all operands."""
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
    """A convolution of signal processing in place of a correlation."""
    for i, (arg, x) in enumerate(zip(wrong.op.inputs, wrong.inputs, strict=False)):
        if arg.name == "filter" and x.ndim > 2:
            flipped = np.flip(x, tuple(range(x.ndim - 2)))
            if wrong.equals(wrong.result_of(inputs=[flipped if k == i else y for k, y in enumerate(wrong.inputs)])):
                yield "equals the result with the taps of the filter in reverse order"


HYPOTHESES: tuple[Hypothesis, ...] = (odd_padding, mirrored_filter)
