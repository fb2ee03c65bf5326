"""Element types of tensors, with TensorFlow's names and wire numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from timberframe_core.errors import InvalidTypeError


class DType:
    """One element type. There is exactly one object for each; `==` also compares with what `as_dtype` takes for one.

    `name` is TensorFlow's name, `number` its enum value in GraphDef, `numpy` the NumPy dtype that holds the elements on
    the host (`object` for strings, resources and variants).
    """

    __slots__ = ("is_ref", "name", "number", "numpy")

    def __init__(self, name: str, number: int, numpy: np.dtype[Any], is_ref: bool = False) -> None:
        self.name = name
        self.number = number
        self.numpy = numpy
        self.is_ref = is_ref

    @property
    def as_numpy_dtype(self) -> type:
        """The NumPy scalar type, TensorFlow's name for it."""
        return self.numpy.type

    @property
    def as_datatype_enum(self) -> int:
        """The number that stands for this type in a GraphDef."""
        return self.number

    @property
    def base_dtype(self) -> DType:
        """The type without the reference mark that TensorFlow 1's VariableV2 puts on it."""
        return _BY_NUMBER[self.number - 100] if self.is_ref else self

    @property
    def size(self) -> int:
        """Bytes of one element on the host."""
        return self.numpy.itemsize

    @property
    def is_floating(self) -> bool:
        """Whether it is a dtype of real floating numbers."""
        return self.base_dtype in _FLOATING

    @property
    def is_complex(self) -> bool:
        """Whether it is a dtype of complex numbers."""
        return self.base_dtype in _COMPLEX

    @property
    def is_integer(self) -> bool:
        """Whether it is a dtype of integers."""
        return self.base_dtype in _INTEGER

    @property
    def is_unsigned(self) -> bool:
        """Whether it is a dtype of integers from 0 on."""
        return self.base_dtype.name.startswith("uint")

    @property
    def is_bool(self) -> bool:
        """Whether it is bool."""
        return self.base_dtype is bool_

    @property
    def is_numeric(self) -> bool:
        """Whether it is a dtype of numbers."""
        return self.base_dtype in _NUMERIC

    @property
    def is_quantized(self) -> bool:
        """Whether it is a dtype of quantized numbers."""
        return self.base_dtype in _QUANTIZED

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether NumPy has arrays of it: not of resources and variants."""
        return self.base_dtype not in (resource, variant)

    def is_compatible_with(self, other: Any) -> bool:
        """Returns whether it is the same dtype, reference marks aside."""
        return self.base_dtype is as_dtype(other).base_dtype

    @property
    def real_dtype(self) -> DType:
        """The type of the real part: itself for real types."""
        return {"complex64": float32, "complex128": float64}.get(self.base_dtype.name, self)

    def _limits(self) -> Any:
        if self.is_integer:
            return np.iinfo(self.numpy)
        if self.is_floating or self.is_complex:
            return ml_dtypes.finfo(self.real_dtype.numpy)  # type: ignore[no-untyped-call]  # ml_dtypes has no annotations
        raise InvalidTypeError(f"dtype {self.name} has no limits; min and max need a real or integer dtype")

    @property
    def min(self) -> Any:
        """The lowest finite value."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """The highest finite value."""
        return self._limits().max

    @property
    def limits(self) -> tuple[Any, Any]:
        """The darkest and the brightest value of an image: 0, and 1 for floats and bools, as `tf.image` has it."""
        return 0, 1 if self.is_floating or self.is_bool else self.max

    def __eq__(self, other: object) -> bool:
        if self is other or other is None or isinstance(other, DType):
            return self is other
        try:
            return as_dtype(other) is self
        except InvalidTypeError:
            return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.number,)


def _numpy(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


_OBJECT = np.dtype(object)

float32 = DType("float32", 1, _numpy("float32"))
float64 = DType("float64", 2, _numpy("float64"))
int32 = DType("int32", 3, _numpy("int32"))
uint8 = DType("uint8", 4, _numpy("uint8"))
int16 = DType("int16", 5, _numpy("int16"))
int8 = DType("int8", 6, _numpy("int8"))
string = DType("string", 7, _OBJECT)
complex64 = DType("complex64", 8, _numpy("complex64"))
int64 = DType("int64", 9, _numpy("int64"))
bool_ = DType("bool", 10, _numpy("bool"))
qint8 = DType("qint8", 11, _numpy("int8"))
quint8 = DType("quint8", 12, _numpy("uint8"))
qint32 = DType("qint32", 13, _numpy("int32"))
bfloat16 = DType("bfloat16", 14, _numpy("bfloat16"))
qint16 = DType("qint16", 15, _numpy("int16"))
quint16 = DType("quint16", 16, _numpy("uint16"))
uint16 = DType("uint16", 17, _numpy("uint16"))
complex128 = DType("complex128", 18, _numpy("complex128"))
float16 = DType("float16", 19, _numpy("float16"))
resource = DType("resource", 20, _OBJECT)
variant = DType("variant", 21, _OBJECT)
uint32 = DType("uint32", 22, _numpy("uint32"))
uint64 = DType("uint64", 23, _numpy("uint64"))
float8_e5m2 = DType("float8_e5m2", 24, _numpy("float8_e5m2"))
float8_e4m3fn = DType("float8_e4m3fn", 25, _numpy("float8_e4m3fn"))
int4 = DType("int4", 29, _numpy("int4"))
uint4 = DType("uint4", 30, _numpy("uint4"))

half = float16
double = float64

FLOATING = (float16, bfloat16, float32, float64, float8_e5m2, float8_e4m3fn)
COMPLEX = (complex64, complex128)
INTEGER = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
NUMERIC = FLOATING[:4] + INTEGER + COMPLEX
QUANTIZED = (qint8, quint8, qint16, quint16, qint32)

_FLOATING, _COMPLEX, _INTEGER = frozenset(FLOATING), frozenset(COMPLEX), frozenset(INTEGER)
_NUMERIC, _QUANTIZED = frozenset(NUMERIC), frozenset(QUANTIZED)
"""To look a dtype up in: a tuple compares it with each of its own, which takes a twentieth of building a graph."""

_BASE = (*NUMERIC, *FLOATING[4:], *QUANTIZED, bool_, string, resource, variant, int4, uint4)
_BY_NUMBER = {t.number: t for t in _BASE} | {
    t.number + 100: DType(t.name + "_ref", t.number + 100, t.numpy, True) for t in _BASE
}
BY_NAME = {t.name: t for t in _BY_NUMBER.values()} | {"half": float16, "float": float32, "double": float64}
_BY_NUMPY = {t.numpy: t for t in reversed(_BASE) if t not in QUANTIZED} | {_OBJECT: string}


def as_dtype(value: Any) -> DType:
    """Returns the DType for a DType, a TensorFlow name or number, a NumPy dtype or scalar type, or a Python type.

    Python's float is float32, as in TensorFlow. Raises InvalidArgumentError for anything else.
    """
    if isinstance(value, DType):
        return value
    found = float32 if value is float else None
    if isinstance(value, str):
        found = BY_NAME.get(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        found = _BY_NUMBER.get(value)
    if found is None and value is not None:
        try:
            key = np.dtype(value)
        except (TypeError, ValueError):
            key = None
        if key is not None:
            found = string if key.kind in "SU" else _BY_NUMPY.get(key)
    if found is None:
        raise InvalidTypeError(f"dtype {value!r} is not known; known names are {', '.join(t.name for t in _BASE)}")
    return found
