"""Summaries of tensors under the names of their operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from timberframe import summary
from timberframe.api.comparison import greater, less
from timberframe.api.framework import GraphKeys, get_collection
from timberframe.api.reduction import reduce_mean
from timberframe.api.selection import cast
from timberframe_core.dtypes import float32
from timberframe_core.graph.apply import convert_to_tensor


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """Returns a scalar summary of a scalar, a histogram of any other numbers, and None for strings and bools."""
    if tensor.dtype.base_dtype.name in ("string", "bool"):
        return None
    write = summary.scalar if tensor.shape.ndims == 0 else summary.histogram
    return write(tag or f"{tensor.op.name}_summary", tensor)


def summarize_tensors(tensors: Sequence[Any], summarizer: Callable[[Any], Any] = summarize_tensor) -> list[Any]:
    """Returns a summary of each tensor."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_activation(op: Any) -> Any:
    """Returns a histogram of a layer's outputs; of rectifiers also how many of their inputs
    are below 0, and above 6.
    """
    name = op.op.name
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        summary.scalar(f"{name}/zeros", _part(less, op.op.inputs[0], 0.0))
    if op.op.type == "Relu6":
        summary.scalar(f"{name}/sixes", _part(greater, op.op.inputs[0], 6.0))
    return summary.histogram(f"{name}/activation", op)


def _part(compare: Callable[..., Any], x: Any, limit: float) -> Any:
    return reduce_mean(cast(compare(x, convert_to_tensor(limit, x.dtype)), float32))


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """Returns a summary of each tensor of a collection; name_filter: a regular expression that its name begins with."""
    found = get_collection(collection)
    return summarize_tensors(
        [t for t in found if name_filter is None or re.match(name_filter, t.op.name)], summarizer
    )  # fmt: skip


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """`summarize_collection` of GraphKeys.ACTIVATIONS."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)
