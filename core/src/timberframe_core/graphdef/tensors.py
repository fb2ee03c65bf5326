"""Tensors in a GraphDef: TensorProto to ndarray and back, bit by bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from timberframe_core import dtypes
from timberframe_core.dtypes import DType, as_dtype
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_core.graphdef import messages
from timberframe_core.shapes import (
    MAX_ARRAY_RANK,
    MAX_ELEMENTS,
    MAX_SHAPE_RANK,
    Shape,
    StaticShape,
    format_shape,
    num_elements,
)

SPLAT_BYTES = 1 << 20  # a larger tensor of one repeated value is decoded as a view of that value

_BITS_16 = ("float16", "bfloat16")
_FIELDS = {
    "float32": "float_val", "float64": "double_val", "complex64": "scomplex_val", "complex128": "dcomplex_val",
    "int64": "int64_val", "uint32": "uint32_val", "uint64": "uint64_val", "bool": "bool_val", "string": "string_val",
    "float16": "half_val", "bfloat16": "half_val", "float8_e5m2": "float8_val", "float8_e4m3fn": "float8_val",
    "resource": "resource_handle_val",
}  # fmt: skip


def value_field(dtype: DType) -> str:
    """Returns the TensorProto field that lists elements of this type one by one; small integers share `int_val`."""
    return _FIELDS.get(dtype.name, "int_val")


def encode_shape(shape: Shape) -> Any:
    """Returns a shape as a TensorShapeProto; unknown sizes are -1 there."""
    proto = messages.TensorShapeProto()
    if shape is None:
        proto.unknown_rank = True
    else:
        for size in shape:
            proto.dim.add().size = -1 if size is None else size
    return proto


def decode_shape(proto: Any, what: str = "shape") -> Shape:
    """Returns a TensorShapeProto as a shape; raises InvalidArgumentError for sizes below -1
    and products above 2^63 - 1.
    """
    if proto.unknown_rank:
        if len(proto.dim):
            raise InvalidArgumentError(f"{what}: has {len(proto.dim)} sizes and unknown rank; only one is possible")
        return None
    if len(proto.dim) > MAX_SHAPE_RANK:
        raise InvalidArgumentError(f"{what}: has {len(proto.dim)} dimensions; a shape has at most {MAX_SHAPE_RANK}")
    sizes = [d.size for d in proto.dim]
    if any(size < -1 for size in sizes):
        raise InvalidArgumentError(f"{what}: sizes are {sizes}; each must be at least -1, which stands for unknown")
    if math.prod(size for size in sizes if size > 0) > MAX_ELEMENTS:
        raise InvalidArgumentError(f"{what}: sizes {sizes} have over 2^63 - 1 elements; their product must fit 63 bits")
    return tuple(None if size < 0 else size for size in sizes)


def make_ndarray(tensor: Any, what: str = "TensorProto", content: memoryview | None = None) -> np.ndarray:
    """Returns the array that a TensorProto holds; strings as an object array of bytes.

    A list of values that is shorter than the tensor repeats its last value; an empty one means zeros. Raises
    InvalidArgumentError for unknown dtypes and sizes and for contents of the wrong length, naming `what`. content: what
    would be its tensor_content.
    """
    dtype = as_dtype(tensor.dtype).base_dtype if tensor.dtype else None
    if dtype is None:
        raise InvalidArgumentError(f"{what}: dtype is DT_INVALID; a tensor must have a dtype")
    if dtype is dtypes.variant or dtype is dtypes.resource:
        raise UnimplementedError(f"{what}: dtype is {dtype}; only numbers, booleans and strings have values")
    sizes = decode_shape(tensor.tensor_shape, what)
    if sizes is None or None in sizes:
        raise InvalidArgumentError(f"{what}: shape is {format_shape(sizes)}; a tensor's sizes must all be known")
    shape: StaticShape = tuple(size for size in sizes if size is not None)
    if len(shape) > MAX_ARRAY_RANK:
        raise UnimplementedError(f"{what}: has {len(shape)} dimensions; tensors have at most {MAX_ARRAY_RANK}")
    if math.prod(size for size in shape if size) * dtype.numpy.itemsize > MAX_ELEMENTS:
        raise InvalidArgumentError(f"{what}: {dtype} {format_shape(shape)} has over 2^63 - 1 bytes; no memory holds it")
    held = tensor.tensor_content if content is None else content
    if held:
        return _from_content(held, dtype, shape, what)
    values = _listed_values(tensor, dtype, what)
    return _fill(values, dtype, shape)


def _from_content(content: bytes | memoryview, dtype: DType, shape: StaticShape, what: str) -> np.ndarray:
    count = num_elements(shape)
    if dtype is dtypes.string:
        return _strings_from_content(bytes(content), shape, what)
    if len(content) != count * dtype.size:
        raise InvalidArgumentError(
            f"{what}: tensor_content has {len(content)} bytes; {dtype} {format_shape(shape)} needs {count * dtype.size}"
        )
    array = np.frombuffer(content, dtype.numpy.newbyteorder("<") if dtype.numpy.isbuiltin == 1 else dtype.numpy)
    return array.astype(dtype.numpy, copy=False).reshape(shape)


def _strings_from_content(content: bytes, shape: StaticShape, what: str) -> np.ndarray:
    """Strings as TensorFlow packs them: all lengths as varints, then all bytes."""
    lengths, at = [], 0
    for _ in range(num_elements(shape)):
        length = shift = 0
        while True:
            if at >= len(content) or shift > 63:
                raise InvalidArgumentError(
                    f"{what}: tensor_content ends early; it must hold {format_shape(shape)} strings"
                )
            byte = content[at]
            at, length, shift = at + 1, length | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        lengths.append(length)
    if at + sum(lengths) != len(content):
        raise InvalidArgumentError(
            f"{what}: tensor_content has {len(content)} bytes; strings {format_shape(shape)} need {at + sum(lengths)}"
        )
    array = np.empty(len(lengths), object)
    for i, length in enumerate(lengths):
        array[i] = content[at : at + length]
        at += length
    return array.reshape(shape)


def _listed_values(tensor: Any, dtype: DType, what: str) -> np.ndarray:
    values = getattr(tensor, value_field(dtype))
    if dtype is dtypes.string:
        array = np.empty(len(values), object)
        array[:] = list(values)
        return array
    if dtype.name in _BITS_16:
        return np.array(values, np.int64).astype(np.uint16).view(dtype.numpy)
    if isinstance(values, bytes):
        return np.frombuffer(values, dtype.numpy)
    if dtype.is_complex:
        if len(values) % 2:
            raise InvalidArgumentError(f"{what}: {value_field(dtype)} has {len(values)} entries; pairs are needed")
        return np.array(values, dtype.real_dtype.numpy).view(dtype.numpy)
    if value_field(dtype) == "int_val":
        return np.array(values, np.int64).astype(dtype.numpy)
    return np.array(values, dtype.numpy)


def _fill(values: np.ndarray, dtype: DType, shape: StaticShape) -> np.ndarray:
    count = num_elements(shape)
    if values.size == count:
        return values.reshape(shape)
    if values.size > count:
        return values[:count].reshape(shape)
    last = values[-1] if values.size else b"" if dtype is dtypes.string else dtype.numpy.type(0)
    if values.size <= 1 and count * dtype.size > SPLAT_BYTES:
        single = np.empty((), dtype.numpy)
        single[()] = last
        return np.broadcast_to(single, shape)
    array = np.empty(count, dtype.numpy)
    array[: values.size] = values
    array[values.size :] = last
    return array.reshape(shape)


def encode_array(array: np.ndarray, dtype: DType | None = None, compact: bool = True) -> Any:
    """Returns an array as a TensorProto, bit by bit: numbers as raw bytes.

    compact: one repeated value is written once.
    """
    dtype = dtype or as_dtype(array.dtype)
    if dtype is dtypes.variant or dtype is dtypes.resource:
        raise UnimplementedError(f"TensorProto: dtype is {dtype}; only numbers, booleans and strings can be written")
    proto = messages.TensorProto(dtype=dtype.number, tensor_shape=encode_shape(array.shape))
    if dtype is dtypes.string:
        proto.string_val.extend(x if isinstance(x, bytes) else str(x).encode() for x in array.flat)
    elif not compact or (array.size > 1 and not _is_splat(array)):
        little = array if dtype.numpy.isbuiltin != 1 else array.astype(dtype.numpy.newbyteorder("<"), copy=False)
        proto.tensor_content = little.tobytes()
    elif array.size:
        _append_value(proto, np.asarray(array.flat[0], dtype.numpy), dtype)
    return proto


def _is_splat(array: np.ndarray) -> bool:
    """Returns whether all elements have the same bits (equal values do not suffice: -0 equals 0)."""
    if not any(array.strides):
        return True
    if array.itemsize not in (1, 2, 4, 8):
        return False
    bits = np.ascontiguousarray(array).view(f"u{array.itemsize}").ravel()
    return bool(bits[0] == bits[-1] and (bits == bits[0]).all())


def _append_value(proto: Any, value: np.ndarray, dtype: DType) -> None:
    field = value_field(dtype)
    if dtype.name in _BITS_16:
        proto.half_val.append(int(value.view(np.uint16)))
    elif field == "float8_val":
        proto.float8_val = value.tobytes()
    elif dtype.is_complex:
        getattr(proto, field).extend((float(value.real), float(value.imag)))
    elif field == "bool_val":
        proto.bool_val.append(bool(value))
    elif dtype.is_floating:
        getattr(proto, field).append(float(value))
    else:
        getattr(proto, field).append(int(value))
