"""Inputs and outputs of a model: names, types, and how they are fed to a graph and fetched from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx.elements import CODED, NATIVE, Array, element_of, held, name_of, numpy_type, shown
from timberframe_onnx.errors import InvalidModelError
from timberframe_onnx.translation.frontend import tf
from timberframe_onnx.translation.values import (
    Coded,
    Maps,
    Optional,
    Sequence,
    Tensor,
    Value,
    contents,
    element_type,
    wrapped,
)

TENSOR, SEQUENCE, OPTIONAL, MAPS = "tensor", "sequence", "optional", "maps"


@dataclass(frozen=True)
class Port:
    """An input or output of a model.

    kind: "tensor", "sequence" (a list of tensors), "maps" (a list of maps from labels to numbers, of outputs alone) or
    "optional" (a tensor or list, or None). of_lists: whether an
    optional has a list. element: ONNX's element type. shape: a size, the name of a size or None for each dimension;
    None where the rank is unknown.
    """

    name: str
    kind: str
    element: int
    shape: tuple[int | str | None, ...] | None
    of_lists: bool = False

    def __str__(self) -> str:
        sizes = "?" if self.shape is None else ",".join("?" if d is None else str(d) for d in self.shape)
        text = f"{name_of(self.element).lower()}[{sizes}]"
        for kind in ("sequence",) * self.is_list, ("optional",) * (self.kind == OPTIONAL):
            text = f"{kind[0]}({text})" if kind else text
        return f"{self.name}: {text}"

    @property
    def is_list(self) -> bool:
        """Whether it is a list of tensors, or an optional one."""
        return self.kind == SEQUENCE or self.of_lists

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type of its elements."""
        return numpy_type(self.element)

    def sizes(self) -> list[int | None] | None:
        """Returns the shape, with None for sizes that are known only when the model runs."""
        return None if self.shape is None else [d if isinstance(d, int) else None for d in self.shape]

    def array(self, value: Any) -> Array:
        """Returns what a graph is fed for a tensor; raises InvalidArgumentError where type or shape do not suit."""
        array = np.asarray(value)
        if array.dtype != self.numpy:
            loses_nothing = self.element != onnx.TensorProto.STRING and not isinstance(value, np.ndarray)
            if self.element == onnx.TensorProto.STRING and array.dtype.kind in "USO":
                array = array.astype(object)
            elif loses_nothing and np.can_cast(array.dtype, self.numpy, "same_kind"):
                array = array.astype(self.numpy)
            else:
                raise InvalidArgumentError(f"input '{self.name}' is of type {array.dtype}; it must be {self.numpy}")
        if self.shape is not None and not self.is_list:
            fits = len(self.shape) == array.ndim
            fits = fits and all(not isinstance(d, int) or d == n for d, n in zip(self.shape, array.shape, strict=True))
            if not fits:
                raise InvalidArgumentError(f"input '{self.name}' has shape {list(array.shape)}; the model takes {self}")
        return held(array, self.element)


