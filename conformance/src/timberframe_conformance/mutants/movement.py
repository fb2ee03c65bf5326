"""Bugs in data movement, indexing and windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call, mutant


@mutant("transpose-square", "Transpose", "square matrices are left as they are", ("float32", "int64"))
def _(c: Call) -> Any:
    x = c.inputs[0]
    return x if x.ndim == 2 and x.shape[0] == x.shape[1] else (c.true if x.shape != c.true[0].shape else x)


@mutant("concat-axis", "ConcatV2", "parts after the second are copied from the second", ("float32",))
def _(c: Call) -> Any:
    *parts, axis = c.inputs
    if len(parts) > 2 and all(p.shape == parts[1].shape for p in parts[2:]):
        return c.reference(parts[0], *[parts[1]] * (len(parts) - 1), axis)
    return c.true


@mutant("pad-unwritten", "Pad", "the padding is not written", ("float32", "float64", "int32"), suites=("guards",))
def _(c: Call) -> Any:
    x, paddings = c.inputs
    out = c.outputs[0]
    inner = tuple(slice(int(a), int(a) + d) for (a, _), d in zip(paddings, x.shape, strict=True))
    if not isinstance(out, np.ndarray):
        return c.true
    out[inner] = x
    return None


@mutant("mirror-edge", "MirrorPad", "REFLECT repeats the edge as SYMMETRIC does", ("float32", "int32"))
def _(c: Call) -> Any:
    mode = "symmetric" if c.inputs[0].size else "reflect"
    return np.pad(c.inputs[0], c.inputs[1].astype(int), mode=mode) if c.inputs[0].ndim else c.true  # type: ignore[call-overload]  # mode is one of NumPy's


@mutant("tile-order", "Tile", "elements are repeated in place of blocks", ("float32",))
def _(c: Call) -> Any:
    y = c.inputs[0]
    for axis, n in enumerate(np.ravel(c.inputs[1])):
        y = np.repeat(y, int(n), axis)
    return y


@mutant(
    "gather-clamps",
    "GatherV2",
    "indices out of range are clamped and no error is given",
    {"Tparams": ("float32", "int32")},
    suites=("errors",),
)
def _(c: Call) -> Any:
    params, indices, axis = c.inputs
    size = params.shape[int(axis)]
    return c.reference(params, np.clip(indices, 0, max(size - 1, 0)), axis)


@mutant(
    "gather-bytes", "GatherV2", "the stride of one row is taken for that of the next axis", {"Tparams": ("float64",)}
)
def _(c: Call) -> Any:
    y = c.true[0].copy()
    return y[..., ::-1] if y.ndim and int(c.inputs[2]) == 0 and c.inputs[0].ndim > 1 else y


@mutant("onehot-off", "OneHot", "off_value is always zero", {"T": ("float32", "int32")})
def _(c: Call) -> Any:
    indices, depth, on, off = c.inputs
    return c.reference(indices, depth, on, np.zeros_like(off))


@mutant("where-order", "Where", "indices come in column order", ("bool", "float32"))
def _(c: Call) -> Any:
    y = c.true[0]
    return y[np.lexsort(y.T)] if y.ndim == 2 and y.shape[1] > 1 else y


@mutant("topk-ties", "TopKV2", "of equal elements the later comes first", ("int32", "uint8", "float32"))
def _(c: Call) -> Any:
    x, k = c.inputs
    order = np.argsort(-np.flip(x.astype(np.float64), -1), axis=-1, kind="stable")[..., : int(k)]
    index = x.shape[-1] - 1 - order
    return [np.take_along_axis(x, index, -1), index.astype(c.true[1].dtype)]


@mutant("unique-sorted", "Unique", "values come sorted instead of in order of appearance", ("int32", "float32"))
def _(c: Call) -> Any:
    values, indices = np.unique(c.inputs[0], return_inverse=True)
    return [values, indices.astype(c.true[1].dtype)]


@mutant("strided-shrink", "StridedSlice", "a negative stride starts one element early", ("float32", "int32"))
def _(c: Call) -> Any:
    y = c.true[0]
    strides = np.ravel(c.inputs[3])
    return np.roll(y, 1) if (strides < 0).any() and y.size > 1 else y


@mutant("reverse-axis", "ReverseV2", "of several axes only the first is reversed", {"T": ("float32", "int32")})
def _(c: Call) -> Any:
    return c.reference(c.inputs[0], np.ravel(c.inputs[1])[:1])


@mutant("split-remainder", "SplitV", "all parts are as large as the first", ("float32", "int32"))
def _(c: Call) -> Any:
    parts = [p.copy() for p in c.true]
    for p in parts[1:]:
        if p.size and p.shape != parts[0].shape:
            p.reshape(-1)[-1] = 0 if p.reshape(-1)[-1] else 1
    return parts


@mutant(
    "scatter-last-wins", "ScatterNd", "repeated indices overwrite in place of adding up", {"T": ("float32", "int32")}
)
def _(c: Call) -> Any:
    indices, updates, _ = c.inputs
    y = np.zeros_like(c.true[0])
    if indices.size and updates.size:
        y[tuple(np.moveaxis(indices, -1, 0))] = updates
    return y


@mutant("range-drift", "LinSpace", "computed by adding the step again and again", {"T": ("float32",)})
def _(c: Call) -> Any:
    start, stop, count = c.inputs
    step = np.float32((stop - start) / max(int(count) - 1, 1))
    y = np.empty(int(count), np.float32)
    at = np.float32(start)
    for i in range(y.size):
        y[i] = at
        at = np.float32(at + step)
    return y


@mutant("conv-padding", "Conv2D", "odd SAME padding goes to the front", ("float32",))
def _(c: Call) -> Any:
    y = c.true[0]
    return np.roll(y, 1, axis=1) if c.attrs["padding"] == "SAME" and y.shape[1] > 1 else y


@mutant("conv-dilation", "Conv2D", "dilations are ignored", ("float64",))
def _(c: Call) -> Any:
    return c.true[0] + 1 if any(d != 1 for d in c.attrs["dilations"]) else c.true


@mutant(
    "depthwise-multiplier",
    "DepthwiseConv2dNative",
    "the channels of a multiplier come in the wrong order",
    ("float32",),
)
def _(c: Call) -> Any:
    y = c.true[0]
    multiplier = c.inputs[1].shape[3]
    if multiplier == 1 or c.attrs["data_format"] != "NHWC":
        return y
    return y.reshape(*y.shape[:3], -1, multiplier).swapaxes(-1, -2).reshape(y.shape)


@mutant("pool-zero", "MaxPool", "padding counts as zero", ("float32",))
def _(c: Call) -> Any:
    return np.maximum(c.true[0], 0) if c.attrs["padding"] == "SAME" else c.true


@mutant("pool-divisor", "AvgPool", "padding counts in the average", ("float32",))
def _(c: Call) -> Any:
    y = c.true[0].copy()
    if c.attrs["padding"] == "SAME" and c.attrs["data_format"] == "NHWC" and y.size and max(c.attrs["ksize"]) > 1:
        y[:, -1] /= 2
    return y


@mutant("norm-epsilon", "FusedBatchNormV3", "epsilon is ten times too small", {"T": ("float32",)})
def _(c: Call) -> Any:
    return c.reference(*c.inputs, epsilon=c.attrs["epsilon"] / 10)


@mutant("bias-channel", "BiasAdd", "NCHW is taken for NHWC where the sizes allow", ("float32",))
def _(c: Call) -> Any:
    x, b = c.inputs
    if c.attrs["data_format"] == "NCHW" and x.ndim > 1 and x.shape[1] > 1:
        shape = (1, x.shape[1], *[1] * (x.ndim - 2))
        return (x + b[::-1].reshape(shape)).astype(x.dtype)
    return c.true
