"""Tensors in JSON: nested lists of numbers, booleans and strings, with bytes as ``{"b64": "..."}``."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from timberframe_core.dtypes import DType, string
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_serving.signatures import Array

_NUMPY = orjson.OPT_SERIALIZE_NUMPY
_KINDS = {"f": "iuf", "i": "iu", "u": "iu", "b": "b"}
"""By the kind of a dtype, the kinds of arrays that JSON's numbers may make for it."""
_WRITTEN = frozenset(map(np.dtype, "efdbhilqBHILQ?"))
"""The dtypes that orjson writes."""
_MOST_DIMENSIONS = 32


def loads(body: bytes) -> Any:
    """Returns what JSON text says, NaN and Infinity included; raises InvalidArgumentError where it is no JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if b"NaN" not in body and b"Infinity" not in body:
            raise InvalidArgumentError(f"request: is no JSON ({error}); a JSON object is required") from None
    try:
        value = json.loads(body.decode())
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode()  # fails for half a surrogate pair, as orjson does
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"request: is no JSON ({str(error)[:200]}); a JSON object is required") from None
    return value


def dumps(value: Any) -> bytes:
    """Returns JSON text of plain values and the arrays of `plain`; numbers that are not finite as NaN and Infinity."""
    return orjson.dumps(value, option=_NUMPY)


def dumps_arrays(value: Any, arrays: Sequence[Array]) -> bytes:
    """Returns JSON text of a value that holds these arrays. NaN is written bare, as TensorFlow Serving does it."""
    text = orjson.dumps(value, option=_NUMPY)  # which writes null for what is not finite
    if b"null" not in text or all(a.dtype.kind not in "fV" or np.isfinite(_readable(a)).all() for a in arrays):
        return text
    return json.dumps(value, default=lambda a: a.tolist(), separators=(",", ":")).encode()


def _readable(array: Array) -> Array:
    return array if array.dtype in _WRITTEN or array.dtype.kind == "O" else array.astype(np.float32)


def plain(array: Array, dtype: DType, binary: bool = False) -> Any:
    """Returns an array as `dumps_arrays` writes it. binary: all bytes are in base64, else those that are no text."""
    if dtype is string:
        return _strings(array.tolist(), binary)
    if dtype.is_complex:
        raise UnimplementedError(f"response: an output has dtype {dtype.name}, which JSON cannot hold; ask by gRPC")
    ready = np.ascontiguousarray(_readable(array)) if array.ndim else _readable(array)
    return ready if ready.ndim else ready[()]


def _strings(value: Any, binary: bool) -> Any:
    if isinstance(value, list):
        return [_strings(v, binary) for v in value]
    data = value if isinstance(value, bytes) else str(value).encode()
    if not binary:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(data).decode()}


def decode(value: Any, dtype: DType, name: str) -> Array:
    """Returns the array of a value from JSON; raises InvalidArgumentError where it holds something else."""
    if dtype is string:
        return _decode_strings(value, name)
    if dtype.is_complex:
        raise UnimplementedError(f"input '{name}': has dtype {dtype.name}, which JSON cannot hold; ask by gRPC")
    kinds = _kinds(value)
    if str in kinds:  # NumPy would give each element the room of the longest string
        raise InvalidArgumentError(f"input '{name}': holds strings; {dtype.name} is required")
    if bool in kinds and len(kinds) > 1:  # NumPy would make 1 of true
        raise InvalidArgumentError(f"input '{name}': holds booleans and others; {dtype.name} is required")
    try:
        array = np.array(value)
        if array.dtype == np.float64 and dtype.numpy == np.uint64:
            array = _integers(array, np.array(value, object))
    except (ValueError, OverflowError):
        raise _ragged(name) from None
    return _cast(array, dtype, name)


def _kinds(value: Any) -> set[type]:
    """Returns the types of the elements of nested lists."""
    if not isinstance(value, list):
        return {type(value)}
    kinds = set(map(type, value))
    if list in kinds:
        kinds.remove(list)
        for item in value:
            if isinstance(item, list):
                kinds |= _kinds(item)
    return kinds


def _integers(array: Array, exact: Array) -> Array:
    """Returns integers as uint64 that NumPy makes floats of, since some are small and some are above 2^63."""
    whole = all(type(v) is int and 0 <= v < 2**64 for v in exact.flat)
    return exact.astype(np.uint64) if whole else array


def _cast(array: Array, dtype: DType, name: str) -> Array:
    target = dtype.numpy
    if array.dtype == target:
        return array
    kind = "f" if dtype.is_floating else target.kind
    if array.size and array.dtype.kind not in _KINDS.get(kind, ""):
        raise InvalidArgumentError(f"input '{name}': holds {_described(array)}; {dtype.name} is required")
    if kind in "iu" and array.size:
        low, high = np.iinfo(target).min, np.iinfo(target).max
        least, most = int(array.min()), int(array.max())
        if least < low or most > high:
            wrong = least if least < low else most
            raise InvalidArgumentError(f"input '{name}': holds {wrong}; {dtype.name} is required, from {low} to {high}")
    try:
        with np.errstate(over="raise", invalid="ignore"):
            return array.astype(target)
    except FloatingPointError:
        raise InvalidArgumentError(f"input '{name}': holds a number too large for {dtype.name}") from None


def _ragged(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"input '{name}': its lists are of different lengths or depths; equal ones are required"
    )


def _described(array: Array) -> str:
    words = {
        "b": "booleans",
        "f": "numbers with a fraction",
        "O": "null, objects or numbers of over 64 bits",
    }
    return words.get(array.dtype.kind, f"values of type {array.dtype}")


def _decode_strings(value: Any, name: str) -> Array:
    shape = _shape(value, name)
    flat: list[bytes] = []
    _collect(value, shape, 0, flat, name)
    array = np.empty(len(flat), object)
    array[:] = flat
    return array.reshape(shape)


def _shape(value: Any, name: str) -> tuple[int, ...]:
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        if len(shape) > _MOST_DIMENSIONS:
            raise InvalidArgumentError(f"input '{name}': has over {_MOST_DIMENSIONS} dimensions; fewer are required")
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _collect(value: Any, shape: tuple[int, ...], depth: int, flat: list[bytes], name: str) -> None:
    if depth == len(shape):
        flat.append(as_bytes(value, name))
        return
    if not isinstance(value, list) or len(value) != shape[depth]:
        raise _ragged(name)
    for item in value:
        _collect(item, shape, depth + 1, flat, name)


def as_bytes(value: Any, name: str) -> bytes:
    """Returns the bytes of a string in JSON, or of ``{"b64": "..."}``."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidArgumentError(f"input '{name}': its b64 is no base64 ({error})") from None
    raise InvalidArgumentError(
        f"input '{name}': holds {type(value).__name__}; strings, or objects with b64 alone, are required"
    )


def is_bytes_object(value: Any) -> bool:
    """Returns whether a value from JSON is ``{"b64": "..."}``."""
    return isinstance(value, dict) and set(value) == {"b64"}


def instance_columns(instances: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """Returns the value of each input from a list of instances.

    An instance is the value of the only input, or an object of values by input. Raises InvalidArgumentError where
    instances are none, or have different inputs.
    """
    if not isinstance(instances, list) or not instances:
        raise InvalidArgumentError("request: 'instances' is empty or no list; a list of rows is required")
    first = instances[0]
    if not isinstance(first, dict) or is_bytes_object(first):
        if len(names) != 1:
            raise InvalidArgumentError(
                f"request: 'instances' holds values; objects with the inputs {sorted(names)} are required"
            )
        return {names[0]: instances}
    keys = first.keys()
    if not all(isinstance(i, dict) and i.keys() == keys for i in instances):
        raise InvalidArgumentError("request: 'instances' have different inputs; the same ones are required in each")
    return {key: [i[key] for i in instances] for key in keys}
