"""Convolutions and pools."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call
from timberframe_conformance.mutants.strangers.base import REPORT, planted, stranger
from timberframe_conformance.replacements import Replacements

STRIDED_SAME = {"strides": (1, 2, 2, 1), "padding": "SAME"}
_first_rows: dict[Any, int] = {}
_window_of: dict[Any, Any] = {}


def _last(c: Call) -> bool:
    """Returns whether channels are the last dimension."""
    return str(c.attrs.get("data_format", "NHWC")) == "NHWC"


def _other_side(c: Call, reverse: tuple[int, ...]) -> Any:
    """Returns the result with the odd pixel of SAME padding in front.

    reverse: the inputs that have the window's dimensions.
    """
    space = (1, 2) if _last(c) else (2, 3)
    inputs = [np.flip(x, space if i == 0 else (0, 1)) if i in reverse else x for i, x in enumerate(c.inputs)]
    return np.flip(c.reference(*inputs)[0], space) if c.attrs["padding"] == "SAME" else c.true


@stranger(
    "conv-same-other-side", "Conv2D", "SAME padding of an even total has the odd pixel in front",
    REPORT.format(1), attrs={"padding": "SAME"},
)  # fmt: skip
def _(c: Call) -> Any:
    return _other_side(c, (0, 1))


@stranger(
    "max-pool-same-other-side", "MaxPool", "SAME padding has the odd pixel in front", "tracel-ai/burn#2676",
    attrs={"padding": "SAME"},
)  # fmt: skip
def _(c: Call) -> Any:
    return _other_side(c, (0,))


@stranger(
    "depthwise-same-other-side", "DepthwiseConv2dNative", "SAME padding has the odd pixel in front",
    "FluxML/Flux.jl#1605", attrs={"padding": "SAME"},
)  # fmt: skip
def _(c: Call) -> Any:
    return _other_side(c, (0, 1))


@stranger(
    "conv-stride-past-window", "Conv2D", "SAME padding is negative where the stride is larger than the window",
    "tensorflow/tensorflow#14601", attrs=STRIDED_SAME,
)  # fmt: skip
def _(c: Call) -> Any:
    if c.attrs["padding"] != "SAME" or not _last(c):
        return c.true
    x = c.inputs[0]
    for axis in (1, 2):
        total = (c.outputs[0].shape[axis] - 1) * c.attrs["strides"][axis] + c.inputs[1].shape[axis - 1] - x.shape[axis]
        shift = -(total // 2) if total < 0 else 0
        moved = np.zeros_like(x)
        kept = x.shape[axis] - shift
        source = [slice(None)] * 4
        target = [slice(None)] * 4
        source[axis], target[axis] = slice(shift, None), slice(0, kept)
        moved[tuple(target)] = x[tuple(source)]
        x = moved
    return c.reference(x, c.inputs[1])


@stranger(
    "conv-dilations-default", "Conv2D", "dilations are read as their default", "PaddlePaddle/Paddle-Lite#880",
    attrs={"dilations": (1, 2, 2, 1)},
)  # fmt: skip
def _(c: Call) -> Any:
    made = c.reference(*c.inputs, dilations=(1, 1, 1, 1))
    return made if made[0].shape == c.outputs[0].shape else c.true


@stranger(
    "conv-explicit-order", "Conv2D", "explicit paddings in front and after are exchanged",
    "robertknight/rten#1399", attrs={"padding": "EXPLICIT"},
)  # fmt: skip
def _(c: Call) -> Any:
    if c.attrs["padding"] != "EXPLICIT" or not _last(c):
        return c.true
    top, bottom, left, right = c.attrs["explicit_paddings"][2:6]
    return c.reference(*c.inputs, explicit_paddings=(0, 0, bottom, top, right, left, 0, 0))


@stranger(
    "conv-first-image", "Conv2D", "each image of a batch gives the result of the first",
    "Ghustwb/MobileNet-SSD-TensorRT#39",
)  # fmt: skip
def _(c: Call) -> Any:
    y = c.true[0].copy()
    y[1:] = y[:1]
    return y


@stranger(
    "conv-last-tile-of-batch", "Conv2D", "images after the last whole tile of four are not computed",
    "NervanaSystems/neon#361",
)  # fmt: skip
def _(c: Call) -> Any:
    n = c.outputs[0].shape[0]
    c.outputs[0][: n if n < 4 else n - n % 4] = c.true[0][: n if n < 4 else n - n % 4]


@stranger(
    "conv-channels-past-lanes", "Conv2D", "channels after the last whole vector of 16 are left out of the sum",
    "apache/tvm#1506",
)  # fmt: skip
def _(c: Call) -> Any:
    x = c.inputs[0].copy()
    channels = x.shape[3] if _last(c) else x.shape[1]
    whole = channels if channels < 16 else channels - channels % 16
    if _last(c):
        x[..., whole:] = 0
    else:
        x[:, whole:] = 0
    return c.reference(x, c.inputs[1])


@stranger(
    "conv-65537-filters", "Conv2D", "filters after the first 65,536 are wrong", "tensorflow/tensorflow#71577"
)  # fmt: skip
def _(c: Call) -> Any:
    y = c.true[0].copy()
    (y if _last(c) else y.swapaxes(1, 3))[..., 65536:] = 0
    return y


@stranger("conv-writes-input", "Conv2D", "the input is set to zero after it was used", REPORT.format("H1"))
def _(c: Call) -> Any:
    c.write(0, c.true[0])
    c.passed[0][...] = 0


@stranger(
    "conv-stale-weights", "Conv2D", "weights in constants or variables are packed in the first run alone",
    REPORT.format("2b"),
)  # fmt: skip
def _(c: Call) -> Any:
    if c.node.inputs[1].kind not in ("const", "resource"):
        return c.true
    return c.reference(c.inputs[0], c.state.setdefault("packed", c.inputs[1]))


@planted(
    "conv-lanes-not-cleared", "lanes after the last channel keep what was in memory", REPORT.format(6), op="Conv2D"
)
def _(r: Replacements, host: Any) -> None:
    r.replace(host.part("kernels"), "clear", lambda _: lambda lanes: None)


@planted(
    "conv-lanes-cleared-once", "padding is cleared in the first run alone, though others use the workspace",
    "ROCm/aiter#3538", op="Conv2D", attrs={"padding": "SAME"},
)  # fmt: skip
def _(r: Replacements, host: Any) -> None:
    seen: set[int] = set()

    def make(clear: Any) -> Any:
        def once(lanes: np.ndarray) -> None:
            if lanes.size not in seen:
                seen.add(lanes.size)
                clear(lanes)

        return once

    r.replace(host.part("kernels"), "clear", make)


@planted(
    "conv-shared-workspace", "two launches use a workspace that all runs share", "pytorch/executorch#19734", op="Conv2D"
)
def _(r: Replacements, host: Any) -> None:
    kernels, device = host.part("kernels"), host.part("device")
    shared = np.zeros(1 << 24, np.uint8)

    def build(node: Any) -> Any:
        convolution = kernels.Convolution.forward(node)
        lanes, queue = kernels.Lanes(node, convolution), node.device.queue

        def copy(x: np.ndarray) -> None:
            shared[: x.nbytes] = x.reshape(-1).view(np.uint8)

        def compute(w: np.ndarray, out: np.ndarray, workspace: np.ndarray) -> None:
            if out.size:
                x = shared[: convolution.x.nbytes].view(convolution.x.dtype).reshape(convolution.x.shape)
                filters = np.empty((*w.shape[:2], lanes.shape[3], w.shape[3]), w.dtype)
                kernels.pack_filters(w, filters)
                out[...] = lanes.compute(x, filters, workspace)

        def launch(x: Any, *rest: Any) -> None:
            queue.launch(copy, x)
            time.sleep(0)  # a call of a driver, during which other threads go on
            queue.launch(compute, *rest)

        return launch

    def make(all_kernels: Any) -> Any:
        return [dataclasses.replace(k, build=build) if k.op == "Conv2D" else k for k in all_kernels]

    r.replace(device, "KERNELS", make)


@stranger(
    "conv-first-batch-size", "Conv2D", "a compiled kernel is found without the batch, and runs as often as at first",
    "pytorch/TensorRT#3148",
)  # fmt: skip
def _(c: Call) -> Any:
    key = c.inputs[0].shape[1:], c.inputs[1].shape, str(sorted(c.attrs.items(), key=str))
    rows = _first_rows.setdefault(key, c.inputs[0].shape[0])
    c.outputs[0][:rows] = c.true[0][:rows]


@stranger(
    "transposed-conv-size", "Conv2DBackpropInput", "the last row of an odd size is not written",
    "robertknight/rten#1399", attrs=STRIDED_SAME,
)  # fmt: skip
def _(c: Call) -> Any:
    rows = c.outputs[0].shape[1]
    whole = rows if c.attrs["strides"][1] == 1 else rows - rows % 2
    c.outputs[0][:, :whole] = c.true[0][:, :whole]


@stranger(
    "filter-gradient-last-image", "Conv2DBackpropFilter", "the last image of an odd batch is left out of the sum",
    "NervanaSystems/neon#361",
)  # fmt: skip
def _(c: Call) -> Any:
    x = c.inputs[0].copy()
    if len(x) % 2 and len(x) > 1:
        x[-1] = 0
    return c.reference(x, *c.inputs[1:])


@stranger(
    "depthwise-multiplier-order", "DepthwiseConv2dNative", "outputs are ordered by filter and then by channel",
    "alibaba/MNN#532", example=[(2, 8, 8, 4), (3, 3, 4, 2)],
)  # fmt: skip
def _(c: Call) -> Any:
    channels, multiplier = c.inputs[1].shape[2:]
    y = c.true[0] if _last(c) else c.true[0].swapaxes(1, 3)
    y = y.reshape(*y.shape[:3], channels, multiplier).swapaxes(3, 4).reshape(y.shape)
    return y if _last(c) else y.swapaxes(1, 3)


@stranger(
    "depthwise-last-channels", "DepthwiseConv2dNative", "channels after the last whole vector of four are not written",
    "stew675/llama-cpp-rdna-boosts#19",
)  # fmt: skip
def _(c: Call) -> Any:
    y, out = (a if _last(c) else a.swapaxes(1, 3) for a in (c.true[0], c.outputs[0]))
    whole = y.shape[3] - y.shape[3] % 4 if y.shape[3] > 4 else y.shape[3]
    out[..., :whole] = y[..., :whole]


@stranger(
    "max-pool-zero-padding", "MaxPool", "padding counts as zeros", "ROCm/AMDMIGraphX#1766", attrs={"padding": "SAME"}
)
def _(c: Call) -> Any:
    if c.attrs["padding"] != "SAME" or not _last(c):
        return c.true
    x, y = c.inputs[0], c.true[0].copy()
    for axis in (1, 2):
        size, stride, window = x.shape[axis], c.attrs["strides"][axis], c.attrs["ksize"][axis]
        total = max((y.shape[axis] - 1) * stride + window - size, 0)
        for i in range(y.shape[axis]):
            start = i * stride - total // 2
            if start < 0 or start + window > size:
                edge = [slice(None)] * 4
                edge[axis] = slice(i, i + 1)
                y[tuple(edge)] = np.maximum(y[tuple(edge)], 0)
    return y


@stranger(
    "average-pool-counts-padding", "AvgPool", "the sum is divided by the window's size at the edges, too",
    "BVLC/caffe#6297", attrs={"padding": "SAME"},
)  # fmt: skip
def _(c: Call) -> Any:
    if c.attrs["padding"] != "SAME" or not _last(c):
        return c.true
    y = c.true[0].astype(np.float64)
    for axis in (1, 2):
        size, stride, window = c.inputs[0].shape[axis], c.attrs["strides"][axis], c.attrs["ksize"][axis]
        total = max((y.shape[axis] - 1) * stride + window - size, 0)
        start = np.arange(y.shape[axis]) * stride - total // 2
        count = np.minimum(start + window, size) - np.maximum(start, 0)
        y *= (count / window).reshape([-1 if d == axis else 1 for d in range(4)])
    return y


@stranger(
    "pool-cache-without-window", "AvgPool", "a compiled kernel is found without the window that it was made for",
    "kulinseth/pytorch#273", attrs={"ksize": (1, 2, 2, 1), "padding": "SAME"},
)  # fmt: skip
def _(c: Call) -> Any:
    key = c.inputs[0].shape, c.outputs[0].shape, c.attrs["strides"], c.attrs["padding"], c.attrs["data_format"]
    return c.reference(*c.inputs, ksize=_window_of.setdefault(key, c.attrs["ksize"]))


@stranger(
    "max-pool-gradient-to-all", "MaxPoolGrad", "each of several equal maxima gets the whole gradient",
    "nntrainer/nntrainer#1051",
)  # fmt: skip
def _(c: Call) -> Any:
    x, y, grad = c.inputs
    if not _last(c) or c.attrs["padding"] != "VALID":
        return c.true
    out = np.zeros(x.shape, np.float64)
    (_, kh, kw, _), (_, sh, sw, _) = c.attrs["ksize"], c.attrs["strides"]
    for i in range(y.shape[1]):
        for j in range(y.shape[2]):
            rows, columns = slice(i * sh, i * sh + kh), slice(j * sw, j * sw + kw)
            window = x[:, rows, columns]
            out[:, rows, columns] += (window == y[:, i : i + 1, j : j + 1]) * grad[:, i : i + 1, j : j + 1]
    return out
