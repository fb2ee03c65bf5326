"""SavedModels as ONNX models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import onnx

import timberframe as tf
from timberframe_core.errors import InvalidArgumentError
from timberframe_onnx.exporting.export import DEFAULT_OPSET, export_model

DEFAULT_SIGNATURE = "serving_default"


def export_saved_model(
    folder: str | os.PathLike[str], opset: int = DEFAULT_OPSET, signature: str = DEFAULT_SIGNATURE
) -> onnx.ModelProto:
    """Returns the ONNX model of a signature of a SavedModel, with the names of inputs and outputs that it has there.

    Raises InvalidArgumentError where the SavedModel has no such signature.
    """
    with tf.Graph().as_default() as graph, tf.Session() as session:
        loaded: Any = tf.saved_model.loader.load(session, [tf.saved_model.SERVING], os.fspath(folder))
        signatures: Mapping[str, Any] = loaded.signature_def
        if signature not in signatures:
            raise InvalidArgumentError(f"the SavedModel has no signature '{signature}'; it has {sorted(signatures)}")
        chosen = signatures[signature]
        inputs = {name: graph.get_tensor_by_name(info.name) for name, info in sorted(chosen.inputs.items())}
        outputs = {name: graph.get_tensor_by_name(info.name) for name, info in sorted(chosen.outputs.items())}
        return export_model(outputs, opset, inputs, session)
