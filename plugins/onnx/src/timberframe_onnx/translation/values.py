"""Values of a model while it is translated: tensors of the graph, and what ONNX has beside tensors.

A tensor whose element type the graph has is that tensor itself. `Coded` has codes in place of its elements; `Sequence`
is a list of tensors in the graph; `Optional` is a value that may be absent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from timberframe_onnx.elements import CODED, NATIVE, element_of
from timberframe_onnx.translation.frontend import tf

Tensor = Any
"""A tensor of the graph; `Any` since the operators of `tf.Tensor` are added when the front end is loaded."""

ANY_SHAPE = -1
"""As the shape of a list's elements: any."""


@dataclass(frozen=True)
class Coded:
    """A tensor of an element type that is held as codes: uint8, one code each."""

    codes: Tensor
    element: int


@dataclass(frozen=True)
class Sequence:
    """A list of tensors (`handle`, a variant of the graph) whose elements are all of one element type."""

    handle: Tensor
    element: int

    @classmethod
    def empty(cls, element: int) -> Sequence:
        """Returns the list without elements."""
        dtype = tf.uint8 if element in CODED else NATIVE[element]
        made = tf.raw_ops.EmptyTensorList(
            element_shape=tf.constant(ANY_SHAPE), max_num_elements=tf.constant(-1), element_dtype=dtype
        )
        return cls(made, element)

    @property
    def dtype(self) -> Any:
        """The dtype of the elements in the graph."""
        return tf.uint8 if self.element in CODED else NATIVE[self.element]

    def length(self) -> Tensor:
        """Returns the number of elements, an int32 scalar."""
        return tf.raw_ops.TensorListLength(input_handle=self.handle)

    def push(self, value: Value) -> Sequence:
        """Returns the list with one more element at its end."""
        tensor = contents(value)
        return Sequence(tf.raw_ops.TensorListPushBack(input_handle=self.handle, tensor=tensor), self.element)

    def tensor_at(self, position: Tensor) -> Tensor:
        """Returns what the graph holds of the element at an int32 position, which is not negative."""
        return tf.raw_ops.TensorListGetItem(
            input_handle=self.handle, index=position, element_shape=tf.constant(ANY_SHAPE), element_dtype=self.dtype
        )

    def at(self, position: Tensor) -> Value:
        """Returns the element at a position; negative ones count from the end."""
        position = tf.cast(position, tf.int32)
        return wrapped(self.tensor_at(tf.where_v2(position < 0, position + self.length(), position)), self.element)

    def map(self, count: Tensor, value_at: Callable[[Tensor], Tensor]) -> Sequence:
        """Returns the list of `value_at(0)` to `value_at(count - 1)`, which are what the graph holds of elements."""

        def add(i: Tensor, handle: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1, tf.raw_ops.TensorListPushBack(input_handle=handle, tensor=value_at(i))

        start = (tf.constant(0), Sequence.empty(self.element).handle)
        _, handle = tf.while_loop(lambda i, _: i < count, add, start)
        return Sequence(handle, self.element)


@dataclass(frozen=True)
class Optional:
    """A value that may be absent: `present` is a bool scalar of the graph. `value` is None where it is never there."""

    present: Tensor
    value: Value | None


@dataclass(frozen=True)
class Maps:
    """A list of maps from the same keys to numbers: a row of `scores` for each map, a column for each key."""

    scores: Tensor
    keys: tuple[str | int, ...]


Value = Any
"""A tensor of the graph, Coded, Sequence, Optional, Maps, or None for an input that is left out."""


def contents(value: Value) -> Tensor:
    """Returns what the graph holds of a tensor, codes included."""
    return value.codes if isinstance(value, Coded) else value


def wrapped(tensor: Tensor, element: int) -> Value:
    """Returns the tensor of an element type that the graph holds as `tensor`."""
    return Coded(tensor, element) if element in CODED else tensor


def element_type(value: Value) -> int:
    """Returns the element type of a tensor or of a list's elements."""
    if isinstance(value, Coded | Sequence):
        return value.element
    if isinstance(value, Optional):
        return element_type(value.value)
    return element_of(value.dtype)
