"""The element types under their public names (`tf.bool` is `dtypes.bool_`)."""

from __future__ import annotations

from timberframe_core.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    double,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    half,
    int4,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)

bool = bool_

__all__ = [
    "DType", "as_dtype", "bfloat16", "bool", "complex64", "complex128", "double", "float8_e4m3fn", "float8_e5m2",
    "float16", "float32", "float64", "half", "int4", "int8", "int16", "int32", "int64", "qint8", "qint16", "qint32",
    "quint8", "quint16", "resource", "string", "uint4", "uint8", "uint16", "uint32", "uint64", "variant",
]  # fmt: skip
