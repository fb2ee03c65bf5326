"""Hypotheses on memory: what was never written, was written by somebody else, or is of another time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from timberframe_conformance.hypotheses.wrong import Hypothesis, Wrong, distinct

_SMALL = 1e-6
"""Zeros in place of smaller numbers are rather an underflow than memory that nobody has written to."""


def never_written(wrong: Wrong) -> Iterator[str]:
    """Recognizes memory that no kernel wrote to: often 0, as is what underflows, and one of few values by chance."""
    right = np.asarray(wrong.expected)[wrong.wrong]
    if wrong.dtype != bool and distinct(right) > 1 and np.all(wrong.got[wrong.wrong] == np.zeros((), wrong.dtype)):
        numbers = wrong.dtype.kind in "fc"
        if numbers and np.all(np.abs(right) < _SMALL):
            yield f"they are 0 where numbers below {_SMALL:g} are right"
        else:
            yield "they are 0, as memory is that nobody has written to"


def an_input(wrong: Wrong) -> Iterator[str]:
    """Recognizes an output that lies where an input does, or an input that was copied."""
    for i, x in enumerate(wrong.inputs):
        if x.dtype == wrong.dtype and x.shape == wrong.got.shape and wrong.equals(x):
            yield f"equals input {i}"


def an_earlier_result(wrong: Wrong) -> Iterator[str]:
    """Recognizes what was kept and belongs to other inputs: prepared weights, a result, memory."""
    for words, inputs in wrong.earlier.items():
        if wrong.equals(wrong.result_of(inputs=inputs)):
            yield f"equals the result of {words}"
            continue
        for i, x in enumerate(inputs):
            if wrong.equals(wrong.result_of(inputs=[x if k == i else y for k, y in enumerate(wrong.inputs)])):
                yield f"equals the result with input {i} of {words}"


def first_entry(wrong: Wrong) -> Iterator[str]:
    """Recognizes entries of a batch that all got what the first one has, which is more than a number."""
    if (
        wrong.got.shape[:1] > (1,)
        and distinct(wrong.expected[:1]) > 1
        and wrong.equals(np.broadcast_to(wrong.expected[:1], wrong.got.shape))
    ):
        yield "repeats the first entry of dimension 0"


def strides_ignored(wrong: Wrong) -> Iterator[str]:
    """Recognizes a view that was read as if its elements lay one after the other."""
    if any(not x.flags.c_contiguous for x in wrong.inputs):
        flat = [np.ravel(x, "K").reshape(x.shape) for x in wrong.inputs]
        if wrong.equals(wrong.result_of(inputs=flat)):
            yield "equals the result of inputs read without their strides"


HYPOTHESES: tuple[Hypothesis, ...] = (never_written, an_input, an_earlier_result, first_entry, strides_ignored)
