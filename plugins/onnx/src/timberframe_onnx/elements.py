"""Element types of ONNX: the dtype that holds each in a graph, and codes for those that no graph computes with.

Elements of float8, float6, float4, int4, uint4, int2 and uint2 are held as their bits, one element in a uint8, as
`Coded` of `translation/values.py`; `families/casts.py` converts them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

import timberframe_core.dtypes as dtypes

Array = np.ndarray[Any, np.dtype[Any]]

NATIVE = {
    TensorProto.FLOAT: dtypes.float32,
    TensorProto.UINT8: dtypes.uint8,
    TensorProto.INT8: dtypes.int8,
    TensorProto.UINT16: dtypes.uint16,
    TensorProto.INT16: dtypes.int16,
    TensorProto.INT32: dtypes.int32,
    TensorProto.INT64: dtypes.int64,
    TensorProto.STRING: dtypes.string,
    TensorProto.BOOL: dtypes.bool_,
    TensorProto.FLOAT16: dtypes.float16,
    TensorProto.DOUBLE: dtypes.float64,
    TensorProto.UINT32: dtypes.uint32,
    TensorProto.UINT64: dtypes.uint64,
    TensorProto.COMPLEX64: dtypes.complex64,
    TensorProto.COMPLEX128: dtypes.complex128,
    TensorProto.BFLOAT16: dtypes.bfloat16,
}
"""Element types that a dtype of the graph holds as they are."""

CODED: dict[int, tuple[Any, int]] = {
    TensorProto.FLOAT8E4M3FN: (ml_dtypes.float8_e4m3fn, 8),
    TensorProto.FLOAT8E4M3FNUZ: (ml_dtypes.float8_e4m3fnuz, 8),
    TensorProto.FLOAT8E5M2: (ml_dtypes.float8_e5m2, 8),
    TensorProto.FLOAT8E5M2FNUZ: (ml_dtypes.float8_e5m2fnuz, 8),
    TensorProto.FLOAT8E8M0: (ml_dtypes.float8_e8m0fnu, 8),
    TensorProto.FLOAT4E2M1: (ml_dtypes.float4_e2m1fn, 4),
    TensorProto.UINT4: (ml_dtypes.uint4, 4),
    TensorProto.INT4: (ml_dtypes.int4, 4),
    TensorProto.UINT2: (ml_dtypes.uint2, 2),
    TensorProto.INT2: (ml_dtypes.int2, 2),
}
"""Element types that are held as codes: the NumPy type of their values, and how many bits a code has."""
for _name, _type in (("FLOAT6E2M3", "float6_e2m3fn"), ("FLOAT6E3M2", "float6_e3m2fn")):
    if hasattr(TensorProto, _name):  # onnx has them from 1.22 on
        CODED[getattr(TensorProto, _name)] = (getattr(ml_dtypes, _type), 6)

_BY_DTYPE = {dtype: number for number, dtype in NATIVE.items()}


def name_of(element: int) -> str:
    """Returns the name of an element type in ONNX, as "FLOAT"; for messages."""
    return str(TensorProto.DataType.Name(element)) if element in TensorProto.DataType.values() else f"type {element}"


def element_of(dtype: Any) -> int:
    """Returns the element type that a dtype of the graph holds."""
    return int(_BY_DTYPE[dtype.base_dtype])


def numpy_type(element: int) -> np.dtype[Any]:
    """Returns the NumPy type of arrays that are fed and fetched."""
    return np.dtype(CODED[element][0]) if element in CODED else NATIVE[element].numpy


def is_integer(element: int) -> bool:
    """Returns whether a coded type's values are integers."""
    return element in (TensorProto.UINT4, TensorProto.INT4, TensorProto.UINT2, TensorProto.INT2)


@cache
def typed_codes(element: int) -> Array:
    """Returns all codes of a coded type in order, as elements of its NumPy type."""
    numpy, bits = CODED[element]
    codes = np.arange(1 << bits, dtype=np.uint8)
    if is_integer(element):
        signed = element in (TensorProto.INT4, TensorProto.INT2)
        values = codes.astype(np.int8)
        return (np.where(values >= 1 << (bits - 1), values - (1 << bits), values) if signed else values).astype(numpy)
    return codes.view(numpy)


def code_values(element: int) -> Array:
    """Returns the value of each code of a coded type, in float32."""
    values: Array = typed_codes(element).astype(np.float32)
    return values


def to_codes(array: Array, element: int) -> Array:
    """Returns the codes of an array of a coded type's NumPy type."""
    if is_integer(element):
        codes: Array = (array.astype(np.int8) & ((1 << CODED[element][1]) - 1)).astype(np.uint8)
        return codes
    return np.asarray(array, order="C").view(np.uint8)


def from_codes(codes: Array, element: int) -> Array:
    """Returns the array of a coded type's NumPy type that codes stand for."""
    return typed_codes(element)[codes]


def held(array: Array, element: int) -> Array:
    """Returns what a graph holds of an array: its codes, bytes for strings, else itself in the
    dtype of the element type.
    """
    if element in CODED:
        return to_codes(array, element)
    if element == TensorProto.STRING:
        flat = [s.encode() if isinstance(s, str) else s for s in array.ravel().tolist()]
        made = np.empty(len(flat), object)
        made[:] = flat
        return made.reshape(array.shape)
    return array


def shown(array: Array, element: int) -> Array:
    """Returns what a user gets of an array of the graph: the opposite of `held`; strings become str."""
    if element in CODED:
        return from_codes(array, element)
    if element == TensorProto.STRING:
        flat = [s.decode("utf-8", "surrogateescape") if isinstance(s, bytes) else s for s in np.ravel(array).tolist()]
        made = np.empty(len(flat), object)
        made[:] = flat
        return made.reshape(np.shape(array))
    return array
