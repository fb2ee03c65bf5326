"""Accelerator kernels of batch normalisation, local response normalisation, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_accelerator.kernels.reduction import Element, Reduction, Rule
from timberframe_accelerator.launches import GROUP, Source, index_name, index_type, spread
from timberframe_sdk import KernelDef, KernelNode, Launcher
from timberframe_sdk.declare import kernel
from timberframe_sdk.plans.reduction import reduction_passes

KERNELS: list[KernelDef] = []

_MOST_GROUPS = 65535  # in the second dimension of a launch, for CUDA
_ROWS = 8  # of an item, which then reads what belongs to a channel once
_TYPES = {"T": ("float16", "bfloat16", "float32"), "U": ("float32",)}


class _Channels:
    """x as [outer, channels, inner], with what both directions do: sums for each channel, and a walk over elements."""

    def __init__(self, node: KernelNode, shape: tuple[int, ...], *defines: str) -> None:
        axis = len(shape) - 1 if node.attrs["data_format"] in ("NHWC", "NDHWC") else 1
        self.shape = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        self.size = math.prod(shape)
        self.count = self.shape[0] * self.shape[2]
        self.index: Any = index_type(4 * self.size)
        self.dtype = node.attrs["T"].name
        self._device: Any = node.device
        index = index_name(4 * self.size)
        self._source = Source.file("batch_norm.h", T=self.dtype, INDEX=index, **dict.fromkeys(defines, 1))
        self._scratch = 0

    def sums(self, operands: str, expression: str, finish: str) -> Reduction:
        """Returns the sums (or with finish="mean" the means) over each channel of an expression of i and `channel`."""
        width = reduction_passes(self.shape, (0, 2))[0][2]
        channel = f"(column / {self.shape[2]})" if width > 1 else f"(block % {self.shape[1]})"
        text = expression.replace("CHANNEL", channel).replace("LOAD", f"tf_load_{self.dtype}")
        element = Element(operands.replace("STORAGE", f"tf_storage_{self.dtype}"), text)
        rule = Rule("sum", self.dtype, "float32", "float32", finish=finish)
        made = Reduction(self._device, self.shape, (0, 2), rule, element)
        self._scratch = max(self._scratch, made.scratch)
        return made

    def work(self, node: KernelNode, vectors: int) -> Any:
        """Asks for a workspace of the sums' partial results and so many vectors by channel; where these begin."""
        node.workspace(self._scratch + 4 * vectors * self.shape[1])
        return self.index(self._scratch // 4)

    def factors(self, *scalars: Any) -> Any:
        """tf_factors, to be called with its tensors and their start."""
        function = self._device.function(self._source, "tf_factors")
        items, group = spread(self.shape[1])
        numbers = self.index(self.shape[1]), *scalars
        return lambda *arrays: function(items, group, *arrays, *numbers) if self.shape[1] else None

    def elements(self) -> Any:
        """tf_elements, to be called with its tensors and the start of the workspace's vectors."""
        function = self._device.function(self._source, "tf_elements")
        outer, channels, inner = self.shape
        rows, width = (outer, channels) if inner == 1 else (outer * channels, inner)
        across = 1
        while across < GROUP and across < width:
            across *= 2
        down = GROUP // across
        group = across, down
        items = -(-width // across) * across, min(-(-rows // (down * _ROWS)), _MOST_GROUPS) * down
        numbers = *(self.index(n) for n in (rows, width, channels)), np.int32(inner == 1)
        return lambda *arrays: function(items, group, *arrays, *numbers) if self.size else None


@kernel(KERNELS, "FusedBatchNorm", "", types={"T": ("float32",)})
@kernel(KERNELS, ("FusedBatchNormV2", "FusedBatchNormV3"), "", types=_TYPES)
def batch_norm(node: KernelNode) -> Launcher:
    """Batch normalisation: means, variances as means of squared deviations, and then the elements."""
    attrs, c = node.attrs, _Channels(node, node.inputs[0].shape)
    training, blend = attrs["is_training"], attrs["exponential_avg_factor"]
    means = c.sums("TF_GLOBAL const STORAGE *x", "LOAD(x, i)", "mean")
    deviation = "(LOAD(x, i) - centers[CHANNEL])"
    spreads = c.sums("TF_GLOBAL const STORAGE *x, TF_GLOBAL const float *centers", f"{deviation} * {deviation}", "mean")
    start = c.work(node, 1)
    bessel = c.count / max(c.count - 1, 1)
    flags = np.int32(training), np.int32(not c.size)
    factors = c.factors(np.float32(attrs["epsilon"]), np.float32(blend), np.float32(bessel), *flags)
    elements = c.elements()

    def launch(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, y: Any, *rest: Any) -> None:
        running_mean, running_variance, center, spread_, *_, work = rest
        if training:
            means([x], center, work)
            spreads([x, center], spread_, work)
        factors(scale, mean, variance, running_mean, running_variance, center, spread_, work, start)
        elements(x, offset, center, y, work, start)

    return launch


@kernel(KERNELS, "FusedBatchNormGrad", "", types={"T": ("float32",)})
@kernel(KERNELS, ("FusedBatchNormGradV2", "FusedBatchNormGradV3"), "", types=_TYPES)
def batch_norm_grad(node: KernelNode) -> Launcher:
    """The gradients of batch normalisation by x, scale and offset."""
    c = _Channels(node, node.inputs[1].shape, "GRADIENT")
    plain = c.sums("TF_GLOBAL const STORAGE *x", "LOAD(x, i)", "same")
    operands = "TF_GLOBAL const STORAGE *dy, TF_GLOBAL const STORAGE *x, TF_GLOBAL const float *centers"
    weighted = c.sums(operands, "LOAD(dy, i) * (LOAD(x, i) - centers[CHANNEL])", "same")
    start = c.work(node, 3)
    epsilon, count = np.float32(node.attrs["epsilon"]), np.float32(max(c.count, 1))
    factors = c.factors(epsilon, count, np.int32(node.attrs["is_training"]))
    elements = c.elements()
    reserves = len(node.inputs) - 5

    def launch(dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *rest: Any) -> None:
        dx, by_scale, by_offset, *_, work = rest[reserves:]
        plain([dy], by_offset, work)
        weighted([dy, x, mean], by_scale, work)
        factors(scale, variance, by_scale, by_offset, work, start)
        elements(dy, x, mean, dx, work, start)

    return launch


@kernel(KERNELS, "LRN", "", types={"T": _TYPES["T"]})
def lrn(node: KernelNode) -> Launcher:
    """Local response normalisation."""
    function, call = _lrn_functions(node, "tf_lrn"), _lrn_call(node)
    return lambda *arrays: call(function, *arrays)


@kernel(KERNELS, "LRNGrad", "", types={"T": _TYPES["T"]})
def lrn_grad(node: KernelNode) -> Launcher:
    """The gradient of LRN: first the terms that neighbouring channels share, then their sums."""
    terms, sums = (_lrn_functions(node, name, "GRADIENT") for name in ("tf_lrn_terms", "tf_lrn"))
    call = _lrn_call(node)
    node.workspace(8 * node.outputs[0].size)

    def launch(dy: Any, x: Any, y: Any, dx: Any, work: Any = None) -> None:
        call(terms, dy, x, y, work)
        call(sums, work, x, dx)

    return launch


def _lrn_functions(node: KernelNode, name: str, *defines: str) -> Any:
    device: Any = node.device
    index = index_name(2 * node.outputs[0].size)
    return device.function(Source.file("lrn.h", T=node.attrs["T"].name, INDEX=index, **dict.fromkeys(defines, 1)), name)


def _lrn_call(node: KernelNode) -> Any:
    """Launches a function of lrn.h with its tensors."""
    size, channels, attrs = node.outputs[0].size, node.outputs[0].shape[3], node.attrs
    items, group = spread(size)
    index = index_type(2 * size)
    sizes = [index(n) for n in (size, channels, min(attrs["depth_radius"], channels))]
    numbers = *sizes, *(np.float32(attrs[name]) for name in ("bias", "alpha", "beta"))
    return lambda function, *arrays: function(items, group, *arrays, *numbers) if size else None
