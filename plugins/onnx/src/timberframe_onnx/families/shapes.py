"""Ops that move elements by shape: reshape, transpose, join, split, repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from timberframe_onnx.elements import NATIVE, element_of
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node, shape_parts, sizes, static
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Coded, Optional, Sequence, Tensor, Value, contents, wrapped


def stacked(parts: list[Any], dtype: Any = tf.int64) -> Any:
    """Returns sizes as a shape: an array where all are numbers, else a vector of the graph."""
    if all(isinstance(p, int | np.integer) for p in parts):
        return np.array(parts, dtype.numpy).reshape(len(parts))
    return tf.stack([tf.cast(p, dtype) if isinstance(p, tf.Tensor) else tf.constant(int(p), dtype) for p in parts])


def dynamic_shape(x: Tensor) -> Tensor:
    """Returns the shape of a tensor as an int64 vector of the graph."""
    return tf.shape(x, out_type=tf.int64)


@translates("Identity", takes_coded=True)
def _identity(node: Node, x: Value) -> Value:
    if isinstance(x, Sequence | Optional):
        return x
    made = tf.identity(contents(x))
    return Coded(made, x.element) if isinstance(x, Coded) else made


@translates("Shape", takes_coded=True)
def _shape(node: Node, x: Value) -> Tensor:
    start, end = node.get("start", 0), node.get("end")
    shape = dynamic_shape(contents(x))
    return shape if start == 0 and end is None else shape[start:end]


@translates("Size", takes_coded=True)
def _size(node: Node, x: Value) -> Tensor:
    return tf.size(contents(x), out_type=tf.int64)


@translates("Reshape", moves=True)
def _reshape(node: Node, x: Tensor, shape: Tensor) -> Tensor:
    known = static(shape)
    if node.get("allowzero", 0):
        return tf.reshape(x, shape)
    if known is not None:
        if 0 not in known:
            return tf.reshape(x, known)
        parts = [dynamic_shape(x)[i] if d == 0 else int(d) for i, d in enumerate(known.tolist())]
        inside = x.shape.as_list() if x.shape.ndims is not None else []
        for i, d in enumerate(known.tolist()):
            if d == 0 and i < len(inside) and inside[i] is not None:
                parts[i] = inside[i]
        return tf.reshape(x, stacked(parts))
    count = sizes(shape)[0]
    copied = dynamic_shape(x)
    if count is not None and x.shape.ndims is not None:
        copied = tf.pad(copied[:count], [[0, max(0, count - x.shape.ndims)]])
    else:
        missing = tf.maximum(tf.size(shape) - tf.rank(x), 0)
        copied = tf.pad(copied, [[0, missing]])[: tf.size(shape)]
    return tf.reshape(x, tf.where_v2(tf.equal(shape, tf.constant(0, tf.int64)), copied, shape))


@translates("Flatten", moves=True)
def _flatten(node: Node, x: Tensor) -> Tensor:
    axis = node.get("axis", 1)
    parts = shape_parts(x, tf.int64)
    axis = axis + len(parts) if axis < 0 else axis
    rows = product(parts[:axis])
    if all(isinstance(p, int) for p in parts):
        return tf.reshape(x, [rows, product(parts[axis:])])
    return tf.reshape(x, stacked([rows, product(parts[axis:])]))


def product(parts: list[Any]) -> Any:
    """Returns the product of sizes: a number where all are known."""
    found: Any = 1
    for p in parts:
        found = p if isinstance(found, int) and found == 1 else found * p
    return found


@translates("Transpose", moves=True)
def _transpose(node: Node, x: Tensor) -> Tensor:
    return tf.transpose(x, node.get("perm"))


@translates("Squeeze", moves=True)
def _squeeze(node: Node, x: Tensor, axes: Tensor = None) -> Tensor:
    if axes is None:
        return tf.squeeze(x)
    known = static(axes)
    if known is not None:
        return tf.squeeze(x, known.tolist()) if len(known) else tf.identity(x)
    rank = node.rank(x)
    dropped = tf.reduce_any(tf.equal(tf.range(rank)[:, None], tf.cast(axes, tf.int32) % rank), 1)
    shape = tf.boolean_mask(dynamic_shape(x), tf.logical_not(dropped))
    count = sizes(axes)[0]
    if count is not None:
        shape.set_shape([rank - count])
    return tf.reshape(x, shape)


@translates("Unsqueeze", moves=True)
def _unsqueeze(node: Node, x: Tensor, axes: Tensor) -> Tensor:
    known = static(axes)
    if known is not None:
        rank = node.rank(x) + known.size
        for axis in sorted(int(a) % rank if rank else 0 for a in known.ravel()):
            x = tf.expand_dims(x, axis)
        return tf.identity(x) if known.size == 0 else x
    count = sizes(axes)[0] if axes.shape.ndims else 1
    node.require_known(count is not None, "the number of its axes")
    rank = node.rank(x) + int(count or 0)
    added = tf.reduce_any(tf.equal(tf.range(rank)[:, None], tf.cast(tf.reshape(axes, [1, -1]), tf.int32) % rank), 1)
    # The sizes that stay are taken in order: how many there are before each place says which.
    place = tf.cumsum(1 - tf.cast(added, tf.int32)) - 1
    known_sizes = tf.concat([dynamic_shape(x), tf.ones([1], tf.int64)], 0)
    shape = tf.where_v2(added, tf.ones([rank], tf.int64), tf.gather(known_sizes, tf.maximum(place, 0)))
    return tf.reshape(x, shape)


@translates("Expand", moves=True)
def _expand(node: Node, x: Tensor, shape: Tensor) -> Tensor:
    known = static(shape)
    if known is not None and x.shape.is_fully_defined():
        return tf.broadcast_to(x, np.broadcast_shapes(tuple(sizes(x)), tuple(known.tolist())))  # type: ignore[arg-type]
    return tf.broadcast_to(x, tf.broadcast_dynamic_shape(dynamic_shape(x), tf.cast(shape, tf.int64)))


@translates("Tile", moves=True)
def _tile(node: Node, x: Tensor, repeats: Tensor) -> Tensor:
    return tf.tile(x, repeats)


@translates("Concat", takes_coded=True)
def _concat(node: Node, *inputs: Value) -> Value:
    made = tf.concat([contents(v) for v in inputs], node.get("axis"))
    return wrapped(made, inputs[0].element) if isinstance(inputs[0], Coded) else made


@translates("Split", moves=True)
def _split(node: Node, x: Tensor, split: Tensor = None) -> list[Tensor]:
    axis = node.get("axis", 0)
    node.rank(x)
    count = len(node.outputs)
    if split is not None:
        known = static(split)
        return list(tf.split(x, split if known is None else known.tolist(), axis, num=count))
    size = shape_parts(x)[axis]
    if isinstance(size, int):
        each = -(-size // count)
        parts = [max(0, min(each, size - i * each)) for i in range(count)]
    else:
        each = (size + count - 1) // count
        parts = stacked([tf.maximum(0, tf.minimum(each, size - i * each)) for i in range(count)], tf.int32)
    return list(tf.split(x, parts, axis, num=count))


@translates("ConstantOfShape", takes_coded=True)
def _constant_of_shape(node: Node, shape: Tensor) -> Value:
    value = node.get("value")
    if value is None:
        return tf.fill(shape, tf.constant(0.0))
    constant = node.scope.constant(value)
    made = tf.fill(shape, tf.reshape(contents(constant), []))
    return wrapped(made, constant.element) if isinstance(constant, Coded) else made


@translates("Constant")
def _constant(node: Node) -> Value:
    for name, dtype in (
        ("value_float", tf.float32),
        ("value_int", tf.int64),
        ("value_floats", tf.float32),
        ("value_ints", tf.int64),
    ):
        if name in node.attributes:
            return tf.constant(np.array(node.get(name), dtype.numpy), dtype)
    for name in ("value_string", "value_strings"):
        if name in node.attributes:
            found = node.get(name)
            texts = [t.encode("utf-8", "surrogateescape") for t in ([found] if isinstance(found, str) else found)]
            array = np.empty(len(texts), object)
            array[:] = texts
            return tf.constant(array if name == "value_strings" else texts[0], tf.string)
    value = node.get("value", node.get("sparse_value"))
    node.require(value is not None, "it has no value")
    return node.scope.constant(value)


def _blocks(node: Node, x: Tensor, apart: bool) -> Tensor:
    """Moves blocks between channels and space; CRD has the channel before the block's place, DCR after it."""
    size, mode = node.get("blocksize"), node.get("mode", "DCR")
    n, c, h, w = shape_parts(x)
    if apart:
        inner = [n, c, h // size, size, w // size, size]
        order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
        outer = [n, c * size * size, h // size, w // size]
    else:
        inside = [size, size, c // (size * size)] if mode == "DCR" else [c // (size * size), size, size]
        inner = [n, *inside, h, w]
        order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
        outer = [n, c // (size * size), h * size, w * size]
    return tf.reshape(tf.transpose(tf.reshape(x, stacked(inner)), order), stacked(outer))


@translates("DepthToSpace", moves=True)
def _depth_to_space(node: Node, x: Tensor) -> Tensor:
    return _blocks(node, x, apart=False)


@translates("SpaceToDepth", moves=True)
def _space_to_depth(node: Node, x: Tensor) -> Tensor:
    return _blocks(node, x, apart=True)


@translates("Range")
def _range(node: Node, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    dtype = start.dtype
    start, limit, delta = (tf.reshape(v, []) for v in (start, limit, delta))
    if dtype in (tf.float16, tf.bfloat16, tf.int16):
        wide = tf.int32 if dtype == tf.int16 else tf.float32
        return tf.cast(tf.range(*(tf.cast(v, wide) for v in (start, limit, delta))), dtype)
    return tf.range(start, limit, delta)


@translates("EyeLike")
def _eye_like(node: Node, x: Tensor) -> Tensor:
    rows, columns = tf.unstack(tf.shape(x), num=2)
    dtype = NATIVE[node.get("dtype", element_of(x.dtype))]
    return tf.cast(tf.equal(tf.range(rows)[:, None] + node.get("k", 0), tf.range(columns)), dtype)


@translates("Trilu", moves=True)
def _trilu(node: Node, x: Tensor, k: Tensor = None) -> Tensor:
    shape = tf.shape(x)
    offset = tf.constant(0) if k is None else tf.cast(tf.reshape(k, []), tf.int32)
    distance = tf.range(shape[-1]) - tf.range(shape[-2])[:, None]
    kept = distance >= offset if node.get("upper", 1) else distance <= offset
    return tf.where_v2(kept, x, tf.zeros_like(x))


@translates("ReverseSequence", moves=True)
def _reverse_sequence(node: Node, x: Tensor, lengths: Tensor) -> Tensor:
    return tf.reverse_sequence(x, lengths, seq_axis=node.get("time_axis", 0), batch_axis=node.get("batch_axis", 1))
