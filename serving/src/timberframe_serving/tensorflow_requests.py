"""TensorFlow Serving's requests and answers as arrays, and back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from timberframe_core.dtypes import DType, as_dtype, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages as graph_messages
from timberframe_core.graphdef.tensors import decode_shape, encode_shape, make_ndarray, value_field
from timberframe_serving import messages
from timberframe_serving.signatures import Array, Signature

LARGEST_TENSOR = 1 << 30
"""Bytes of a tensor in a request: a short message can stand for a large tensor of one value."""
_CLASSES, _SCORES, _INPUTS, _OUTPUTS = "classes", "scores", "inputs", "outputs"


def decode_tensor(name: str, proto: Any) -> Array:
    """Returns the array of a TensorProto; raises InvalidArgumentError for one that is damaged or over a gibibyte."""
    what = f"input '{name[:200]}'"
    sizes = decode_shape(proto.tensor_shape, what)
    size = as_dtype(proto.dtype).size if proto.dtype else 1
    count = math.prod(d or 0 for d in sizes or ())
    if count * size > LARGEST_TENSOR:
        raise InvalidArgumentError(
            f"{what}: has {count} elements of {size} bytes; at most {LARGEST_TENSOR} bytes are taken"
        )
    return make_ndarray(proto, what)


def encode_tensor(array: Array, dtype: DType) -> Any:
    """Returns an array as a TensorProto that lists its values, where clients of TensorFlow Serving look for them."""
    proto = graph_messages.TensorProto(dtype=dtype.number, tensor_shape=encode_shape(array.shape))
    field = value_field(dtype)
    flat = array.ravel()
    if dtype == string:
        proto.string_val.extend(x if isinstance(x, bytes) else str(x).encode() for x in flat)
    elif field == "float8_val":
        proto.float8_val = flat.tobytes()
    elif field == "half_val":
        proto.half_val.extend(flat.view(np.uint16).tolist())
    elif dtype.is_complex:
        getattr(proto, field).extend(flat.view(dtype.real_dtype.numpy).tolist())
    else:
        getattr(proto, field).extend(flat.tolist())
    return proto


def decode_inputs(inputs: Mapping[str, Any]) -> dict[str, Array]:
    """Returns the arrays of a PredictRequest's inputs."""
    return {name: decode_tensor(name, proto) for name, proto in inputs.items()}


def decode_examples(given: Any) -> Array:
    """Returns the serialized examples of an Input, with the features of its context added to each.

    Raises InvalidArgumentError where there are none.
    """
    kind = given.WhichOneof("kind")
    listed = getattr(given, kind).examples if kind else ()
    if not len(listed):
        raise InvalidArgumentError("request: input has no examples; at least one is required")
    array = np.empty(len(listed), object)
    for i, example in enumerate(listed):
        if kind == "example_list_with_context":
            whole = graph_messages.Example()
            whole.MergeFrom(given.example_list_with_context.context)
            whole.MergeFrom(example)
            example = whole
        array[i] = example.SerializeToString()
    return array


def example_inputs(signature: Signature, examples: Array, method: str) -> dict[str, Array]:
    """Returns what a signature is fed for examples; raises InvalidArgumentError where it is not of this method."""
    if signature.method != method or len(signature.inputs) != 1:
        raise InvalidArgumentError(
            f"signature '{signature.name}': has the method '{signature.method}' and {len(signature.inputs)} inputs; "
            f"'{method}' and one input of serialized examples are required"
        )
    return {signature.inputs[0].name: examples}


def classification_result(outputs: Mapping[str, Array], count: int) -> Any:
    """Returns the ClassificationResult of the outputs `classes` and `scores`, of which one may be missing."""
    classes, scores = outputs.get(_CLASSES), outputs.get(_SCORES)
    for name, array in ((_CLASSES, classes), (_SCORES, scores)):
        if array is not None and (array.ndim != 2 or array.shape[0] != count):
            raise InvalidArgumentError(
                f"output '{name}': has shape {list(array.shape)}; ({count}, classes) is required"
            )
    if classes is None:
        if scores is None:
            raise InvalidArgumentError(
                f"classification: the outputs are {sorted(outputs)}; classes or scores are required"
            )
        classes = np.full(scores.shape, b"", object)
    if scores is None:
        scores = np.zeros(classes.shape)
    result = messages.serving("ClassificationResult")()
    for row in range(count):
        found = result.classifications.add()
        for label, value in zip(classes[row].tolist(), scores[row].tolist(), strict=True):
            text = label.decode(errors="replace") if isinstance(label, bytes) else str(label)
            found.classes.add(label=text, score=value)
    return result


def regression_result(outputs: Mapping[str, Array], count: int) -> Any:
    """Returns the RegressionResult of the output `outputs`, or of the only one."""
    array = outputs.get(_OUTPUTS, next(iter(outputs.values())) if len(outputs) == 1 else None)
    if array is None or array.size != count or array.ndim > 2:
        shape = None if array is None else list(array.shape)
        raise InvalidArgumentError(f"regression: output '{_OUTPUTS}' has shape {shape}; ({count},) is required")
    result = messages.serving("RegressionResult")()
    for value in array.ravel().tolist():
        result.regressions.add(value=value)
    return result


def arrays_of_log(log: Any) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yields the signature and inputs of each run that a PredictionLog stands for."""
    kind = log.WhichOneof("log_type")
    if kind is None:
        return
    request = getattr(log, kind).request
    if kind == "predict_log":
        yield request.model_spec.signature_name, decode_inputs(request.inputs)
        return
    examples = decode_examples(request.input)
    specs = [t.model_spec for t in request.tasks] if kind == "multi_inference_log" else [request.model_spec]
    for spec in specs:
        yield spec.signature_name, {_INPUTS: examples}
