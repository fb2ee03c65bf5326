"""Layers without weights that change shapes, and dropout."""

from __future__ import annotations

from typing import Any

from timberframe import layers as tf_layers
from timberframe.api.arrays import concat, reshape, shape, transpose
from timberframe.api.comparison import not_equal
from timberframe.api.framework import name_scope
from timberframe.api.indexing import gather_nd, one_hot
from timberframe.api.reduction import reduce_max
from timberframe.api.selection import where
from timberframe_contrib.contrib.framework import add_arg_scope
from timberframe_contrib.contrib.layers.base import layout
from timberframe_contrib.contrib.layers.utils import collect_named_outputs, last_dimension
from timberframe_core.dtypes import int64
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.sparse_tensor import SparseTensor


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Any:
    """All axes but the first as one."""
    with name_scope(scope, "Flatten", [inputs]) as opened:
        return collect_named_outputs(outputs_collections, opened, tf_layers.flatten(inputs))


@add_arg_scope
def inner_flatten(inputs: Any, new_rank: int, output_collections: Any = None, scope: str | None = None) -> Any:
    """The last axes as one, so that new_rank axes are left."""
    with name_scope(scope, "InnerFlatten", [inputs]) as opened:
        given = convert_to_tensor(inputs)
        rank = given.shape.ndims
        if rank is None or not 1 <= new_rank <= rank:
            raise InvalidArgumentError(
                f"tf.contrib.layers.inner_flatten: new_rank is {new_rank} for an input of shape {given.shape}; "
                "it must be 1 at least and no more than the input has axes"
            )
        sizes = given.shape.as_list()
        if None in sizes[: new_rank - 1]:
            flat = reshape(given, concat([shape(given)[: new_rank - 1], [-1]], 0))
        else:
            flat = reshape(given, [*sizes[: new_rank - 1], -1])
        return collect_named_outputs(output_collections, opened, flat)


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: str | None = None,
    seed: int | None = None,
) -> Any:
    """Dropout while training; keep_prob: the probability of keeping a value."""
    with name_scope(scope, "Dropout", [inputs]) as opened:
        layer = tf_layers.Dropout(1 - keep_prob, noise_shape, seed)
        outputs = layer(convert_to_tensor(inputs), training=is_training)
        return collect_named_outputs(outputs_collections, opened, outputs)


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: Any = 1.0,
    off_value: Any = 0.0,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """`tf.one_hot`, added to collections."""
    with name_scope(scope, "OneHotEncoding", [labels]) as opened:
        codes = one_hot(labels, num_classes, on_value, off_value)
        return collect_named_outputs(outputs_collections, opened, codes)


@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: str | None = None) -> Any:
    """Goodfellow et al. 2013: the largest of each group of channels, num_units groups along an axis."""
    with name_scope(scope, "MaxOut", [inputs]):
        given = convert_to_tensor(inputs)
        sizes: list[Any] = given.shape.as_list()
        channels = sizes[axis]
        if channels is None or channels % num_units:
            raise InvalidArgumentError(
                f"tf.contrib.layers.maxout: axis {axis} has {channels} channels; a multiple of num_units, {num_units}, "
                "is required"
            )
        sizes[axis] = num_units
        actual = shape(given)
        known = [actual[i] if size is None else size for i, size in enumerate(sizes)]
        outputs = reduce_max(reshape(given, [*known, channels // num_units]), -1)
        outputs.set_shape(sizes)
        return outputs


@add_arg_scope
def images_to_sequence(
    inputs: Any, data_format: str = "NHWC", outputs_collections: Any = None, scope: str | None = None
) -> Any:
    """Columns of images as steps in time: [width, batch * height, channels]."""
    with name_scope(scope, "ImagesToSequence", [inputs]) as opened:
        given = convert_to_tensor(inputs)
        if layout(data_format) == "channels_first":
            given = transpose(given, [0, 2, 3, 1])
        width, channels = given.shape.as_list()[2:]
        sizes: Any = shape(given)
        rows = reshape(given, [sizes[0] * sizes[1], sizes[2] if width is None else width, channels])
        return collect_named_outputs(outputs_collections, opened, transpose(rows, [1, 0, 2]))


@add_arg_scope
def sequence_to_images(
    inputs: Any,
    height: int,
    output_data_format: str = "channels_last",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The images that `images_to_sequence` made steps of; output_data_format: channels_last or channels_first."""
    with name_scope(scope, "SequenceToImages", [inputs]) as opened:
        given = convert_to_tensor(inputs)
        width, rows, channels = given.shape.as_list()
        images = reshape(
            given,
            [shape(given)[0] if width is None else width, -1 if rows is None else rows // height, height, channels],
        )
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        return collect_named_outputs(outputs_collections, opened, transpose(images, order))


@add_arg_scope
def dense_to_sparse(tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: str | None = None) -> Any:
    """The elements that are not eos_token as a SparseTensor."""
    with name_scope(scope, "dense_to_sparse", [tensor]) as opened:
        given = convert_to_tensor(tensor)
        indices = where(not_equal(given, convert_to_tensor(eos_token, given.dtype)))
        found = SparseTensor(indices, gather_nd(given, indices), shape(given, out_type=int64))
        return collect_named_outputs(outputs_collections, opened, found)


def softmax(logits: Any, scope: str | None = None) -> Any:
    """Softmax along the last axis, whose size must be known."""
    from timberframe.api.softmax import softmax as nn_softmax

    with name_scope(scope, "softmax", [logits]):
        given = convert_to_tensor(logits)
        classes = last_dimension(given.shape, 2)
        flat = nn_softmax(reshape(given, [-1, classes]))
        outputs = reshape(flat, shape(given))
        outputs.set_shape(given.static_shape)
        return outputs
