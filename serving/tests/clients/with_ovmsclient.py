"""Asks a server with OpenVINO's client: ``python with_ovmsclient.py HTTP_PORT GRPC_PORT EXPECTED``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from ovmsclient import ModelNotFoundError, make_grpc_client, make_http_client

http, rpc, file = sys.argv[1:]
EXPECTED = json.loads(Path(file).read_text())

for make, port in ((make_grpc_client, rpc), (make_http_client, http)):
    client = make(f"127.0.0.1:{port}")
    for model, case in EXPECTED.items():
        x, y = np.float32(case["x"]), np.float32(case["y"])
        assert client.get_model_status(model)[1]["state"] == "AVAILABLE"
        metadata = client.get_model_metadata(model)
        if port == rpc:
            assert metadata["inputs"]["x"]["dtype"] == "DT_FLOAT"
        else:  # its HTTP side reads OpenVINO's own names and gives what it finds of TensorFlow Serving's
            assert metadata["model_spec"]["name"] == model
        found = client.predict({"x": x}, model, 1)
        found = found["y"] if isinstance(found, dict) else found
        np.testing.assert_allclose(found, y, rtol=1e-4, atol=1e-5)
    try:
        client.predict({"x": x}, "none")
    except ModelNotFoundError:
        continue
    raise AssertionError("a model that is not there has answered")
print(f"ovmsclient: {len(EXPECTED)} models, HTTP and gRPC")
