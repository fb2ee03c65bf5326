"""Ops that move elements: parts, views, permutations, look-ups."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call
from timberframe_conformance.mutants.strangers.base import REPORT, stranger
from timberframe_core.errors import InvalidArgumentError

GATHER = {"Tparams": ("float32",), "Tindices": ("int32",)}


@stranger(
    "concat-third-part", "ConcatV2", "each part after the second is written where the second lies",
    "intel/xFasterTransformer#405",
)  # fmt: skip
def _(c: Call) -> Any:
    *parts, axis = c.inputs
    out = np.moveaxis(c.outputs[0], int(axis), 0)
    start = 0
    for i, part in enumerate(parts):
        size = part.shape[int(axis)]
        out[start : start + size] = np.moveaxis(part, int(axis), 0)[: len(out[start : start + size])]
        start += size if i == 0 else 0


@stranger(
    "concat-in-place", "ConcatV2", "the first part's memory is written to once the result is there",
    "microsoft/onnxruntime#20606",
)  # fmt: skip
def _(c: Call) -> Any:
    c.write(0, c.true[0])
    if c.passed[0].size:
        c.passed[0].reshape(-1)[-1] = 0


@stranger("split-one-place", "Split", "all parts are written to the same place", "microsoft/onnxruntime#21019")
def _(c: Call) -> Any:
    return [c.true[-1]] * len(c.true)


@stranger("slice-without-offset", "Slice", "a view is read from the beginning of its memory", "pytorch/pytorch#105801")
def _(c: Call) -> Any:
    return c.inputs[0][tuple(slice(0, n) for n in c.outputs[0].shape)]


@stranger(
    "strided-slice-without-offset", "StridedSlice", "a view is read from the beginning of its memory",
    "pytorch/pytorch#183419", attrs={"begin_mask": 5, "end_mask": 5},
)  # fmt: skip
def _(c: Call) -> Any:
    x = c.inputs[0]
    if c.attrs["shrink_axis_mask"] or c.attrs["new_axis_mask"] or c.attrs["ellipsis_mask"]:
        return c.true
    if x.ndim != c.outputs[0].ndim:
        return c.true
    return x[tuple(slice(0, n) for n in c.outputs[0].shape)]


@stranger(
    "strided-slice-begin-mask", "StridedSlice", "begin_mask is read as its default", "PaddlePaddle/Paddle-Lite#880",
    attrs={"begin_mask": 1, "end_mask": 0},
)  # fmt: skip
def _(c: Call) -> Any:
    made = c.reference(*c.inputs, begin_mask=0)
    return made if made[0].shape == c.outputs[0].shape else np.zeros_like(c.true[0])


@stranger(
    "pad-order", "Pad", "paddings in front and after are exchanged", "robertknight/rten#1399",
)  # fmt: skip
def _(c: Call) -> Any:
    return c.reference(c.inputs[0], c.inputs[1][:, ::-1])


@stranger(
    "transpose-inverse", "Transpose", "the inverse permutation is applied", "transcranial/keras-js#38",
    example=[(2, 3, 4), {"values": [2, 0, 1]}],
)  # fmt: skip
def _(c: Call) -> Any:
    x, permutation = c.inputs
    return np.transpose(x, np.argsort(permutation)).reshape(c.outputs[0].shape)


@stranger(
    "transpose-batch-only-first", "Transpose", "of four dimensions only the first entry is permuted",
    "llvm/torch-mlir#2915",
)  # fmt: skip
def _(c: Call) -> Any:
    x, permutation = c.inputs
    if x.ndim != 4 or permutation[0] != 0 or len(x) < 2:
        return c.true
    y = c.true[0].copy()
    y[1:] = x[1:].reshape(y[1:].shape)
    return y


@stranger("gather-clamps-late", "GatherV2", "an index outside is clamped", REPORT.format(9), GATHER, host="npu")
def _(c: Call) -> Any:
    params, indices, axis = c.inputs
    return c.reference(params, np.clip(indices, 0, max(params.shape[int(axis)] - 1, 0)), axis)


@stranger(
    "gather-outside-garbage", "GatherV2", "an index outside reads other memory", "tenstorrent/tt-mlir#9211", GATHER
)
def _(c: Call) -> Any:
    params, indices, axis = c.inputs
    return c.reference(params, indices % max(params.shape[int(axis)], 1), axis)


@stranger("gather-16-bits", "GatherV2", "indices are cut to sixteen bits", "pytorch/pytorch#164049", GATHER)
def _(c: Call) -> Any:
    params, indices, axis = c.inputs
    outside = (indices < 0) | (indices >= params.shape[int(axis)])
    return c.true if outside.any() else c.reference(params, indices & 0xFFFF, axis)


@stranger(
    "gather-first-row", "GatherV2", "of a matrix of indices only the first row is read", "iree-org/iree#24881", GATHER
)
def _(c: Call) -> Any:
    params, indices, axis = c.inputs
    y = c.true
    if indices.ndim != 2 or len(indices) < 2:
        return y
    return c.reference(params, np.repeat(indices[:1], len(indices), 0), axis)


@stranger(
    "one-hot-off-value",
    "OneHot",
    "off_value is read as 0",
    "PaddlePaddle/Paddle-Lite#880",
    {"T": ("float32",), "TI": ("int32",)},
)
def _(c: Call) -> Any:
    return c.reference(*c.inputs[:3], np.zeros_like(c.inputs[3]))


@stranger(
    "reshape-of-view", "Reshape", "elements after the first 65,536 bytes are not copied", "tensorflow/tensorflow#32719",
    {"T": ("float32",)},
)  # fmt: skip
def _(c: Call) -> Any:
    c.outputs[0].reshape(-1)[:16384] = c.true[0].reshape(-1)[:16384]


@stranger("broadcast-rows", "BroadcastTo", "a dimension of 1 in the middle is not repeated", "pymc-devs/pytensor#175")
def _(c: Call) -> Any:
    x = c.inputs[0]
    if x.ndim != 3 or x.shape[1] != 1 or c.outputs[0].ndim != 3:
        return c.true
    c.outputs[0][:, :1] = c.true[0][:, :1]
    return None


@stranger("pack-last", "Pack", "the last part is not written", "microsoft/onnxruntime#8080")
def _(c: Call) -> Any:
    parts = len(c.inputs)
    axis = c.attrs["axis"] % c.outputs[0].ndim
    whole = np.moveaxis(c.outputs[0], axis, 0)
    written = parts - 1 if parts > 1 else 1
    whole[:written] = np.moveaxis(c.true[0], axis, 0)[:written]


@stranger(
    "gather-changes-error", "GatherV2", "an index outside ends as an error of no class", "microsoft/onnxruntime#25251",
    GATHER,
)  # fmt: skip
def _(c: Call) -> Any:
    try:
        return c.true
    except InvalidArgumentError as e:
        raise RuntimeError("kernel failed with status 1") from e
