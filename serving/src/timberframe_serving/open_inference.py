"""Tensors and descriptions of the Open Inference Protocol, as HTTP and gRPC share them."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_core.dtypes import BY_NAME, DType, string
from timberframe_core.errors import InvalidArgumentError, OpError, UnimplementedError
from timberframe_core.shapes import MAX_ELEMENTS
from timberframe_serving.manager import State, Version
from timberframe_serving.servable import Servable
from timberframe_serving.service import Service, Spec
from timberframe_serving.signatures import Array, Port, Signature
from timberframe_serving.tensorflow_requests import LARGEST_TENSOR

EXTENSIONS = ("binary_tensor_data", "model_repository")
DATATYPES: Mapping[str, DType] = {
    "BOOL": BY_NAME["bool"], "UINT8": BY_NAME["uint8"], "UINT16": BY_NAME["uint16"], "UINT32": BY_NAME["uint32"],
    "UINT64": BY_NAME["uint64"], "INT8": BY_NAME["int8"], "INT16": BY_NAME["int16"], "INT32": BY_NAME["int32"],
    "INT64": BY_NAME["int64"], "FP16": BY_NAME["float16"], "FP32": BY_NAME["float32"], "FP64": BY_NAME["float64"],
    "BF16": BY_NAME["bfloat16"], "BYTES": string,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in DATATYPES.items()}


def datatype(port: Port) -> str:
    """Returns the protocol's name of an input's or output's dtype; the dtype's own name where it has none."""
    return _NAMES.get(port.dtype, port.dtype.name.upper())


def dtype_of(name: Any, what: str) -> DType:
    """Returns the dtype of one of the protocol's names."""
    found = DATATYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidArgumentError(f"{what}: datatype is {str(name)[:50]!r}; one of {', '.join(DATATYPES)} is required")
    return found


def checked_shape(sizes: Any, dtype: DType, what: str) -> tuple[int, ...]:
    """Returns a tensor's shape; raises InvalidArgumentError for sizes that are none, or that no memory holds."""
    try:
        shape = ("?",) if isinstance(sizes, str) else tuple(sizes)
    except TypeError:
        shape = ("?",)
    if len(shape) > 32 or [d for d in shape if type(d) is not int or d < 0]:
        raise InvalidArgumentError(f"{what}: shape is {str(sizes)[:100]}; up to 32 sizes of at least 0 are required")
    if math.prod(shape) * dtype.size > LARGEST_TENSOR:
        raise InvalidArgumentError(f"{what}: shape is {list(shape)}; at most {LARGEST_TENSOR} bytes are taken")
    if math.prod([d for d in shape if d]) * dtype.numpy.itemsize > MAX_ELEMENTS:
        raise InvalidArgumentError(f"{what}: shape is {list(shape)}; sizes that an array can have are required")
    return shape


def decode_raw(data: bytes | memoryview, dtype: DType, shape: tuple[int, ...], what: str) -> Array:
    """Returns the array of a tensor's bytes, little-endian; of strings each after its length in four bytes."""
    count = math.prod(shape)
    if dtype is string:
        return _decode_strings(bytes(data), count, what).reshape(shape)
    if len(data) != count * dtype.size:
        raise InvalidArgumentError(
            f"{what}: has {len(data)} bytes; {dtype.name} of shape {list(shape)} requires {count * dtype.size}"
        )
    return np.frombuffer(data, dtype.numpy).reshape(shape)


def _decode_strings(data: bytes, count: int, what: str) -> Array:
    found: list[bytes] = []
    at = 0
    while at + 4 <= len(data) and len(found) < count:
        (length,) = struct.unpack_from("<I", data, at)
        found.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    if at != len(data) or len(found) != count:
        raise InvalidArgumentError(
            f"{what}: its {len(data)} bytes hold {len(found)} whole strings; {count}, each after its length in four "
            "bytes, are required"
        )
    array = np.empty(count, object)
    array[:] = found
    return array


def encode_raw(array: Array, dtype: DType) -> bytes:
    """Returns the bytes of a tensor, as `decode_raw` takes them."""
    if dtype is not string:
        return np.ascontiguousarray(array).tobytes()
    parts = []
    for value in array.ravel():
        data = value if isinstance(value, bytes) else str(value).encode()
        parts += [struct.pack("<I", len(data)), data]
    return b"".join(parts)


def described(ports: Sequence[Port]) -> list[dict[str, Any]]:
    """Returns inputs or outputs as a model's metadata has them; open sizes are -1, as is the only one of any shape."""
    shapes = ((None,) if p.shape is None else p.shape for p in ports)
    return [
        {"name": p.name, "datatype": datatype(p), "shape": [-1 if d is None else d for d in shape]}
        for p, shape in zip(ports, shapes, strict=True)
    ]


def metadata(service: Service, spec: Spec) -> tuple[Servable, Signature, list[str]]:
    """Returns a model's version and signature, and the numbers of all versions that serve."""
    servable, signature = service.find(spec)
    return servable, signature, [str(v) for v in sorted(service.manager.routes[spec.name].versions)]


def is_ready(service: Service, spec: Spec) -> bool:
    """Returns whether a model, or one of its versions, serves."""
    try:
        service.manager.servable(spec.name, spec.version)
    except OpError:
        return False
    return True


def index(service: Service, ready_only: bool) -> list[dict[str, str]]:
    """Returns all versions of all models with their states, in the protocol's words."""
    found = []
    for name, model in sorted(service.manager.models.items()):
        if not model.versions and not ready_only:
            found.append({"name": name, "version": "", "state": "UNAVAILABLE", "reason": "no version was found"})
        for version in sorted(model.versions.values(), key=lambda v: v.number):
            state = _state(version)
            if state == "READY" or not ready_only:
                reason = str(version.error) if version.error else "unloaded" if state == "UNAVAILABLE" else ""
                found.append({"name": name, "version": str(version.number), "state": state, "reason": reason})
    return found


def _state(version: Version) -> str:
    if version.state is State.AVAILABLE:
        return "READY"
    if version.state is State.DRAINING:
        return "UNLOADING"
    return "UNAVAILABLE" if version.state is State.UNLOADED else "LOADING"


def refuse_parameters(parameters: Mapping[str, Any]) -> None:
    """Raises UnimplementedError where a load of a model has parameters: files come from the repository alone."""
    if parameters:
        raise UnimplementedError(
            f"load: has the parameters {sorted(parameters)[:10]}; models are loaded as the repository has them"
        )
