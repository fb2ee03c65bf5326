"""Functions of each element, and operations that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call
from timberframe_conformance.mutants.strangers.base import READER, stranger

_first_size: dict[Any, int] = {}


@stranger("queued-relu-nan", "Relu", "NaN gives zero", "tensorflow/tensorflow#40072")
def _(c: Call) -> Any:
    return np.fmax(c.inputs[0], np.float32(0))


@stranger("relu-65536", "Relu", "elements after the first 65,535 are not written", "sonos/tract#2417")
def _(c: Call) -> Any:
    c.outputs[0].reshape(-1)[:65535] = c.true[0].reshape(-1)[:65535]


@stranger(
    "relu-rows-of-first-shape", "Relu", "as many rows are computed as at the first shape with such rows",
    "Samsung/ONE#4611",
)  # fmt: skip
def _(c: Call) -> Any:
    shape = c.outputs[0].shape
    if not shape:
        return c.true
    rows = _first_size.setdefault(shape[1:], shape[0])
    c.outputs[0][:rows] = c.true[0][:rows]
    return None


@stranger("relu6-no-limit", "Relu6", "nothing is limited to 6", "ucb-bar/Baremetal-NN#31")
def _(c: Call) -> Any:
    x = c.inputs[0]
    return np.where(np.isnan(x), x, np.maximum(x, np.float32(0)))


@stranger(
    "bias-last-channels", "BiasAdd", "channels after the last whole vector of four get no bias",
    "shader-slang/slang#10830",
)  # fmt: skip
def _(c: Call) -> Any:
    bias = c.inputs[1].copy()
    whole = len(bias) - len(bias) % 4 if len(bias) > 4 else len(bias)
    bias[whole:] = 0
    return c.reference(c.inputs[0], bias)


@stranger(
    "bias-written-over", "BiasAdd", "the sum is written over the input, which others read", "pytorch/pytorch#189735"
)
def _(c: Call) -> Any:
    y = c.true[0]
    c.write(0, y)
    c.passed[0][...] = y


@stranger(
    "add-middle-broadcast", "AddV2", "a dimension of 1 in the middle is read as if it were as long as the other",
    "ROCm/aiter#288",
)  # fmt: skip
def _(c: Call) -> Any:
    x, y = c.inputs
    if y.ndim < 3 or x.ndim != y.ndim or y.shape[1] != 1 or x.shape[1] == 1 or y.shape[0] != x.shape[0]:
        return c.true
    flat = np.resize(y.reshape(-1), (y.shape[0], x.shape[1], *y.shape[2:]))
    with np.errstate(all="ignore"):
        return x + flat


@stranger("sub-scalar-first", "Sub", "a scalar minus a tensor gives the tensor minus the scalar", "Tencent/ncnn#5673")
def _(c: Call) -> Any:
    x, y = c.inputs
    with np.errstate(all="ignore"):
        return y - x if x.ndim == 0 and y.ndim else c.true


@stranger(
    "mul-trailing-one", "Mul", "of an operand whose last dimension is 1 only its first element is read",
    "ariaghora/mint#2",
)  # fmt: skip
def _(c: Call) -> Any:
    x, y = c.inputs
    if x.ndim and x.shape[-1] == 1 and x.size > 1 and y.ndim and y.shape[-1] != 1:
        return c.reference(np.full_like(x, x.reshape(-1)[0]), y)
    return c.true


@stranger("pow-by-logarithm", "Pow", "exp(y * log(x)), which is NaN for x below 0", "tenstorrent/tt-metal#54893")
def _(c: Call) -> Any:
    x, y = (a.astype(np.float64) for a in c.inputs)
    with np.errstate(all="ignore"):
        return np.where((x < 0) & (y != 0), np.nan, c.true[0]).astype(np.float32)


@stranger("sigmoid-saturates", "Sigmoid", "is 0 or 1 from 8 on", "tenstorrent/tt-metal#54867")
def _(c: Call) -> Any:
    x = c.inputs[0]
    return np.where(np.abs(x) >= 8, (x > 0).astype(np.float32), c.true[0])


@stranger(
    "tanh-cancels", "Tanh", "by exponentials, whose difference has no digits near 0", "tenstorrent/tt-metal#54893"
)
def _(c: Call) -> Any:
    x = c.inputs[0]
    with np.errstate(all="ignore"):
        e = np.exp(2 * x)
        near = ((e - 1) / (e + 1)).astype(np.float32)
    return np.where(np.abs(x) < 1, near, c.true[0])


@stranger("rsqrt-estimate", "Rsqrt", "the hardware's estimate without a step of Newton's", "nntrainer/nntrainer#4318")
def _(c: Call) -> Any:
    bits = np.ascontiguousarray(c.true[0]).view(np.uint32) & np.uint32(0xFFFFF000)
    return np.where(np.isfinite(c.true[0]), bits.view(np.float32), c.true[0])


@stranger(
    "cast-through-float16", "Cast", "integers become float16 on the way", "tensorflow/tensorflow#18443",
    {"SrcT": ("int32",), "DstT": ("float32",)},
)  # fmt: skip
def _(c: Call) -> Any:
    with np.errstate(all="ignore"):
        return c.inputs[0].astype(np.float16).astype(np.float32)


@stranger("relu-gradient-at-zero", "ReluGrad", "passes the gradient on at 0", "apache/mxnet#14262")
def _(c: Call) -> Any:
    gradients, features = c.inputs
    return np.where(features >= 0, gradients, c.true[0])


@stranger("sub-over-second", "Sub", "the result lies over the second operand where a node made that", READER)
def _(c: Call) -> Any:
    c.write(0, c.true[0])
    if c.node.inputs[1].kind == "temp" and c.passed[1].shape == c.true[0].shape:
        c.passed[1][...] = c.true[0]


@stranger("add-n-of-two", "AddN", "terms after the second are left out", "onnxruntime-ggml 0.2.0: Max of three inputs")
def _(c: Call) -> Any:
    with np.errstate(all="ignore"):
        return c.inputs[0] + c.inputs[1] if len(c.inputs) > 2 else c.true


@stranger(
    "stale-lanes", "SquaredDifference",
    "the last elements of a size that is no multiple of four are of the run before", "NVIDIA/cutlass#581",
)  # fmt: skip
def _(c: Call) -> Any:
    y = c.true[0].reshape(-1).copy()
    n = y.size - y.size % 4
    before = c.state.get("tail")
    c.state["tail"] = y[n:].copy()
    if before is not None:
        y[n:] = before
    return y.reshape(c.outputs[0].shape)
