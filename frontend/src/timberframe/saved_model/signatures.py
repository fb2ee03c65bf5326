"""Signatures: which tensors of a model are its inputs and outputs, by argument name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timberframe.saved_model.constants import (
    CLASSIFY_INPUTS,
    CLASSIFY_METHOD_NAME,
    CLASSIFY_OUTPUT_CLASSES,
    CLASSIFY_OUTPUT_SCORES,
    PREDICT_METHOD_NAME,
    REGRESS_INPUTS,
    REGRESS_METHOD_NAME,
    REGRESS_OUTPUTS,
)
from timberframe_core.dtypes import DType, as_dtype, float32, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import encode_shape


def build_tensor_info(tensor: Any) -> Any:
    """Returns the TensorInfo of a tensor or variable: its name, dtype and shape."""
    found = get_default_graph().as_graph_element(tensor) if not isinstance(tensor, Tensor) else tensor
    if not isinstance(found, Tensor):
        raise InvalidArgumentError(f"signature: {found!r} is no tensor; inputs and outputs of a model are tensors")
    info = messages.TensorInfo(name=found.name, dtype=found.dtype.number)
    info.tensor_shape.CopyFrom(encode_shape(found.static_shape))
    return info


def build_signature_def(
    inputs: Mapping[str, Any] | None = None, outputs: Mapping[str, Any] | None = None, method_name: str | None = None
) -> Any:
    """Returns a SignatureDef of TensorInfos by argument name."""
    signature = messages.SignatureDef(method_name=method_name or "")
    for target, given in ((signature.inputs, inputs), (signature.outputs, outputs)):
        for key, info in (given or {}).items():
            target[key].CopyFrom(messages.as_message(info, messages.TensorInfo, f"tensor info '{key}'"))
    return signature


def signature_def_of_tensors(inputs: Mapping[str, Any], outputs: Mapping[str, Any], method_name: str) -> Any:
    """Returns a SignatureDef of tensors by argument name."""
    given, made = ({key: build_tensor_info(t) for key, t in group.items()} for group in (inputs, outputs))
    return build_signature_def(given, made, method_name)


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """Returns the SignatureDef of a prediction from tensors by argument name."""
    if not inputs or not outputs:
        raise InvalidArgumentError(
            f"signature: has {len(inputs)} inputs and {len(outputs)} outputs; at least one of each is required"
        )
    return signature_def_of_tensors(inputs, outputs, PREDICT_METHOD_NAME)


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """Returns the SignatureDef of a classifier of serialised examples.

    classes: strings; scores: floats; one may be None.
    """
    if examples is None or (classes is None and scores is None):
        raise InvalidArgumentError("signature: a classifier has examples, and classes or scores; they are required")
    made = {CLASSIFY_OUTPUT_CLASSES: (classes, string), CLASSIFY_OUTPUT_SCORES: (scores, float32)}
    outputs = {key: _of_dtype(key, x, kind) for key, (x, kind) in made.items() if x is not None}
    given = {CLASSIFY_INPUTS: _of_dtype(CLASSIFY_INPUTS, examples, string)}
    return build_signature_def(given, outputs, CLASSIFY_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """Returns the SignatureDef of numbers, which are floats, predicted from serialised examples."""
    if examples is None or predictions is None:
        raise InvalidArgumentError("signature: a regression has examples and predictions; both are required")
    given = {REGRESS_INPUTS: _of_dtype(REGRESS_INPUTS, examples, string)}
    outputs = {REGRESS_OUTPUTS: _of_dtype(REGRESS_OUTPUTS, predictions, float32)}
    return build_signature_def(given, outputs, REGRESS_METHOD_NAME)


def _of_dtype(key: str, tensor: Any, dtype: DType) -> Any:
    info = build_tensor_info(tensor)
    if info.dtype != dtype.number:
        raise InvalidArgumentError(f"signature: '{key}' has dtype {as_dtype(info.dtype).name}; it must be {dtype.name}")
    return info


def get_tensor_from_tensor_info(
    tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None
) -> Tensor:
    """Returns the tensor of a graph that a TensorInfo names."""
    prefix = f"{import_scope}/" if import_scope else ""
    return (graph or get_default_graph()).get_tensor_by_name(prefix + tensor_info.name)
