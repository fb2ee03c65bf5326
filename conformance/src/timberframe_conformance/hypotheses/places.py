"""Which elements of an output differ, where that is less than all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from timberframe_conformance.hypotheses.wrong import Wrong

STEPS = (2, 3, 4, 8, 16, 32, 64)
"""Distances at which elements may differ: lanes, vectors, parts of threads."""
LEAST = 2
"""Elements that must differ for a pattern to be one; those of one element are its position."""


def places(wrong: Wrong) -> str:
    """Returns the indices or the values for which elements differ, in words; empty where they follow neither."""
    if int(wrong.wrong.sum()) < LEAST:
        return ""
    layout = str(wrong.attrs.get("data_format", ""))
    found = [*_along_dimensions(wrong.wrong, layout), *_by_values(wrong)]
    return " and ".join(found[:2])


def places_in(mask: np.ndarray) -> str:
    """Returns the indices at which elements differ, in words; empty where they follow no pattern."""
    return " and ".join([*_along_dimensions(mask)][:2]) if int(mask.sum()) >= LEAST else ""


def _along_dimensions(mask: np.ndarray, layout: str = "") -> Iterator[str]:
    """Yields the indices of differing elements, in words, for each dimension in which not all indices have some.

    layout: the letters of the dimensions, such as NHWC, where they have any.
    """
    for axis, size in enumerate(mask.shape):
        at = np.flatnonzero(mask.any(axis=tuple(i for i in range(mask.ndim) if i != axis)))
        if not 0 < len(at) < size:
            continue
        first, last = int(at[0]), int(at[-1])
        name = _name(mask, axis, layout)
        if len(at) == last - first + 1:
            yield f"only {name} {first}{f' to {last}' if first < last else ''} of {size} differ"
        else:
            step = next((s for s in reversed(STEPS) if len(at) > 1 and np.all(at % s == first % s)), 0)
            if step:
                yield f"only every {step}th of {size} {name} differs, from {first} on"


def _name(mask: np.ndarray, axis: int, layout: str) -> str:
    """Returns the word for the indices of a dimension."""
    if len(layout) == mask.ndim:
        return {"N": "batch entries", "C": "channels", "H": "rows", "W": "columns", "D": "planes"}[layout[axis]]
    return f"indices of dimension {axis},"


def _by_values(wrong: Wrong) -> Iterator[str]:
    """For ops that work element by element: what the inputs of elements that differ have in common."""
    for i, x in enumerate(wrong.inputs):
        if x.dtype.kind not in "fV" or x.shape != wrong.got.shape:
            continue
        with np.errstate(all="ignore"):
            kinds = {
                "NaN": np.isnan(x), "infinite": np.isinf(x), "0": x == 0, "below 0": x < 0,
                "subnormal": (x != 0) & (np.abs(x.astype(np.float64)) < float(np.finfo(np.float32).smallest_normal)),
            }  # fmt: skip
        for name, has in kinds.items():
            if np.all(has[wrong.wrong]) and not np.all(has):
                yield f"only elements of which input {i} is {name} differ"
                break
