"""Nodes of older opsets, in the form that translators take: attributes that became inputs, defaults that changed.

An upgrade is entered for the ops that changed in an opset; it gets a node of an older one, changes its attributes and
returns its inputs. onnx's version converter does the same to whole models, but copies their weights and knows neither
functions nor other domains; so nodes are upgraded one by one, in functions' bodies, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.values import Value

Upgrade = Callable[[Node, list[Value]], list[Value]]
_UPGRADES: dict[str, list[tuple[int, Upgrade]]] = {}


def upgrades(*ops: str, to: int) -> Callable[[Upgrade], Upgrade]:
    """Enters a function as the upgrade of ops of ONNX's default domain to the opset `to`."""

    def enter(function: Upgrade) -> Upgrade:
        for op in ops:
            _UPGRADES.setdefault(op, []).append((to, function))
        return function

    return enter


def upgraded(node: Node, inputs: list[Value]) -> tuple[Node, list[Value]]:
    """Returns the node and its inputs in the newest form that is known."""
    if node.domain == "":
        for to, upgrade in sorted(_UPGRADES.get(node.op, ()), key=lambda entry: entry[0]):
            if node.opset < to:
                inputs = upgrade(node, list(inputs))
    return node, inputs


def _input(values: Any, dtype: Any = tf.int64) -> Value:
    return tf.constant(np.array(values, dtype.numpy), dtype)


def _appended(node: Node, inputs: list[Value], attribute: str, position: int, dtype: Any = tf.int64) -> list[Value]:
    """Returns the inputs, with the value of an attribute at a position if it is there."""
    if attribute in node.attributes:
        inputs += [None] * (position + 1 - len(inputs))
        inputs[position] = _input(node.attributes.pop(attribute), dtype)
    return inputs


@upgrades("Squeeze", "Unsqueeze", "ReduceSum", to=13)
@upgrades(
    "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
    "ReduceSumSquare", to=18,
)  # fmt: skip
def _axes_as_input(node: Node, inputs: list[Value]) -> list[Value]:
    return _appended(node, inputs, "axes", 1)


@upgrades("Softmax", "LogSoftmax", "Hardmax", to=13)
def _flattening_softmax(node: Node, inputs: list[Value]) -> list[Value]:
    """Before opset 13 the axes from `axis` on were one."""
    node.attributes.setdefault("axis", 1)
    node.attributes["flattens"] = 1
    return inputs


@upgrades("Split", to=13)
def _split_sizes(node: Node, inputs: list[Value]) -> list[Value]:
    return _appended(node, inputs, "split", 1)


@upgrades("Slice", to=10)
def _slice_inputs(node: Node, inputs: list[Value]) -> list[Value]:
    for i, attribute in enumerate(("starts", "ends", "axes")):
        inputs = _appended(node, inputs, attribute, i + 1)
    return inputs


@upgrades("Clip", to=11)
def _clip_bounds(node: Node, inputs: list[Value]) -> list[Value]:
    inputs = _appended(node, inputs, "min", 1, inputs[0].dtype)
    return _appended(node, inputs, "max", 2, inputs[0].dtype)


@upgrades("Pad", to=11)
def _pad_inputs(node: Node, inputs: list[Value]) -> list[Value]:
    if "paddings" in node.attributes:  # opset 1
        node.attributes["pads"] = node.attributes.pop("paddings")
    inputs = _appended(node, inputs, "pads", 1)
    return _appended(node, inputs, "value", 2, inputs[0].dtype)


@upgrades("TopK", to=10)
def _count_as_input(node: Node, inputs: list[Value]) -> list[Value]:
    return _appended(node, inputs, "k", 1)


@upgrades("Upsample", to=9)
def _scales_as_input(node: Node, inputs: list[Value]) -> list[Value]:
    return _appended(node, inputs, "scales", 1, tf.float32)


@upgrades("Upsample", to=10)
def _upsample_as_resize(node: Node, inputs: list[Value]) -> list[Value]:
    node.op = "Resize"
    return _resize_regions(node, inputs)


@upgrades("Resize", to=11)
def _resize_regions(node: Node, inputs: list[Value]) -> list[Value]:
    """Opset 10 had neither regions nor ways to compute coordinates: they began at the edges of pixels."""
    node.attributes.update(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return [inputs[0], None, inputs[1]]


@upgrades("Dropout", to=12)
def _dropout_inputs(node: Node, inputs: list[Value]) -> list[Value]:
    node.attributes.pop("is_test", None)
    return _appended(node, inputs, "ratio", 1, tf.float32)


@upgrades("BatchNormalization", to=9)
def _batch_normalization_by_image(node: Node, inputs: list[Value]) -> list[Value]:
    node.require(
        node.attributes.pop("spatial", 1) == 1, "its statistics are for each element (spatial=0); that is gone"
    )
    return inputs


@upgrades("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater", "Less", "Pow", to=7)
def _limited_broadcast(node: Node, inputs: list[Value]) -> list[Value]:
    """Before opset 7 the second input was broadcast from `axis` on, and only where an attribute said so."""
    axis = node.attributes.pop("axis", None)
    if node.attributes.pop("broadcast", 0) and axis is not None:
        missing = node.rank(inputs[0]) - axis % node.rank(inputs[0]) - node.rank(inputs[1], "second input")
        for _ in range(missing):
            inputs[1] = tf.expand_dims(inputs[1], -1)
    return inputs


@upgrades("Gemm", to=7)
def _gemm_broadcast(node: Node, inputs: list[Value]) -> list[Value]:
    node.attributes.pop("broadcast", None)
    return inputs


@upgrades("GroupNormalization", to=21)
def _parameters_of_channels(node: Node, inputs: list[Value]) -> list[Value]:
    """Before opset 21 scale and bias had one value for each group."""
    node.attributes["by_group"] = 1
    return inputs


@upgrades("Scan", to=9)
def _scan_over_batches(node: Node, inputs: list[Value]) -> list[Value]:
    node.attributes["batched"] = 1
    return inputs


@upgrades("Reshape", to=5)
def _shape_as_input(node: Node, inputs: list[Value]) -> list[Value]:
    return _appended(node, inputs, "shape", 1)


@upgrades("Tile", to=6)
def _tile_along_axis(node: Node, inputs: list[Value]) -> list[Value]:
    data, tiles, axis = inputs
    rank = node.rank(data)
    along = tf.one_hot(tf.cast(tf.reshape(axis, []), tf.int64), rank, dtype=tf.int64)
    return [data, 1 + along * (tf.cast(tf.reshape(tiles, []), tf.int64) - 1)]


@upgrades("Cast", to=6)
def _cast_to_name(node: Node, inputs: list[Value]) -> list[Value]:
    if isinstance(node.get("to"), str):
        node.attributes["to"] = TensorProto.DataType.Value(node.get("to"))
    return inputs


@upgrades("PRelu", to=7)
def _slope_of_channels(node: Node, inputs: list[Value]) -> list[Value]:
    """Before opset 7 a slope was for each channel, whatever followed channels."""
    x, slope = inputs
    if node.rank(slope, "slope") == 1 and node.rank(x) > 2:
        slope = tf.reshape(slope, [-1] + [1] * (node.rank(x) - 2))
    return [x, slope]
