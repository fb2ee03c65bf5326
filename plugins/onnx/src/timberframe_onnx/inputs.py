"""Random values for inputs of models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from timberframe_onnx.elements import Array
from timberframe_onnx.ports import Port


def random_array(port: Port, shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Returns values for an input: numbers from 0 to 1 for floats, the text "a", 0 and 1 for all others."""
    if port.numpy.kind == "O":
        made = np.empty(shape, object)
        made[...] = "a"
        return made
    if port.numpy.kind in "fc" or port.numpy.name == "bfloat16":
        return rng.random(shape).astype(port.numpy)
    return rng.integers(0, 2, shape).astype(port.numpy)
