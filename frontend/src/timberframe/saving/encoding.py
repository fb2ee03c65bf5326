"""How the tensors of a checkpoint are stored in a safetensors file.

Complex numbers are pairs of floats in a further dimension; strings are the bytes of all elements in one tensor and
their lengths in another. Dtypes that safetensors does not know are stored as integers of their size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType, complex64, complex128, string
from timberframe_core.errors import DataLossError, InvalidArgumentError
from timberframe_core.shapes import num_elements

_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64",
    "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL", "qint8": "I8", "quint8": "U8", "qint16": "I16",
    "quint16": "U16", "qint32": "I32", "int4": "I8", "uint4": "U8",
}  # fmt: skip
LENGTHS = ":lengths"
"""Suffix for the name of a string tensor's lengths. No variable has a colon in its name."""


@dataclass(frozen=True)
class Part:
    """A tensor of the safetensors file; `array()` makes its elements when they are written."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    array: Callable[[], np.ndarray]


def encode(name: str, dtype: DType, shape: tuple[int, ...], array: Callable[[], np.ndarray]) -> list[Part]:
    """The parts that hold a tensor of the checkpoint."""
    if dtype is string:
        return _encode_strings(name, array())
    if dtype in (complex64, complex128):
        kind = "F32" if dtype is complex64 else "F64"
        return [Part(name, kind, (*shape, 2), dtype.size * num_elements(shape), array)]
    if dtype.name not in _NAMES:
        raise InvalidArgumentError(f"variable '{name}': has dtype {dtype.name}, which has no value that can be saved")
    return [Part(name, _NAMES[dtype.name], shape, dtype.size * num_elements(shape), array)]


def _encode_strings(name: str, array: np.ndarray) -> list[Part]:
    elements = array.reshape(-1).tolist()
    data = np.frombuffer(b"".join(elements), np.uint8)
    lengths = np.array([len(x) for x in elements], np.int64).reshape(array.shape)
    return [
        Part(name, "U8", data.shape, data.nbytes, lambda: data),
        Part(f"{name}{LENGTHS}", "I64", lengths.shape, lengths.nbytes, lambda: lengths),
    ]


def decode(dtype: DType, shape: tuple[int, ...], data: np.ndarray) -> np.ndarray:
    """The array of a dtype other than string, on the bytes that hold its elements."""
    found: np.ndarray = data.view(dtype.numpy).reshape(shape)
    return found


def decode_strings(name: str, data: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The array of a string tensor; DataLossError where its lengths do not suit its bytes."""
    raw = data.tobytes()
    possible = bool(((lengths >= 0) & (lengths <= len(raw))).all())  # else their sums might not fit 64 bits
    ends = np.cumsum(lengths.reshape(-1)).tolist() if possible else [-1]
    if (ends[-1] if ends else 0) != len(raw):
        raise DataLossError(f"tensor '{name}': its lengths do not add up to its {len(raw)} bytes; the file is damaged")
    result = np.empty(len(ends), object)
    result[:] = [raw[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return result.reshape(lengths.shape)


def as_bytes(array: Any) -> memoryview:
    """The elements in row-major order; a view of the array's memory if it has that order."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).data
