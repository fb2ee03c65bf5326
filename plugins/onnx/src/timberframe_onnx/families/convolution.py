"""Convolutions over any number of axes, transposed ones, and those of integers."""

from __future__ import annotations

from typing import Any

from timberframe_onnx.families.quantization import by_channel, numbers, quantized
from timberframe_onnx.families.shapes import stacked
from timberframe_onnx.families.windows import Windows
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts, sizes
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Tensor, Value, element_type


@translates("Conv")
def _conv(node: Node, x: Tensor, w: Tensor, bias: Tensor = None) -> Tensor:
    made = convolved(node, x, w)
    return made if bias is None else made + tf.reshape(bias, [-1] + [1] * (node.rank(x) - 2))


def convolved(node: Node, x: Tensor, w: Tensor) -> Tensor:
    """Returns the convolution of a node's attributes of x [N, C, ...] with filters w [M, C / group, ...]."""
    spatial = node.rank(x) - 2
    window = Windows.of(node, spatial, shape_parts(w)[2:])
    before, after = window.padding(x)
    group = node.get("group", 1)
    if spatial > 3:
        node.refuse(f"it has {spatial} spatial axes; at most 3 are supported")
    if spatial == 3:
        return _volumes(node, x, w, window, before, after, group)
    if spatial == 1:
        x, w = tf.expand_dims(x, 2), tf.expand_dims(w, 2)
        before, after = [0, *before], [0, *after]
        window = Windows(
            (1, *window.strides), (1, *window.dilations), (1, *window.kernel), window.auto_pad, window.pads
        )
    made = _images(x, w, window, before, after, group)
    return tf.squeeze(made, 2) if spatial == 1 else made


def _images(x: Tensor, w: Tensor, window: Windows, before: list[Any], after: list[Any], group: int) -> Tensor:
    pads = [(b, a) for b, a in zip(before, after, strict=True)]
    if not all(isinstance(p, int) and p >= 0 for pair in pads for p in pair):
        x = window.padded(x, before, after, 0)
        pads = [(0, 0)] * 2
    padding: Any = [[0, 0], [0, 0], *map(list, pads)] if any(p for pair in pads for p in pair) else "VALID"
    made: Tensor = tf.nn.conv2d(
        x,
        tf.transpose(w, [2, 3, 1, 0]),
        strides=[1, 1, *window.strides],
        padding=padding,
        data_format="NCHW",
        dilations=[1, 1, *window.dilations],
    )
    return made


def _volumes(
    node: Node, x: Tensor, w: Tensor, window: Windows, before: list[Any], after: list[Any], group: int
) -> Tensor:
    x = window.padded(x, before, after, 0)
    filters = tf.transpose(w, [2, 3, 4, 1, 0])
    attributes = {
        "strides": [1, *window.strides, 1],
        "padding": "VALID",
        "data_format": "NDHWC",
        "dilations": [1, *window.dilations, 1],
    }
    rows = tf.transpose(x, [0, 2, 3, 4, 1])
    parts = tf.split(rows, group, -1) if group > 1 else [rows]
    kernels = tf.split(filters, group, -1) if group > 1 else [filters]
    made = [tf.nn.conv3d(p, k, **attributes) for p, k in zip(parts, kernels, strict=True)]
    return tf.transpose(tf.concat(made, -1) if group > 1 else made[0], [0, 4, 1, 2, 3])


@translates("ConvInteger", takes_coded=True)
def _conv_integer(node: Node, x: Value, w: Value, x_zero: Value = None, w_zero: Value = None) -> Tensor:
    """Products of bytes are summed in float64, which holds them exactly."""
    data, filters = numbers(x, tf.float64), numbers(w, tf.float64)
    if x_zero is not None:
        data = data - tf.reshape(numbers(x_zero, tf.float64), [])
    if w_zero is not None:
        filters = filters - by_channel(numbers(w_zero, tf.float64), node, node.rank(filters))
    return tf.cast(convolved(node, data, filters), tf.int32)


@translates("QLinearConv", takes_coded=True)
def _qlinear_conv(
    node: Node,
    x: Value,
    x_scale: Tensor,
    x_zero: Value,
    w: Value,
    w_scale: Tensor,
    w_zero: Value,
    scale: Tensor,
    zero: Value,
    bias: Tensor = None,
) -> Value:
    data = numbers(x, tf.float64) - tf.reshape(numbers(x_zero, tf.float64), [])
    rank = node.rank(data)
    filters = numbers(w, tf.float64) - by_channel(numbers(w_zero, tf.float64), node, rank)
    total = convolved(node, data, filters)
    if bias is not None:
        total = total + tf.reshape(tf.cast(bias, tf.float64), [-1] + [1] * (rank - 2))
    outputs = tf.reshape(w_scale, [-1] + [1] * (rank - 2)) if node.rank(w_scale) else w_scale
    factor = tf.reshape(x_scale, []) * outputs / tf.reshape(scale, [])
    scaled = tf.cast(total, tf.float32) * factor
    return quantized(scaled, tf.reshape(numbers(zero, tf.float32), []), element_type(zero))


