"""Lists of tensors, and values that may be absent."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto

from timberframe_onnx.elements import CODED, NATIVE
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.node import Node
from timberframe_onnx.translation.registry import translates
from timberframe_onnx.translation.values import Optional, Sequence, Tensor, Value, contents, element_type, wrapped


@translates("SequenceEmpty")
def _empty(node: Node) -> Sequence:
    return Sequence.empty(node.get("dtype", TensorProto.FLOAT))


@translates("SequenceConstruct", takes_coded=True)
def _construct(node: Node, *inputs: Value) -> Sequence:
    made = Sequence.empty(element_type(inputs[0]))
    for value in inputs:
        made = made.push(value)
    return made


@translates("SequenceLength")
def _length(node: Node, sequence: Sequence) -> Tensor:
    return tf.cast(sequence.length(), tf.int64)


@translates("SequenceAt")
def _at(node: Node, sequence: Sequence, position: Tensor) -> Value:
    return sequence.at(tf.reshape(position, []))


def _place(sequence: Sequence, position: Tensor | None, otherwise: Tensor) -> Tensor:
    if position is None:
        return otherwise
    place = tf.cast(tf.reshape(position, []), tf.int32)
    return tf.where_v2(place < 0, place + sequence.length(), place)


@translates("SequenceInsert", takes_coded=True)
def _insert(node: Node, sequence: Sequence, tensor: Value, position: Tensor = None) -> Sequence:
    if position is None:
        return sequence.push(tensor)
    count = sequence.length()
    place = _place(sequence, position, count)
    added = contents(tensor)

    def element(i: Tensor) -> Tensor:
        return tf.cond(tf.equal(i, place), lambda: added, lambda: sequence.tensor_at(i - tf.cast(i > place, tf.int32)))

    return sequence.map(count + 1, element)


@translates("SequenceErase")
def _erase(node: Node, sequence: Sequence, position: Tensor = None) -> Sequence:
    count = sequence.length()
    place = _place(sequence, position, count - 1)
    return sequence.map(count - 1, lambda i: sequence.tensor_at(i + tf.cast(i >= place, tf.int32)))


@translates("SplitToSequence", takes_coded=True)
def _split_to_sequence(node: Node, value: Value, split: Tensor = None) -> Sequence:
    x = contents(value)
    axis = node.get("axis", 0)
    rank = node.rank(x)
    axis %= rank
    size = tf.shape(x)[axis]
    empty = Sequence.empty(element_type(value))
    if split is None:
        drop = not node.get("keepdims", 1)

        def one(i: Tensor) -> Tensor:
            taken = tf.gather(x, i, axis=axis)
            return taken if drop else tf.expand_dims(taken, axis)

        return empty.map(size, one)
    if node.rank(split) == 0:
        each = tf.cast(split, tf.int32)
        count = (size + each - 1) // each
        return empty.map(count, lambda i: tf.gather(x, tf.range(i * each, tf.minimum((i + 1) * each, size)), axis=axis))
    lengths = tf.cast(split, tf.int32)
    ends = tf.cumsum(lengths)
    return empty.map(tf.size(lengths), lambda i: tf.gather(x, tf.range(ends[i] - lengths[i], ends[i]), axis=axis))


@translates("ConcatFromSequence")
def _concat_from_sequence(node: Node, sequence: Sequence) -> Value:
    """Joins elements one by one: their sizes along the axis may differ."""
    axis, added = node.get("axis"), node.get("new_axis", 0)

    def part(i: Any) -> Tensor:
        element = sequence.tensor_at(i)
        return tf.expand_dims(element, axis) if added else element

    _, joined = tf.while_loop(
        lambda i, _: i < sequence.length(),
        lambda i, whole: (i + 1, _unknown(tf.concat([whole, part(i)], axis))),
        (tf.constant(1), _unknown(part(0))),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape(None)),
    )
    return wrapped(joined, sequence.element)


def _unknown(x: Tensor) -> Tensor:
    """Returns the tensor, without what is known of its shape."""
    return tf.placeholder_with_default(x, None)


@translates("Optional", takes_coded=True)
def _optional(node: Node, value: Value = None) -> Optional:
    if value is not None:
        return Optional(tf.constant(True), value)
    proto = node.get("type")
    node.require(proto is not None, "it has neither an input nor a type")
    if proto.HasField("sequence_type"):
        return Optional(tf.constant(False), Sequence.empty(proto.sequence_type.elem_type.tensor_type.elem_type))
    element = proto.tensor_type.elem_type
    dtype = tf.uint8 if element in CODED else NATIVE[element]
    return Optional(
        tf.constant(False), wrapped(tf.zeros([d.dim_value for d in proto.tensor_type.shape.dim], dtype), element)
    )


@translates("OptionalHasElement", takes_coded=True)
def _has_element(node: Node, value: Value = None) -> Tensor:
    if value is None:
        return tf.constant(False)
    return tf.identity(value.present) if isinstance(value, Optional) else tf.constant(True)


@translates("OptionalGetElement", takes_coded=True)
def _get_element(node: Node, value: Value) -> Value:
    return value.value if isinstance(value, Optional) else value
