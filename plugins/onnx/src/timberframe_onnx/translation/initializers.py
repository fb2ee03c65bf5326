"""Constants of a model: dense, sparse, and those whose data is in files of their own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import timberframe as tf
from timberframe_onnx.elements import CODED, NATIVE, Array, held, name_of, numpy_type
from timberframe_onnx.errors import InvalidModelError
from timberframe_onnx.translation.values import Value, wrapped

MOST_SPARSE_ELEMENTS = 1 << 28
"""Of a sparse tensor made dense: more than files with so few values justify."""


def constant_of(tensor: TensorProto | onnx.SparseTensorProto, folder: Path | None) -> Value:
    """Returns the constant of the graph for a tensor of a model."""
    if isinstance(tensor, onnx.SparseTensorProto):
        element = tensor.values.data_type
        array = _dense(tensor, folder)
    else:
        element = tensor.data_type
        array = array_of(tensor, folder)
    dtype = tf.uint8 if element in CODED else NATIVE[element]
    made = held(array, element)
    if made.flags.writeable or made.shape != array.shape:
        return wrapped(tf.constant(made, dtype, array.shape), element)
    # Nobody changes what lies in bytes, or in a mapped file: the graph has it as it is.
    graph: Any = tf.get_default_graph()
    return wrapped(graph.apply("Const", (), {"value": made, "dtype": dtype}, "Const").outputs[0], element)


def array_of(tensor: TensorProto, folder: Path | None) -> Array:
    """Returns the elements of a dense tensor, in its NumPy type. External data is mapped, not read.

    Raises InvalidModelError where size and shape disagree, or where external data lies outside `folder`.
    """
    element = tensor.data_type
    if element not in CODED and element not in NATIVE:
        raise InvalidModelError(f"tensor '{tensor.name}' is of {name_of(element)}; that is no element type")
    if any(d < 0 for d in tensor.dims):
        raise InvalidModelError(f"tensor '{tensor.name}' has shape {list(tensor.dims)}; sizes must not be negative")
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external(tensor, folder)
    raw = _raw(tensor)
    if raw is not None:
        return raw
    _check_size(tensor)
    try:
        made: Array = numpy_helper.to_array(tensor)
        return made
    except (ValueError, TypeError, OverflowError) as e:
        raise InvalidModelError(f"tensor '{tensor.name}': {e}") from e


def _raw(tensor: TensorProto) -> Array | None:
    """Returns the elements of a tensor that has them as bytes, which the array keeps; None for
    one that has them otherwise.

    The message makes new bytes each time that it is asked for them.
    """
    if tensor.data_type not in NATIVE or tensor.data_type in (TensorProto.STRING, TensorProto.BOOL):
        return None
    if sys.byteorder != "little":
        return None
    data = tensor.raw_data
    if not data or len(data) != _bytes(tensor):
        return None
    return np.frombuffer(data, numpy_type(tensor.data_type)).reshape(tuple(tensor.dims))


def _count(tensor: TensorProto) -> int:
    count = 1
    for d in tensor.dims:
        count *= d
    return count


def _bytes(tensor: TensorProto) -> int:
    """Returns how many bytes the elements of a tensor take in a file; several small ones share a byte."""
    element = tensor.data_type
    bits = CODED[element][1] if element in CODED else 8 * numpy_type(element).itemsize
    return (_count(tensor) * bits + 7) // 8


def _check_size(tensor: TensorProto) -> None:
    """Raises InvalidModelError where raw data has another size than the shape calls for."""
    if tensor.HasField("raw_data") and tensor.data_type != TensorProto.STRING:
        if len(tensor.raw_data) != _bytes(tensor) and tensor.data_type not in (
            getattr(TensorProto, "FLOAT6E2M3", -1),
            getattr(TensorProto, "FLOAT6E3M2", -1),
        ):
            raise InvalidModelError(
                f"tensor '{tensor.name}' has {len(tensor.raw_data)} bytes; its shape {list(tensor.dims)} of "
                f"{name_of(tensor.data_type)} needs {_bytes(tensor)}"
            )
    elif tensor.data_type == TensorProto.STRING and len(tensor.string_data) != _count(tensor):
        raise InvalidModelError(
            f"tensor '{tensor.name}' has {len(tensor.string_data)} strings; its shape {list(tensor.dims)} needs "
            f"{_count(tensor)}"
        )


def _external(tensor: TensorProto, folder: Path | None) -> Array:
    """Returns the elements of a tensor whose data is in another file of the model's folder."""
    entries = {e.key: e.value for e in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise InvalidModelError(
            f"tensor '{tensor.name}' has its data in file '{location}'; load the model by its path, so that its folder "
            "is known"
        )
    path = (folder / location).resolve()
    if not location or Path(location).is_absolute() or not path.is_relative_to(folder.resolve()):
        raise InvalidModelError(
            f"tensor '{tensor.name}' has its data in file '{location}'; that must be inside the model's folder"
        )
    try:
        offset = int(entries.get("offset", 0))
        size = int(entries.get("length", _bytes(tensor)))
        available = path.stat().st_size
    except (ValueError, OSError) as e:
        raise InvalidModelError(f"tensor '{tensor.name}' has its data in file '{location}': {e}") from e
    if size != _bytes(tensor) or offset < 0 or offset + size > available:
        raise InvalidModelError(
            f"tensor '{tensor.name}' has {size} bytes at {offset} of file '{location}', which has {available}; its "
            f"shape {list(tensor.dims)} of {name_of(tensor.data_type)} needs {_bytes(tensor)}"
        )
    if tensor.data_type in CODED and CODED[tensor.data_type][1] < 8:
        inside = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
        with path.open("rb") as file:
            file.seek(offset)
            inside.raw_data = file.read(size)
        made: Array = numpy_helper.to_array(inside)
        return made
    if size == 0:
        return np.zeros(tuple(tensor.dims), numpy_type(tensor.data_type))
    return np.memmap(path, numpy_type(tensor.data_type), "r", offset, tuple(tensor.dims))


def _dense(sparse: onnx.SparseTensorProto, folder: Path | None) -> Array:
    """Returns the elements of a sparse tensor, zeros included."""
    values = array_of(sparse.values, folder)
    indices = array_of(sparse.indices, folder)
    shape = tuple(sparse.dims)
    name = sparse.values.name
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if any(d < 0 for d in shape) or count > MOST_SPARSE_ELEMENTS:
        raise InvalidModelError(f"sparse tensor '{name}' has shape {list(shape)}; at most 2^28 elements are taken")
    flat = indices
    if indices.ndim == 2:
        if indices.shape[1] != len(shape):
            raise InvalidModelError(f"sparse tensor '{name}' of rank {len(shape)} has indices {indices.shape}")
        inside = np.all((indices >= 0) & (indices < np.array(shape)))
        flat = np.ravel_multi_index(tuple(indices.T), shape) if inside and len(indices) else indices[:, 0]
    if flat.shape != values.shape or np.any(flat < 0) or np.any(flat >= count):
        raise InvalidModelError(f"sparse tensor '{name}' of shape {list(shape)} has indices outside of it")
    made = np.zeros(count, values.dtype)
    made[flat] = values
    return made.reshape(shape)