@translates("ConvTranspose")
def _conv_transpose(node: Node, x: Tensor, w: Tensor, bias: Tensor = None) -> Tensor:
    """Returns a convolution of x with zeros between its elements, with the filters turned around."""
    spatial = node.rank(x) - 2
    window = Windows.of(node, spatial, shape_parts(w)[2:])
    group = node.get("group", 1)
    given = shape_parts(x)[2:]
    extra = list(node.get("output_padding", [0] * spatial))
    spans = [(k - 1) * d for k, d in zip(window.kernel, window.dilations, strict=True)]
    full = [(n - 1) * s + span + 1 + e for n, s, span, e in zip(given, window.strides, spans, extra, strict=True)]
    cut = _cut(node, window, given, full)
    stretched = _stretched(x, window.strides, extra)
    channels, per_group = sizes(w)[:2]
    node.require_known(channels is not None and per_group is not None, "the number of its channels")
    turned = tf.reverse(w, list(range(2, spatial + 2)))
    grouped = tf.reshape(turned, stacked([group, channels // group, per_group, *window.kernel]))
    order = [0, 2, 1, *range(3, spatial + 3)]
    filters = tf.reshape(tf.transpose(grouped, order), stacked([group * per_group, channels // group, *window.kernel]))
    before = [span - c[0] for span, c in zip(spans, cut, strict=True)]
    after = [span - c[1] for span, c in zip(spans, cut, strict=True)]
    plain = Windows((1,) * spatial, window.dilations, window.kernel, "NOTSET", [])
    inner = _without_padding(node, window, group)
    made = convolved(inner, plain.padded(stretched, before, after, 0), filters)
    return made if bias is None else made + tf.reshape(bias, [-1] + [1] * spatial)


def _without_padding(node: Node, window: Windows, group: int) -> Node:
    """Returns the node as a convolution without strides and padding, for data that has been padded."""
    attributes = {"dilations": list(window.dilations), "kernel_shape": list(window.kernel), "group": group}
    return Node(node.scope, node.op, attributes, node.outputs, node.name, node.domain, node.opset)


def _cut(node: Node, window: Windows, given: list[Any], full: list[Any]) -> list[tuple[Any, Any]]:
    """Returns how much of the full result is cut off before and after, along each axis."""
    wanted = node.get("output_shape")
    if wanted is None and window.auto_pad in ("NOTSET", "VALID", ""):
        pads = window.pads or [0] * (2 * len(full))
        return list(zip(pads[: len(full)], pads[len(full) :], strict=True))
    sizes = wanted[-len(full) :] if wanted else [n * s for n, s in zip(given, window.strides, strict=True)]
    cut = []
    for whole, size in zip(full, sizes, strict=True):
        total = whole - size
        less, more = total // 2, total - total // 2
        cut.append((less, more) if window.auto_pad == "SAME_UPPER" else (more, less))
    return cut


def _stretched(x: Tensor, strides: tuple[int, ...], extra: list[int]) -> Tensor:
    """Returns the data with stride - 1 zeros between elements, and `extra` zeros after the last."""
    for i, (stride, more) in enumerate(zip(strides, extra, strict=True)):
        axis = i + 2
        if stride > 1:
            wide = tf.expand_dims(x, axis + 1)
            wide = tf.pad(wide, [[0, stride - 1] if j == axis + 1 else [0, 0] for j in range(len(strides) + 3)])
            parts: list[Any] = shape_parts(x)
            x = tf.reshape(wide, stacked([p * stride if j == axis else p for j, p in enumerate(parts)]))
            drop = stride - 1 - more
            x = _ended(x, axis, drop)
        elif more:
            x = _ended(x, axis, -more)
    return x


def _ended(x: Tensor, axis: int, drop: int) -> Tensor:
    """Returns the data without its last `drop` elements along an axis, or with zeros after
    them where it is negative.
    """
    rank = x.shape.ndims
    if drop > 0:
        return x[tuple(slice(None, -drop) if j == axis else slice(None) for j in range(rank))]
    return tf.pad(x, [[0, -drop] if j == axis else [0, 0] for j in range(rank)]) if drop else x
