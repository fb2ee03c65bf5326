"""Functions that add summaries to a graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from timberframe.api.framework import GraphKeys, add_to_collections, get_collection, name_scope
from timberframe_core.dtypes import float32, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor
from timberframe_core.graphdef import messages

__all__ = ["audio", "histogram", "image", "merge", "merge_all", "scalar", "tensor_summary", "text"]


@contextmanager
def _scope(name: str, family: str | None, values: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Tag and node name of a summary: both from the name scope, the tag with the family before it."""
    group = "" if family is None else f"{_usable(family)}/"
    with name_scope(f"{group}{_usable(name)}", None, values) as scope:
        yield group + scope.rstrip("/"), scope


def _usable(name: str) -> str:
    """Returns the name with `_` for what names of nodes cannot have, as TensorFlow makes it."""
    return re.sub(r"[^-/\w.]", "_", name).lstrip("/")


def _collected(summary: Tensor, collections: Sequence[str] | None) -> Tensor:
    add_to_collections(list(collections) if collections is not None else [GraphKeys.SUMMARIES], summary)
    return summary


def scalar(name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Tensor:
    """Returns a summary of one number, to be shown as a curve.

    name: of the node; with the scopes around it, the tag. collections: [GraphKeys.SUMMARIES] if None. family: is put
    before the tag, by which TensorBoard groups. The result is a serialised Summary for `FileWriter.add_summary`.
    """
    with _scope(name, family, [tensor]) as (tag, scope):
        return _collected(apply_op("ScalarSummary", [tag, tensor], None, scope), collections)


def histogram(name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None) -> Tensor:
    """Returns a summary of the distribution of values, which must be finite. The arguments are those of `scalar`."""
    with _scope(name, family, [values]) as (tag, scope):
        return _collected(apply_op("HistogramSummary", [tag, values], None, scope), collections)


def image(
    name: str,
    tensor: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """Returns a summary of images [batch, height, width, channels] with 1, 3 or 4 channels, uint8 or floats.

    max_outputs: how many of the batch. Floats are scaled to [0, 255]. The other arguments are those of `scalar`.
    """
    with _scope(name, family, [tensor]) as (tag, scope):
        attrs = {"max_images": max_outputs, "bad_color": np.array([255, 0, 0, 255], np.uint8)}
        return _collected(apply_op("ImageSummary", [tag, tensor], attrs, scope), collections)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """Returns a summary of sounds [batch, frames(, channels)] in [-1, 1].

    sample_rate: in hertz; others as in `image`.
    """
    with _scope(name, family, [tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, float32, "sample_rate")
        made = apply_op("AudioSummaryV2", [tag, tensor, rate], {"max_outputs": max_outputs}, scope)
        return _collected(made, collections)


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: Any = None,
    collections: Sequence[str] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """Returns a summary of any tensor. summary_metadata: which plugin of TensorBoard shows it."""
    metadata = messages.SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(messages.as_message(summary_metadata, messages.SummaryMetadata, "tensor_summary"))
    if display_name is not None:
        metadata.display_name = display_name
    if summary_description is not None:
        metadata.summary_description = str(summary_description)
    with _scope(name, family, [tensor]) as (tag, scope):
        inputs = [tag, tensor, convert_to_tensor(metadata.SerializeToString())]
        return _collected(apply_op("TensorSummaryV2", inputs, None, scope), collections)


def text(name: str, tensor: Any, collections: Sequence[str] | None = None) -> Tensor:
    """Returns a summary of strings, which TensorBoard shows as Markdown."""
    given = convert_to_tensor(tensor)
    if given.dtype != string:
        raise InvalidArgumentError(f"tf.summary.text: tensor has dtype {given.dtype.name}; string is required")
    metadata = messages.SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, given, collections=collections, summary_metadata=metadata)


def merge(inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None) -> Tensor:
    """Returns one summary with the values of several, whose tags must differ."""
    with name_scope(name, "Merge", inputs) as scope:
        made = apply_op("MergeSummary", [list(inputs)], None, scope)
        return made if collections is None else _collected(made, collections)


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """`merge` of all summaries of a collection, those in a scope where it is given; None where there are none."""
    found = get_collection(key, scope)
    return merge(found, name=name) if found else None
