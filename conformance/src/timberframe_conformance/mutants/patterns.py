"""Mutants that run several nodes as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant
from timberframe_core.plugin.contracts import Part

ACTIVATED = (Part("sum", "BiasAdd", ("x", "bias")), Part("out", "Relu", ("sum",)))


@mutant(
    "relu-before-bias", "Relu", "the bias is added after Relu", ("float32",), suites=("patterns",), covers=ACTIVATED
)
def _(c: Call) -> Any:
    x, bias = c.inputs
    first = c.node.inner[0].nodes[0].attrs["data_format"] == "NCHW"
    return np.maximum(x, 0) + (bias.reshape(-1, *[1] * (x.ndim - 2)) if first else bias)
