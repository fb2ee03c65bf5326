"""TensorFlow Serving's REST API: predict, classify, regress, status and metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from google.protobuf import json_format

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages as graph_messages
from timberframe_serving import messages
from timberframe_serving.codes import code_name, shown
from timberframe_serving.http.messages import Handler, Request, Response
from timberframe_serving.json_tensors import (
    as_bytes,
    decode,
    dumps,
    dumps_arrays,
    instance_columns,
    is_bytes_object,
    loads,
    plain,
)
from timberframe_serving.servable import Servable
from timberframe_serving.service import Service, Spec, signature_map
from timberframe_serving.signatures import Array, Signature
from timberframe_serving.tensorflow_requests import encode_tensor

PATH = re.compile(r"/v1/models/([^/:]+)(?:/versions/([^/:]+)|/labels/([^/:]+))?(?::(\w+)|(/metadata))?")


def parsed_spec(found: re.Match[str]) -> Spec:
    """Returns what a path asks for."""
    name, number, label, *_ = found.groups()
    return Spec.parsed(name, number or "", label)


def handler(service: Service, method: str, found: re.Match[str]) -> Handler:
    """Returns what answers requests of a method and a path that matches PATH."""
    verb, metadata = found[4], found[5]
    if verb is None:
        if method != "GET":
            raise InvalidArgumentError(f"request: method is {method}; GET, or a POST of :predict, is required")
        return partial(_described, service, parsed_spec(found), bool(metadata))
    if method != "POST" or verb not in ("predict", "classify", "regress"):
        raise InvalidArgumentError(
            f"request: is {method} of ':{verb[:50]}'; POST of :predict, :classify or :regress is required"
        )
    return partial(_computed, service, parsed_spec(found), verb)


async def _described(service: Service, spec: Spec, metadata: bool, request: Request) -> Response:
    with service.counted(spec.name, "REST", "GetModelMetadata" if metadata else "GetModelStatus"):
        return _metadata(service, spec) if metadata else _status(service, spec)


async def _computed(service: Service, spec: Spec, verb: str, request: Request) -> Response:
    with service.counted(spec.name, "REST", verb.capitalize()):
        content = await request.body()
        servable = service.manager.servable(spec.name, spec.version, spec.label)
        servable.check_room()
        body = loads(content)
        if not isinstance(body, dict):
            raise InvalidArgumentError("request: is no JSON object; one is required")
        if "signature_name" in body:
            spec = spec.of_signature(body["signature_name"])
        if verb == "predict":
            return await _predict(service, request, servable, servable.signature(spec.signature), body)
        return await _examples(service, request, spec, body, verb)


async def _predict(
    service: Service, request: Request, servable: Servable, signature: Signature, body: dict[str, Any]
) -> Response:
    rows = "instances" in body
    if rows == ("inputs" in body):
        raise InvalidArgumentError("request: has both or none of 'instances' and 'inputs'; one of them is required")
    names = [p.name for p in signature.inputs]
    columns = instance_columns(body["instances"], names) if rows else _columns(body["inputs"], names)
    given = {p.name: decode(columns[p.name], p.dtype, p.name) for p in signature.inputs if p.name in columns}
    if len(given) < len(columns):  # the check of names refuses the others
        given |= dict.fromkeys(columns.keys() - given.keys(), np.empty(0))
    outputs = await servable.run(signature, given, (), request.wait)
    _record(service, servable, signature, given)
    written = {p.name: plain(outputs[p.name], p.dtype, p.name.endswith("_bytes")) for p in signature.outputs}
    arrays = list(outputs.values())
    only = next(iter(written.values())) if len(written) == 1 else None
    if not rows:
        return Response(dumps_arrays({"outputs": written if only is None else only}, arrays))
    if only is None:
        return Response(dumps_arrays({"predictions": _rows(written, outputs)}, arrays))
    if not arrays[0].ndim:
        raise _no_rows(signature.outputs[0].name, arrays[0])
    return Response(dumps_arrays({"predictions": only}, arrays))


def _columns(given: Any, names: list[str]) -> Mapping[str, Any]:
    """Returns the value of each input: `inputs` is the value of the only one, or an object by input."""
    if isinstance(given, dict) and not is_bytes_object(given):
        return given
    if len(names) != 1:
        raise InvalidArgumentError(f"request: 'inputs' is a value; an object with {sorted(names)} is required")
    return {names[0]: given}


def _rows(written: Mapping[str, Any], outputs: Mapping[str, Array]) -> list[dict[str, Any]]:
    for name, array in outputs.items():
        if not array.ndim:
            raise _no_rows(name, array)
    counts = {len(a) for a in outputs.values()}
    if len(counts) != 1:
        raise InvalidArgumentError(
            f"response: outputs have {sorted(counts)} rows, and 'instances' needs equal ones; ask with 'inputs'"
        )
    return [{name: value[i] for name, value in written.items()} for i in range(counts.pop())]


def _no_rows(name: str, array: Array) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"response: output '{name}' has shape {list(array.shape)}, no row for each instance; ask with 'inputs'"
    )


def _record(service: Service, servable: Servable, signature: Signature, given: Mapping[str, Array]) -> None:
    settings = service.manager.models[servable.model].settings
    if not settings.sampling_rate:
        return
    made = messages.serving("PredictRequest")()
    made.model_spec.name, made.model_spec.signature_name = servable.model, signature.name
    for port in signature.inputs:
        if port.name in given:
            made.inputs[port.name].CopyFrom(encode_tensor(given[port.name], port.dtype))
    service.recorder.record(settings, "predict_log", made)


# Examples


async def _examples(service: Service, request: Request, spec: Spec, body: dict[str, Any], verb: str) -> Response:
    kind = "ClassificationRequest" if verb == "classify" else "RegressionRequest"
    asked = messages.serving(kind)()
    asked.model_spec.name, asked.model_spec.signature_name = spec.name, spec.signature
    if spec.version is not None:
        asked.model_spec.version.value = spec.version
    elif spec.label is not None:
        asked.model_spec.version_label = spec.label
    examples = body.get("examples")
    if not isinstance(examples, list) or not examples:
        raise InvalidArgumentError("request: 'examples' is empty or no list; a list of objects of features is required")
    made = [_example(e) for e in examples]
    if "context" in body:
        asked.input.example_list_with_context.context.CopyFrom(_example(body["context"]))
        asked.input.example_list_with_context.examples.extend(made)
    else:
        asked.input.example_list.examples.extend(made)
    result = (await service.examples(asked, verb, request.wait)).result
    if verb == "regress":
        values = [np.float32(r.value) for r in result.regressions]
        return Response(dumps_arrays({"results": values}, [np.array(values)]))
    rows = [[[c.label, np.float32(c.score)] for c in row.classes] for row in result.classifications]
    scores = [np.array([c.score for row in result.classifications for c in row.classes])]
    return Response(dumps_arrays({"results": rows}, scores))


def _example(given: Any) -> Any:
    """Returns the Example of an object of features: numbers, strings, or lists of one kind of them."""
    if not isinstance(given, dict):
        raise InvalidArgumentError(f"request: an example is a {type(given).__name__}; an object is required")
    example = graph_messages.Example()
    for name, value in given.items():
        values = value if isinstance(value, list) else [value]
        feature = example.features.feature[name]
        if any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in values):
            raise InvalidArgumentError(f"feature '{name[:200]}': holds a number of over 64 bits; a shorter is required")
        if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            feature.int64_list.value.extend(values)
        elif all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            feature.float_list.value.extend(float(v) for v in values)
        else:
            feature.bytes_list.value.extend(as_bytes(v, name[:200]) for v in values)
    return example


# What there is


def _status(service: Service, spec: Spec) -> Response:
    found = [
        {
            "version": str(v.number),
            "state": v.state.public,
            "status": {
                "error_code": code_name(v.error.error_code if v.error else 0),
                "error_message": shown(str(v.error)) if v.error else "",
            },
        }
        for v in service.versions(spec)
    ]
    return Response(dumps({"model_version_status": found}))


def _metadata(service: Service, spec: Spec) -> Response:
    servable = service.manager.servable(spec.name, spec.version, spec.label)
    made = signature_map(servable.signatures.values())
    written = json_format.MessageToDict(
        made, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    found = {
        "model_spec": {"name": servable.model, "signature_name": "", "version": str(servable.version)},
        "metadata": {"signature_def": written},
    }
    return Response(dumps(found))
