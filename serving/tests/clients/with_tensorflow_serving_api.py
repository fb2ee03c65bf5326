"""Asks a server with TensorFlow Serving's own stubs; its arguments are those of `with_curl.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

_, rpc, file = sys.argv[1:]
EXPECTED = json.loads(Path(file).read_text())
channel = grpc.insecure_channel(f"127.0.0.1:{rpc}")
predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
models = model_service_pb2_grpc.ModelServiceStub(channel)

for model, case in EXPECTED.items():
    asked = predict_pb2.PredictRequest()
    asked.model_spec.name = model
    asked.inputs["x"].CopyFrom(tf.make_tensor_proto(np.float32(case["x"])))
    answer = predictions.Predict(asked, 10)
    np.testing.assert_allclose(tf.make_ndarray(answer.outputs["y"]), case["y"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(answer.outputs["y"].float_val, np.ravel(case["y"]), rtol=1e-4, atol=1e-5)
    assert answer.model_spec.version.value == 1
    described = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    described.model_spec.name = model
    found = predictions.GetModelMetadata(described, 10).metadata["signature_def"]
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert found.Unpack(signatures)
    assert signatures.signature_def["serving_default"].inputs["x"].dtype == tf.float32.as_datatype_enum
    status = get_model_status_pb2.GetModelStatusRequest()
    status.model_spec.name = model
    (version,) = models.GetModelStatus(status, 10).model_version_status
    assert (version.version, version.state) == (1, get_model_status_pb2.ModelVersionStatus.AVAILABLE)
print(f"tensorflow-serving-api: {len(EXPECTED)} models")
