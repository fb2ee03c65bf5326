"""An op's NumPy reference, evaluated in the widest type that makes sense."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np

from timberframe_core.ops.definition.opdef import OpDef

WIDER: Mapping[np.dtype, type] = {
    np.dtype(np.float16): np.float64,
    np.dtype(ml_dtypes.bfloat16): np.float64,
    np.dtype(np.float32): np.float64,
    np.dtype(np.complex64): np.complex128,
}
"""What an array is converted to before the reference sees it; other dtypes stay as they are."""


def widen(array: np.ndarray) -> np.ndarray:
    """float64 or complex128 for narrower floats, the array itself for everything else."""
    wider = WIDER.get(array.dtype)
    return array if wider is None else array.astype(wider)


def evaluate(op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The op's outputs by its reference, in the dtypes that the inputs have."""
    with quiet():
        return evaluate_loudly(op, attrs, inputs)


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of NumPy and others, for many evaluations."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def evaluate_loudly(op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Like `evaluate`, for callers within `quiet`."""
    assert op.reference is not None, f"op {op.name} has no reference"
    result = op.reference(attrs, *inputs)
    outputs = result if isinstance(result, tuple | list) else (result,)
    return tuple(x if isinstance(x, np.ndarray) else np.asarray(x) for x in outputs)


def true_outputs(op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The outputs in float64 or complex128 for floating inputs, exact for all others."""
    return evaluate(op, attrs, [widen(x) for x in inputs])
