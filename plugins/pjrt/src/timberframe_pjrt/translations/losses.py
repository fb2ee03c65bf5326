"""Softmax, and losses made of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from timberframe_ops.nn.cross_entropy import LABEL_OUTSIDE
from timberframe_pjrt.checks import Check, outside_row
from timberframe_pjrt.translations.table import FLOATS, in_float32, translation
from timberframe_sdk import KernelNode

_T = {"T": FLOATS}


@translation("Softmax", _T)
@in_float32
def softmax(node: KernelNode, x: Any) -> Any:
    """Returns exp(x) over its sum, along the last axis."""
    return jax.nn.softmax(x, -1)


@translation("LogSoftmax", _T)
@in_float32
def log_softmax(node: KernelNode, x: Any) -> Any:
    """Returns the logarithm of softmax."""
    return jax.nn.log_softmax(x, -1)


def _label_row(node: KernelNode, logits: Any, labels: Any) -> Any:
    return outside_row(labels, logits.shape[1])


def _label_message(node: KernelNode, label: int, row: int) -> str:
    return LABEL_OUTSIDE.format(label, row, node.inputs[0].shape[1])


@translation(
    "SparseSoftmaxCrossEntropyWithLogits",
    {"T": FLOATS, "Tlabels": ("int32", "int64")},
    check=Check(_label_row, _label_message),
)
@in_float32
def sparse_cross_entropy(node: KernelNode, logits: Any, labels: Any) -> list[Any]:
    """Returns the loss of each row, and its gradient by the logits."""
    rows, classes = logits.shape
    if not rows or not classes:
        return [jnp.zeros(rows, logits.dtype), jnp.asarray(logits)]
    logs = jax.nn.log_softmax(logits, -1)
    wanted = jax.nn.one_hot(labels, classes, dtype=logits.dtype)
    loss = -jnp.take_along_axis(logs, jnp.asarray(labels)[:, None], 1, mode="clip")[:, 0]
    return [loss, jnp.exp(logs) - wanted]
