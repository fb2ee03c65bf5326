"""The Open Inference Protocol's gRPC service, and gRPC's own health service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_serving import __version__
from timberframe_serving.messages import health, inference
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
from timberframe_serving.rpc.calls import handlers
from timberframe_serving.service import Service, Spec
from timberframe_serving.signatures import Array

_CONTENTS = {
    "bool": "bool_contents", "int8": "int_contents", "int16": "int_contents", "int32": "int_contents",
    "int64": "int64_contents", "uint8": "uint_contents", "uint16": "uint_contents", "uint32": "uint_contents",
    "uint64": "uint64_contents", "float32": "fp32_contents", "float64": "fp64_contents", "string": "bytes_contents",
}  # fmt: skip


def inference_service(service: Service) -> Any:
    """Returns the handlers of `inference.GRPCInferenceService`."""

    async def model_metadata(request: Any) -> Any:
        with service.counted(request.name, "OIP", "ModelMetadata"):
            servable, signature, versions = metadata(service, Spec.parsed(request.name, request.version))
        made = inference("ModelMetadataResponse")(name=servable.model, versions=versions, platform=servable.platform)
        for target, ports in ((made.inputs, signature.inputs), (made.outputs, signature.outputs)):
            for row in described(ports):
                target.add(**row)
        return made

    async def infer(request: Any) -> Any:
        with service.counted(request.model_name, "OIP", "ModelInfer"):
            return await _infer(service, request)

    methods = {**_states(service), **_repository(service)}
    methods["ModelMetadata"] = (inference("ModelMetadataRequest"), model_metadata)
    methods["ModelInfer"] = (inference("ModelInferRequest"), infer)
    return handlers(service, "inference.GRPCInferenceService", methods)


def _states(service: Service) -> dict[str, Any]:
    async def live(_: Any) -> Any:
        return inference("ServerLiveResponse")(live=True)

    async def ready(_: Any) -> Any:
        return inference("ServerReadyResponse")(ready=service.ready)

    async def model_ready(request: Any) -> Any:
        return inference("ModelReadyResponse")(ready=is_ready(service, Spec.parsed(request.name, request.version)))

    async def server_metadata(_: Any) -> Any:
        extensions = [e for e in EXTENSIONS if e != "binary_tensor_data"]
        return inference("ServerMetadataResponse")(
            name="timberframe-serving", version=__version__, extensions=extensions
        )

    return {
        "ServerLive": (inference("ServerLiveRequest"), live),
        "ServerReady": (inference("ServerReadyRequest"), ready),
        "ModelReady": (inference("ModelReadyRequest"), model_ready),
        "ServerMetadata": (inference("ServerMetadataRequest"), server_metadata),
    }


def _repository(service: Service) -> dict[str, Any]:
    async def listed(request: Any) -> Any:
        made = inference("RepositoryIndexResponse")()
        for row in index(service, request.ready):
            made.models.add(**row)
        return made

    async def load(request: Any) -> Any:
        service.check_may_change()
        refuse_parameters(request.parameters)
        await service.manager.load(request.model_name)
        return inference("RepositoryModelLoadResponse")()

    async def unload(request: Any) -> Any:
        service.check_may_change()
        await service.manager.unload(request.model_name)
        return inference("RepositoryModelUnloadResponse")()

    return {
        "RepositoryIndex": (inference("RepositoryIndexRequest"), listed),
        "RepositoryModelLoad": (inference("RepositoryModelLoadRequest"), load),
        "RepositoryModelUnload": (inference("RepositoryModelUnloadRequest"), unload),
    }


async def _infer(service: Service, request: Any) -> Any:
    chosen = request.parameters["signature_name"].string_param if "signature_name" in request.parameters else ""
    servable, signature = service.find(Spec.parsed(request.model_name, request.model_version, signature=chosen))
    servable.check_room()
    raw = list(request.raw_input_contents)
    given = _inputs(request, raw)
    outputs = await servable.run(signature, given, [o.name for o in request.outputs])
    made = inference("ModelInferResponse")(
        model_name=servable.model, model_version=str(servable.version), id=request.id
    )
    listed = not raw and all(p.dtype.name in _CONTENTS for p in signature.outputs)
    for port in signature.outputs:
        if port.name not in outputs:
            continue
        array = outputs[port.name]
        tensor = made.outputs.add(name=port.name, datatype=datatype(port), shape=array.shape)
        if listed:
            _list(tensor.contents, array, port.dtype)
        else:
            made.raw_output_contents.append(encode_raw(array, port.dtype))
    return made


def _inputs(request: Any, raw: list[bytes]) -> Mapping[str, Array]:
    """Returns the inputs: their bytes in order, or the values that each lists; answers come in the same form."""
    if raw and len(raw) != len(request.inputs):
        raise InvalidArgumentError(
            f"request: has {len(raw)} raw_input_contents and {len(request.inputs)} inputs; equal numbers are required"
        )
    found: dict[str, Array] = {}
    for i, tensor in enumerate(request.inputs):
        what = f"input '{tensor.name[:200]}'"
        if tensor.name in found:
            raise InvalidArgumentError(f"{what}: is there twice; each input may be given once")
        dtype = dtype_of(tensor.datatype, what)
        shape = checked_shape(tensor.shape, dtype, what)
        found[tensor.name] = decode_raw(raw[i], dtype, shape, what) if raw else _listed(tensor, dtype, shape, what)
    return found


def _listed(tensor: Any, dtype: DType, shape: tuple[int, ...], what: str) -> Array:
    field = _CONTENTS.get(dtype.name)
    if field is None:
        raise InvalidArgumentError(f"{what}: {tensor.datatype} cannot be listed; raw_input_contents are required")
    values = getattr(tensor.contents, field)
    if len(values) != int(np.prod(shape, dtype=np.int64)):
        raise InvalidArgumentError(f"{what}: {field} has {len(values)} elements; shape {list(shape)} has others")
    if dtype is string:
        array = np.empty(len(values), object)
        array[:] = list(values)
    else:
        wide = np.array(values, np.int64 if field in ("int_contents", "uint_contents") else dtype.numpy)
        array = wide.astype(dtype.numpy)
        if dtype.is_integer and not np.array_equal(array, wide):
            raise InvalidArgumentError(f"{what}: {field} holds a number beyond {dtype.name}; it must fit")
    return array.reshape(shape)


def _list(contents: Any, array: Array, dtype: DType) -> None:
    values = array.ravel().tolist()
    if dtype is string:
        values = [v if isinstance(v, bytes) else str(v).encode() for v in values]
    getattr(contents, _CONTENTS[dtype.name]).extend(values)


def health_service(service: Service) -> Any:
    """Returns the handlers of `grpc.health.v1.Health`, which need no key."""

    async def check(_: Any) -> Any:
        states = health("HealthCheckResponse").ServingStatus
        return health("HealthCheckResponse")(status=states.Value("SERVING" if service.ready else "NOT_SERVING"))

    methods = {"Check": (health("HealthCheckRequest"), check)}
    return handlers(service, "grpc.health.v1.Health", methods, needs_key=False)