def port_of(info: onnx.ValueInfoProto, what: str) -> Port:
    """Returns the input or output that a model declares."""
    if not isinstance(info.name, str):
        raise InvalidModelError(f"an {what} has the name {info.name}; names must be UTF-8")
    kind, of_lists, proto = TENSOR, False, info.type
    if proto.HasField("optional_type"):
        kind, proto = OPTIONAL, proto.optional_type.elem_type
    if proto.HasField("sequence_type"):
        of_lists, proto = kind == OPTIONAL, proto.sequence_type.elem_type
        kind = kind if kind == OPTIONAL else SEQUENCE
    if kind == SEQUENCE and what == "output" and proto.HasField("map_type"):
        kind, proto = MAPS, proto.map_type.value_type
    if not proto.HasField("tensor_type"):
        other = proto.WhichOneof("value") or "no type"
        raise InvalidModelError(
            f"{what} '{info.name}' is of {other}; tensors, and lists and options of them, are taken"
        )
    tensor = proto.tensor_type
    if tensor.elem_type not in NATIVE and tensor.elem_type not in CODED:
        raise InvalidModelError(f"{what} '{info.name}' is of element type {tensor.elem_type}; that is no element type")
    shape: tuple[int | str | None, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(_size(d) for d in tensor.shape.dim)
    return Port(info.name, kind, tensor.elem_type, shape, of_lists)


def _size(d: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if d.HasField("dim_value"):
        return int(d.dim_value) if d.dim_value >= 0 else None
    return d.dim_param or None


Structure = int | None | bool | tuple[int, ...]
"""What of an input a graph is made for: the length of a list, whether an optional is there, the shape of a tensor; None
for a tensor of any shape."""


def structure_of(port: Port, value: Any, by_shapes: bool = False) -> Structure:
    """Returns that of a value that is fed to an input; by_shapes: for the shape of a tensor."""
    if port.kind == TENSOR:
        return np.shape(value) if by_shapes else None
    if port.kind == OPTIONAL:
        if value is None:
            return False
        return len(value) if port.of_lists else True
    return len(value)


def placeholders(port: Port, structure: Structure) -> tuple[Value, list[Tensor]]:
    """Returns the value of an input in a new part of a graph, and the placeholders that are to be fed."""
    dtype = tf.uint8 if port.element in CODED else NATIVE[port.element]
    name = "".join(c if c.isalnum() or c in "_.-" else "_" for c in port.name).lstrip("_-.") or "input"
    if port.kind == TENSOR:
        made = tf.placeholder(dtype, port.sizes() if structure is None else structure, name=name)
        return wrapped(made, port.element), [made]
    if structure is False:
        absent: Value = Sequence.empty(port.element) if port.of_lists else tf.zeros(_smallest(port), dtype)
        return Optional(tf.constant(False), absent), []
    if structure is True:
        made = tf.placeholder(dtype, port.sizes(), name=name)
        return Optional(tf.constant(True), wrapped(made, port.element)), [made]
    items = [
        tf.placeholder(dtype, None, name=f"{name}_{i}") for i in range(structure if isinstance(structure, int) else 0)
    ]
    value = Sequence.empty(port.element)
    for item in items:
        value = value.push(wrapped(item, port.element))
    return (Optional(tf.constant(True), value) if port.kind == OPTIONAL else value), items


def _smallest(port: Port) -> list[int]:
    return [d if isinstance(d, int) else 0 for d in port.shape or ()]


@dataclass(frozen=True)
class Fetch:
    """How an output is fetched: `tensors` are run, and `value` makes of their values what the user gets."""

    kind: str
    element: int
    tensors: tuple[Tensor, ...]
    inner: Fetch | None = None
    keys: tuple[str | int, ...] = ()

    def value(self, arrays: list[Array]) -> Any:
        """Returns an array, a list of arrays or of maps, or None for what is absent."""
        if self.kind == MAPS:
            return [dict(zip(self.keys, row, strict=True)) for row in np.asarray(arrays[0]).tolist()]
        if self.kind == TENSOR:
            return shown(np.asarray(arrays[0]), self.element)
        if self.kind == OPTIONAL:
            assert self.inner is not None
            return self.inner.value(arrays[1:]) if arrays[0] else None
        flat, sizes, ranks = (np.asarray(a) for a in arrays)
        items, at_size, at_element = [], 0, 0
        for rank in ranks.tolist():
            shape = tuple(sizes[at_size : at_size + rank].tolist())
            count = int(np.prod(shape)) if shape else 1
            items.append(shown(flat[at_element : at_element + count].reshape(shape), self.element))
            at_size, at_element = at_size + rank, at_element + count
        return items


def fetch_of(value: Value) -> Fetch:
    """Returns how a value of a graph is fetched."""
    if isinstance(value, Optional):
        inner = fetch_of(value.value if value.value is not None else tf.zeros([0]))
        return Fetch(OPTIONAL, inner.element, (value.present, *inner.tensors), inner)
    if isinstance(value, Maps):
        return Fetch(MAPS, element_of(value.scores.dtype), (value.scores,), keys=value.keys)
    if isinstance(value, Sequence):
        return Fetch(SEQUENCE, value.element, tuple(_flattened(value)))
    return Fetch(
        TENSOR, element_type(value) if isinstance(value, Coded) else element_of(value.dtype), (contents(value),)
    )


def _flattened(value: Sequence) -> list[Tensor]:
    """Returns all elements of a list in one vector, all their sizes in another, and the rank of each."""
    count = value.length()

    def joined(part: Any, dtype: Any, element: int) -> Tensor:
        one = Sequence.empty(element).push(tf.zeros([0], dtype))
        _, handle = tf.while_loop(
            lambda i, _: i < count,
            lambda i, h: (
                i + 1,
                tf.raw_ops.TensorListPushBack(input_handle=h, tensor=part(value.tensor_at(i))),
            ),
            (tf.constant(0), one.handle),
        )
        return tf.raw_ops.TensorListConcatV2(
            input_handle=handle,
            element_shape=tf.constant([-1]),
            leading_dims=tf.constant([], tf.int64),
            element_dtype=dtype,
        )[0]

    whole = onnx.TensorProto.UINT8 if value.element in CODED else value.element
    return [
        joined(lambda e: tf.reshape(e, [-1]), value.dtype, whole),
        joined(lambda e: tf.shape(e), tf.int32, onnx.TensorProto.INT32),
        joined(lambda e: tf.reshape(tf.rank(e), [1]), tf.int32, onnx.TensorProto.INT32),
    ]


Feeds = Mapping[str, Any]
