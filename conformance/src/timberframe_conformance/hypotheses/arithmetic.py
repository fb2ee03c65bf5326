"""Hypotheses on arithmetic: narrower numbers, other rounding, signs and factors."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from timberframe_conformance.hypotheses.wrong import Hypothesis, Wrong
from timberframe_core.ops.definition.accuracy import Accumulation
from timberframe_core.ops.definition.formats import FORMATS, ulp

TF32_BITS = 13
"""Bits of a float32 that TensorFloat-32 leaves out."""
FEWEST_NARROW = 4
"""Wrong elements that must all be numbers of a narrower format for that to tell something."""
FEW_ULP = 8
"""Units in the last place of that format by which such numbers may be off."""
MOST_LOST = 0.25
"""The share of a sum that its roundings may lose and still tell something."""


def flushed(wrong: Wrong) -> Iterator[str]:
    """Recognizes subnormal results that became 0."""
    if wrong.dtype.name in FORMATS and np.all(wrong.got[wrong.wrong] == 0):
        tiny = FORMATS[wrong.dtype.name].smallest_normal
        if np.all(np.abs(wrong.expected[wrong.wrong]) < tiny):
            yield "subnormal results are 0; a profile with flushes_subnormals says that this is so"


def narrow_sums(wrong: Wrong) -> Iterator[str]:
    """Recognizes products of 16-bit numbers that were added up in 16 bits."""
    if not isinstance(wrong.op.accuracy, Accumulation) or wrong.dtype.itemsize != 2 or not wrong.is_small:
        return
    form = FORMATS[wrong.dtype.name]
    magnitude = wrong.result_of(inputs=[np.abs(x) if x.dtype.name in FORMATS else x for x in wrong.inputs])
    if magnitude is None:
        return
    terms = wrong.op.accuracy.terms(wrong.attrs, *wrong.inputs)
    share = 4 * terms**0.5 * form.unit_roundoff  # roundings add up at random
    allowed = share * magnitude
    error = np.abs(wrong.got.astype(np.float64) - wrong.expected)
    if share < MOST_LOST and np.all((error <= allowed)[wrong.wrong]):
        yield f"off by no more than a sum of {terms} terms in {wrong.dtype.name} may be; sums need float32"


def narrow_inputs(wrong: Wrong) -> Iterator[str]:
    """Recognizes inputs that were rounded to a narrower format before."""
    if wrong.dtype not in (np.float32, np.float64):
        return
    for name in ("TensorFloat-32", "bfloat16", "float16", "float32"):
        narrowed = [_narrowed(x, name) for x in wrong.inputs]
        if name != wrong.dtype.name and wrong.equals(wrong.result_of(inputs=narrowed)):
            yield f"equals the result of inputs in {name}"


def narrow_results(wrong: Wrong) -> Iterator[str]:
    """Recognizes results that are numbers of a narrower format, near the right ones."""
    got, right = wrong.got[wrong.wrong], wrong.expected[wrong.wrong]
    if wrong.dtype not in (np.float32, np.float64) or got.size < FEWEST_NARROW or not np.all(np.isfinite(got)):
        return
    for name in ("bfloat16", "float16", "float32"):
        if name != wrong.dtype.name and np.array_equal(_narrowed(got, name), got):
            off = np.abs(got.astype(np.float64) - right)
            if np.all(off <= FEW_ULP * ulp(np.abs(right), FORMATS[name])):
                yield f"every one is a number of {name}, near the right one: they were computed or stored in {name}"
                return


def _narrowed(x: np.ndarray, name: str) -> np.ndarray:
    if x.dtype not in (np.float32, np.float64):
        return x
    if name == "TensorFloat-32":
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        kept = (bits + np.uint32(1 << (TF32_BITS - 1))) >> np.uint32(TF32_BITS) << np.uint32(TF32_BITS)
        return np.asarray(kept.view(np.float32).reshape(x.shape), x.dtype)
    return x.astype(ml_dtypes.bfloat16 if name == "bfloat16" else name).astype(x.dtype)


def toward_zero(wrong: Wrong) -> Iterator[str]:
    """Recognizes results that were cut off in place of rounded."""
    if wrong.dtype.name not in FORMATS or wrong.dtype.kind == "c":
        return
    got, right = wrong.got.astype(np.float64)[wrong.wrong], wrong.expected[wrong.wrong]
    with np.errstate(all="ignore"):
        unit = ulp(np.abs(right), FORMATS[wrong.dtype.name])
        if np.all((np.abs(got) < np.abs(right)) & (np.abs(got - right) < unit)):
            yield "every one is the right number rounded toward zero"


def a_multiple(wrong: Wrong) -> Iterator[str]:
    """Recognizes results that are the right ones times a number."""
    if wrong.dtype.name not in FORMATS or wrong.dtype.kind == "c":
        return
    with np.errstate(all="ignore"):
        ratio = wrong.got.astype(np.float64)[wrong.wrong] / wrong.expected[wrong.wrong]
    if ratio.size < 2 or not np.all(np.isfinite(ratio)):
        return
    factor = float(np.median(ratio))
    if factor != 0 and np.all(np.abs(ratio - factor) <= 1e-3 * abs(factor)) and abs(factor - 1) > 1e-2:
        yield "has the other sign" if abs(factor + 1) < 1e-3 else f"is {factor:.4g} times the right result"


HYPOTHESES: tuple[Hypothesis, ...] = (narrow_sums, narrow_inputs, narrow_results, toward_zero, a_multiple)
