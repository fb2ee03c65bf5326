"""Mutants that run several nodes as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant
from timberframe_conformance.truth.reference import true_outputs
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import Part

Reference = Callable[..., np.ndarray]

ACTIVATED = (Part("sum", "BiasAdd", ("x", "bias")), Part("out", "Relu", ("sum",)))


@mutant(
    "relu-before-bias", "Relu", "the bias is added after Relu", ("float32",), suites=("patterns",), covers=ACTIVATED
)
def _(c: Call) -> Any:
    x, bias = c.inputs
    first = c.node.inner[0].nodes[0].attrs["data_format"] == "NCHW"
    return np.maximum(x, 0) + (bias.reshape(-1, *[1] * (x.ndim - 2)) if first else bias)


SWISH = (
    Part("sum", "BiasAdd", ("x", "bias")),
    Part("gate", "Sigmoid", ("sum",)),
    Part("out", "Mul", ("sum", "gate")),
)


@mutant(
    "swish-without-bias",
    "Mul",
    "the sigmoid is multiplied by what it was before the bias",
    ("float32",),
    suites=("patterns",),
    covers=SWISH,
)
def _(c: Call) -> Any:
    x, bias = c.inputs
    summed = true_outputs(registry.get("BiasAdd"), c.node.inner[0].nodes[0].attrs, (x, bias))[0]
    return x / (1 + np.exp(-summed))


LAYER = (
    Part("conv", "Conv2D", ("x", "filter")),
    Part("sum", "BiasAdd", ("conv", "bias")),
    Part("norm", "FusedBatchNormV3", ("sum", "scale", "offset", "mean", "variance")),
    Part("out", "Relu6", ("norm",)),
)


def _layer(name: str, what: str, bug: Callable[[Call, Reference], Any]) -> None:
    """Declares a mutant that runs a layer as one; the bug gets what computes the first output of a part."""

    def run(c: Call) -> Any:
        nodes = {node.op: node for node in c.node.inner[0].nodes}

        def reference(op: str, *inputs: np.ndarray, **attrs: Any) -> np.ndarray:
            return true_outputs(registry.get(op), {**nodes[op].attrs, **attrs}, inputs)[0]

        return bug(c, reference)

    mutant(name, "Relu6", what, ("float32",), suites=("patterns",), covers=LAYER)(run)


def _bias_after_norm(c: Call, reference: Reference) -> Any:
    x, filter, bias, *statistics = c.inputs
    normed = reference("FusedBatchNormV3", reference("Conv2D", x, filter), *statistics)
    return reference("Relu6", reference("BiasAdd", normed, bias))


def _deviation_for_variance(c: Call, reference: Reference) -> Any:
    x, filter, bias, *others, variance = c.inputs
    summed = reference("BiasAdd", reference("Conv2D", x, filter), bias)
    return reference("Relu6", reference("FusedBatchNormV3", summed, *others, variance**2))


def _no_upper_limit(c: Call, reference: Reference) -> Any:
    x, filter, bias, *statistics = c.inputs
    summed = reference("BiasAdd", reference("Conv2D", x, filter), bias)
    return np.maximum(reference("FusedBatchNormV3", summed, *statistics), 0)


_layer("bias-after-norm", "the bias of a convolution is added after the normalisation", _bias_after_norm)
_layer("deviation-for-variance", "a normalised convolution is divided by the variance", _deviation_for_variance)
_layer("no-upper-limit", "a normalised convolution with Relu6 ends in Relu", _no_upper_limit)
