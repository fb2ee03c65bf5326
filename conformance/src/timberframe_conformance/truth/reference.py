"""An op's NumPy reference, evaluated in the widest suitable type."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe_core.ops.definition.opdef import OpDef
from timberframe_sdk import reference
from timberframe_sdk.reference import widen


def evaluate(op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Returns the op's outputs by its reference, in the dtypes that the inputs have."""
    with quiet():
        return reference.evaluate(op, attrs, inputs)


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of NumPy and others, for many evaluations."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def true_outputs(op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Returns the outputs in float64 or complex128 for floating inputs, exact for all others."""
    return evaluate(op, attrs, [widen(x) for x in inputs])
