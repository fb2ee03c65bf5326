"""The Open Inference Protocol over HTTP, with tensors in JSON or after it as bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_serving import __version__
from timberframe_serving.http.messages import Request, Response
from timberframe_serving.json_tensors import decode, dumps, dumps_arrays, loads, plain
from timberframe_serving.open_inference import (
    EXTENSIONS,
    checked_shape,
    datatype,
    decode_raw,
    described,
    dtype_of,
    encode_raw,
    index,
    is_ready,
    metadata,
    refuse_parameters,
)
from timberframe_serving.servable import Servable
from timberframe_serving.service import Service, Spec
from timberframe_serving.signatures import Array, Signature

HEADER_LENGTH = b"inference-header-content-length"
_MODEL = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(?:/(ready|infer))?")
_CONTROL = re.compile(r"/v2/repository/models/([^/]+)/(load|unload)")


async def answer(service: Service, path: str, request: Request) -> Response:
    """Answers a request whose path begins with /v2."""
    if path in ("/v2", "/v2/"):
        return Response(dumps({"name": "timberframe-serving", "version": __version__, "extensions": list(EXTENSIONS)}))
    if path == "/v2/health/live":
        return Response(dumps({"live": True}))
    if path == "/v2/health/ready":
        return Response(dumps({"ready": service.ready}), 200 if service.ready else 503)
    if path == "/v2/models":
        return Response(dumps({"models": sorted(service.manager.routes)}))
    if path == "/v2/repository/index":
        body = await request.body() if request.method == "POST" else b""
        asked = _object(loads(body)) if body else {}
        return Response(dumps(index(service, bool(asked.get("ready")))))
    control = _CONTROL.fullmatch(path)
    if control is not None:
        return await _control(service, request, control[1], control[2])
    found = _MODEL.fullmatch(path)
    if found is None:
        raise NotFoundError(f"request: nothing is at '{path[:200]}'")
    name, version, verb = found[1], found[2] or "", found[3]
    if verb == "ready":
        ready = is_ready(service, Spec.parsed(name, version))
        return Response(dumps({"name": name, "ready": ready}), 200 if ready else 503)
    with service.counted(name, "OIP", "ModelInfer" if verb else "ModelMetadata"):
        return await _infer(service, request, name, version) if verb else _metadata(service, name, version)


def _metadata(service: Service, name: str, version: str) -> Response:
    servable, signature, versions = metadata(service, Spec.parsed(name, version))
    found = {
        "name": servable.model,
        "versions": versions,
        "platform": servable.platform,
        "inputs": described(signature.inputs),
        "outputs": described(signature.outputs),
    }
    return Response(dumps(found))


async def _control(service: Service, request: Request, name: str, verb: str) -> Response:
    if request.method != "POST":
        raise InvalidArgumentError(f"request: method is {request.method}; POST is required")
    service.check_may_change()
    body = await request.body()
    asked = _object(loads(body)) if body else {}
    if verb == "unload":
        await service.manager.unload(name)
    else:
        refuse_parameters(_object(asked.get("parameters", {})))
        await service.manager.load(name)
    return Response(b"")


def _object(value: Any, what: str = "request") -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{what}: is a {type(value).__name__}; an object is required")
    return value


async def _infer(service: Service, request: Request, name: str, version: str) -> Response:
    if request.method != "POST":
        raise InvalidArgumentError(f"request: method is {request.method}; POST is required")
    body = await request.body()
    service.check_room(Spec.parsed(name, version))
    header, raw = _split(request, body)
    asked = _object(loads(header))
    parameters = _object(asked.get("parameters", {}), "parameters")
    given = _inputs(asked, raw)
    wanted = _wanted(asked, parameters)
    spec = Spec.parsed(name, version, signature=parameters.get("signature_name", ""))
    servable, signature = service.find(spec)
    outputs = await servable.run(signature, given, list(wanted), request.wait)
    whole = bool(parameters.get("binary_data_output", False))
    return _response(servable, signature, outputs, asked.get("id"), lambda n: wanted.get(n, whole))


def _split(request: Request, body: bytes) -> tuple[bytes, memoryview]:
    """Returns a request's JSON, and the bytes after it."""
    text = request.header(HEADER_LENGTH)
    if text is None:
        return body, memoryview(b"")
    if not text.isdecimal() or len(text) > 12 or int(text) > len(body):
        raise InvalidArgumentError(
            f"request: Inference-Header-Content-Length is '{text[:50]}'; at most the body's {len(body)} is required"
        )
    return body[: int(text)], memoryview(body)[int(text) :]


