"""Sums, means, normalisation, Softmax, and what training does with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_conformance.mutants.base import Call
from timberframe_conformance.mutants.strangers.base import stranger

INT32_AXES = {"T": ("float32",), "Tidx": ("int32",)}


@stranger("softmax-overflows", "Softmax", "exponentials of the inputs themselves", "deeplearning4j/deeplearning4j#6039")
def _(c: Call) -> Any:
    with np.errstate(all="ignore"):
        e = np.exp(c.inputs[0])
        return e / e.sum(-1, keepdims=True)


@stranger(
    "softmax-long-rows", "Softmax", "elements after the first 1,024 of a row are not added up", "apache/mxnet#12751"
)
def _(c: Call) -> Any:
    x = c.inputs[0].astype(np.float64)
    if x.shape[-1] <= 1024:
        return c.true
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        return (e / e[..., :1024].sum(-1, keepdims=True)).astype(np.float32)


@stranger("softmax-rows-as-one", "Softmax", "of four dimensions the last two are one row", "apache/singa#540")
def _(c: Call) -> Any:
    x = c.inputs[0]
    if x.ndim != 4:
        return c.true
    return c.reference(x.reshape(*x.shape[:2], -1))[0].reshape(x.shape)


@stranger(
    "mean-negative-axis", "Mean", "a negative axis counts from the front", "ROCm/AMDMIGraphX#304", INT32_AXES,
    attrs={"keep_dims": True}, example=[(12, 16), {"values": [-1]}],
)  # fmt: skip
def _(c: Call) -> Any:
    x, axes = c.inputs
    if (np.asarray(axes) >= 0).all():
        return c.true
    made = c.reference(x, np.unique(np.where(axes < 0, -1 - axes, axes)))[0]
    return made if made.shape == c.outputs[0].shape else np.resize(made, c.outputs[0].shape)


@stranger(
    "mean-count-16-bits", "Mean", "the number of elements is cut to sixteen bits", "pytorch/pytorch#164049", INT32_AXES
)
def _(c: Call) -> Any:
    count = c.inputs[0].size // max(c.outputs[0].size, 1)
    if count < 65536:
        return c.true
    with np.errstate(all="ignore"):
        return c.true[0] * np.float32(count) / np.float32(count & 0xFFFF)


@stranger("mean-second-axis", "Mean", "of two axes only the first is looked at", "ROCm/AMDMIGraphX#304", INT32_AXES)
def _(c: Call) -> Any:
    x, axes = c.inputs
    if np.size(axes) < 2 or not c.outputs[0].size:
        return c.true
    made = c.reference(x, np.ravel(axes)[:1], keep_dims=True)[0]
    for axis in np.ravel(axes)[1:]:
        made = made.take([0], int(axis))
    return made.reshape(c.outputs[0].shape)


@stranger(
    "sum-past-vectors",
    "Sum",
    "elements after the last whole vector of eight are left out",
    "AlphaGPU/leetgpu-challenges#137",
    INT32_AXES,
)
def _(c: Call) -> Any:
    x, axes = c.inputs
    n = x.shape[-1] if x.ndim else 0
    if n <= 8 or not ({-1, x.ndim - 1} & set(np.ravel(axes).tolist())):
        return c.true
    x = x.copy()
    x[..., n - n % 8 :] = 0
    return c.reference(x, axes)


@stranger(
    "sum-narrow", "Sum", "is added up in float16", "microsoft/onnxruntime#29599",
    {"T": ("float16",), "Tidx": ("int32",)},
)  # fmt: skip
def _(c: Call) -> Any:
    x, axes = c.inputs
    axes = np.ravel(axes) % max(x.ndim, 1) if x.ndim else np.ravel(axes)
    rest = [d for d in range(x.ndim) if d not in axes]
    moved = np.transpose(x, [*axes, *rest]).reshape(-1, *[x.shape[d] for d in rest]) if x.ndim else x.reshape(1)
    total = np.zeros(moved.shape[1:], np.float16)
    with np.errstate(all="ignore"):
        for row in moved:
            total = (total + row).astype(np.float16)
    return total.reshape(c.outputs[0].shape)


@stranger(
    "batch-norm-epsilon", "FusedBatchNormV3", "epsilon is read as its default", "AlexeyAB/darknet#5447",
    attrs={"is_training": False},
)  # fmt: skip
def _(c: Call) -> Any:
    return c.reference(*c.inputs, epsilon=1e-4)


@stranger(
    "batch-norm-biased", "FusedBatchNormV3", "the variance that it hands on is not that of a sample",
    "tensorflow/tensorflow#4919", attrs={"is_training": True},
)  # fmt: skip
def _(c: Call) -> Any:
    found = c.true
    if c.attrs["is_training"]:
        n = c.inputs[0].size // max(c.inputs[1].size, 1)
        found[2] = (found[2] * np.float32((n - 1) / max(n, 1))).astype(found[2].dtype)
    return found


@stranger(
    "batch-norm-second-output", "FusedBatchNormV3", "the variance is written over the mean",
    "microsoft/onnxruntime#21019", attrs={"is_training": True},
)  # fmt: skip
def _(c: Call) -> Any:
    found = c.true
    found[1] = found[2]
    return found


@stranger(
    "bias-gradient-last-image", "BiasAddGrad", "the last entry of an odd batch is left out", "NervanaSystems/neon#361"
)
def _(c: Call) -> Any:
    x = c.inputs[0].copy()
    if len(x) > 1 and len(x) % 2:
        x[-1] = 0
    return c.reference(x)


@stranger(
    "cross-entropy-second-output", "SparseSoftmaxCrossEntropyWithLogits", "the gradient is not written",
    "microsoft/onnxruntime#21019", {"T": ("float32",), "Tlabels": ("int32",)},
)  # fmt: skip
def _(c: Call) -> Any:
    c.write(0, c.true[0])


@stranger(
    "cross-entropy-label-8-bits", "SparseSoftmaxCrossEntropyWithLogits", "labels are cut to eight bits",
    "pytorch/pytorch#164049", {"T": ("float32",), "Tlabels": ("int32",)},
)  # fmt: skip
def _(c: Call) -> Any:
    logits, labels = c.inputs
    inside = (labels >= 0) & (labels < logits.shape[1])
    return c.reference(logits, np.where(inside, labels & 0xFF, labels))


@stranger(
    "queued-momentum-nesterov",
    "ResourceApplyMomentum",
    "use_nesterov is read as its default",
    "PaddlePaddle/Paddle-Lite#880",
    attrs={"use_nesterov": True},
)
def _(c: Call) -> Any:
    return c.reference(*c.inputs, use_nesterov=False)


@stranger("adam-epsilon-floor", "ResourceApplyAdam", "epsilon is at least 1e-4", "nntrainer/nntrainer#4318")
def _(c: Call) -> Any:
    inputs = list(c.inputs)
    inputs[8] = np.maximum(inputs[8], np.float32(1e-4))
    return c.reference(*inputs)
