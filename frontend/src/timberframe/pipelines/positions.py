"""Elements and states of cursors as what a position may hold: arrays, bytes and what JSON has."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from timberframe.pipelines.held import Elements
from timberframe_core.dtypes import BY_NAME, as_dtype
from timberframe_core.errors import UnimplementedError


def pack(elements: Iterable[Sequence[Any]]) -> list[Any]:
    """Returns elements as a state may hold them."""
    return [[_packed(x) for x in element] for element in elements]


def unpack(packed: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """Returns the elements that `pack` was given."""
    return [tuple([_unpacked(x) for x in element]) for element in packed]


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        shapes = [None if s is None else tuple(s) for s in value["shapes"]]
        return Elements(unpack(value["elements"]), [as_dtype(d) for d in value["dtypes"]], shapes)
    return value


def _packed(value: Any) -> Any:
    if isinstance(value, Elements):
        dtypes = [d.name for d in value.dtypes]
        return {"elements": pack(value.elements), "dtypes": dtypes, "shapes": [*value.shapes]}
    if not isinstance(value, np.ndarray | np.generic):
        raise UnimplementedError(
            f"an iterator holds a {type(value).__name__} in its buffers, as of a shuffled or prefetched dataset "
            "of datasets; its position cannot be saved"
        )
    return np.array(value)


def encode(state: Any) -> bytes:
    """Returns a state as bytes; equal states give equal bytes."""
    arrays = io.BytesIO()

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return {"array": _put(arrays, value)}
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, dict):
            return {"dict": {k: plain(v) for k, v in value.items()}}
        if isinstance(value, list | tuple):
            return [plain(v) for v in value]
        if isinstance(value, np.integer):
            return int(value)
        return value

    text = json.dumps(plain(state), sort_keys=True).encode()
    return len(text).to_bytes(8, "little") + text + arrays.getvalue()


def decode(data: bytes) -> Any:
    """Returns the state that `encode` was given."""
    length = int.from_bytes(data[:8], "little")
    arrays = memoryview(data)[8 + length :]

    def rich(value: Any) -> Any:
        if isinstance(value, list):
            return [rich(v) for v in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return _get(arrays, *value["array"])
        if "bytes" in value:
            return base64.b64decode(value["bytes"])
        return {k: rich(v) for k, v in value["dict"].items()}

    return rich(json.loads(data[8 : 8 + length]))


def _put(file: io.BytesIO, array: np.ndarray) -> list[Any]:
    """Returns where in the file the array's elements are."""
    at = file.tell()
    if array.dtype == object:
        lengths = [len(x) for x in array.ravel().tolist()]
        file.write(b"".join(array.ravel().tolist()))
        return ["string", list(array.shape), at, lengths]
    file.write(np.ascontiguousarray(array).tobytes())
    return [array.dtype.name, list(array.shape), at, array.nbytes]


def _get(data: memoryview, dtype: str, shape: list[int], at: int, lengths: Any) -> np.ndarray:
    if dtype == "string":
        made: np.ndarray = np.empty(len(lengths), object)
        for i, length in enumerate(lengths):
            made[i] = bytes(data[at : at + length])
            at += length
        return made.reshape(shape)
    numpy = BY_NAME[dtype].numpy if dtype in BY_NAME else np.dtype(dtype)
    return np.frombuffer(data[at : at + lengths], numpy).reshape(shape).copy()