def _inputs(asked: Mapping[str, Any], raw: memoryview) -> dict[str, Array]:
    listed = asked.get("inputs")
    if not isinstance(listed, list) or not listed:
        raise InvalidArgumentError("request: 'inputs' is empty or no list; a list of tensors is required")
    found: dict[str, Array] = {}
    at = 0
    for item in listed:
        tensor = _object(item, "input")
        name = tensor.get("name")
        if not isinstance(name, str) or name in found:
            raise InvalidArgumentError(f"input: name is {str(name)[:100]!r}; a name for each, once, is required")
        what = f"input '{name[:200]}'"
        dtype = dtype_of(tensor.get("datatype"), what)
        shape = checked_shape(tensor.get("shape"), dtype, what)
        size = _object(tensor.get("parameters", {}), what).get("binary_data_size")
        if size is None:
            found[name] = _listed(tensor.get("data"), dtype, shape, name[:200])
            continue
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= len(raw) - at:
            raise InvalidArgumentError(
                f"{what}: binary_data_size is {str(size)[:50]}; {len(raw) - at} bytes are left after the JSON"
            )
        found[name] = decode_raw(raw[at : at + size], dtype, shape, what)
        at += size
    if at != len(raw):
        raise InvalidArgumentError(
            f"request: {len(raw)} bytes are after the JSON, and inputs have {at}; both must agree"
        )
    return found


def _listed(data: Any, dtype: DType, shape: tuple[int, ...], name: str) -> Array:
    if not isinstance(data, list):
        raise InvalidArgumentError(f"input '{name}': data is a {type(data).__name__}; a list is required")
    array = decode(data, dtype, name)
    if array.size != np.prod(shape, dtype=np.int64):
        raise InvalidArgumentError(f"input '{name}': data has {array.size} elements; shape {list(shape)} has others")
    return array.reshape(shape)


def _wanted(asked: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, bool]:
    """Returns the outputs that are asked for, and whether as bytes."""
    whole = bool(parameters.get("binary_data_output", False))
    listed = asked.get("outputs", [])
    if not isinstance(listed, list):
        raise InvalidArgumentError(f"request: 'outputs' is a {type(listed).__name__}; a list is required")
    found = {}
    for item in listed:
        name = _object(item, "output").get("name")
        if not isinstance(name, str):
            raise InvalidArgumentError(f"output: name is {str(name)[:100]!r}; a string is required")
        own = _object(item.get("parameters", {}), f"output '{name[:200]}'")
        if "classification" in own:
            raise InvalidArgumentError(f"output '{name[:200]}': asks for a classification; ask for the values")
        found[name] = bool(own.get("binary_data", whole))
    return found


def _response(
    servable: Servable,
    signature: Signature,
    outputs: Mapping[str, Array],
    identifier: Any,
    binary: Callable[[str], bool],
) -> Response:
    made, parts, arrays = [], [], []
    for port in signature.outputs:
        if port.name not in outputs:
            continue
        array = outputs[port.name]
        tensor: dict[str, Any] = {"name": port.name, "datatype": datatype(port), "shape": list(array.shape)}
        if binary(port.name):
            parts.append(encode_raw(array, port.dtype))
            tensor["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            tensor["data"] = plain(array.reshape(-1), port.dtype)
            arrays.append(array)
        made.append(tensor)
    found = {"model_name": servable.model, "model_version": str(servable.version), "outputs": made}
    if isinstance(identifier, str):
        found["id"] = identifier
    header = dumps_arrays(found, arrays)
    if not parts:
        return Response(header)
    headers = [(b"content-type", b"application/octet-stream"), (HEADER_LENGTH, str(len(header)).encode())]
    return Response(header + b"".join(parts), headers=headers)
