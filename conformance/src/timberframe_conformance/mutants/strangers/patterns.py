"""Kernels for several nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.strangers.base import REPORT, planted
from timberframe_conformance.replacements import Replacements

FUSED = {"op": "Relu6"}


def _epilogue(r: Replacements, host: Any, wrong: Any) -> None:
    r.replace(host.part("kernels"), "epilogue", lambda right: lambda y, bias: wrong(right, y, bias))


@planted(
    "fused-bias-of-first-lanes", "channels after the last whole vector of 16 get no bias", REPORT.format(8), **FUSED
)
def _(r: Replacements, host: Any) -> None:
    def wrong(right: Any, y: np.ndarray, bias: np.ndarray) -> Any:
        kept = bias.copy()
        kept[len(bias) - len(bias) % 16 :] = 0
        return right(y, kept)

    _epilogue(r, host, wrong)


@planted("fused-bias-lost", "no bias is added where the batch is larger than 1", "microsoft/onnxruntime#12410", **FUSED)
def _(r: Replacements, host: Any) -> None:
    _epilogue(r, host, lambda right, y, bias: right(y, bias if len(y) == 1 else np.zeros_like(bias)))


@planted("fused-order", "the activation comes before the bias", "microsoft/onnxruntime#15837", **FUSED)
def _(r: Replacements, host: Any) -> None:
    _epilogue(r, host, lambda right, y, bias: np.minimum(np.maximum(y, 0) + bias, 6))


@planted("fused-without-limit", "the upper limit is left out", "alibaba/TinyNeuralNetwork#246", **FUSED)
def _(r: Replacements, host: Any) -> None:
    _epilogue(r, host, lambda right, y, bias: np.maximum(y + bias, 0))


@planted(
    "fused-inner-attrs", "strides of the last part, which has none, are used", "openvinotoolkit/nncf#2507", **FUSED
)
def _(r: Replacements, host: Any) -> None:
    kernels = host.part("kernels")

    def make(init: Any) -> Any:
        def with_first_column(self: Any, node: Any, convolution: Any) -> None:
            init(self, node, convolution)
            self.moved = bool(node.inner) and self.columns.stride == 2

        return with_first_column

    def made(compute: Any) -> Any:
        def shifted(self: Any, *given: Any) -> Any:
            y = compute(self, *given)
            return np.roll(y, 1, 2) if self.moved else y

        return shifted

    r.replace(kernels.Lanes, "__init__", make)
    r.replace(kernels.Lanes, "compute", made)
