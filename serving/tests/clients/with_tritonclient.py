"""Asks a server with tritonclient, over HTTP and gRPC: ``python with_tritonclient.py HTTP_PORT GRPC_PORT EXPECTED``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http

http, rpc, file = sys.argv[1:]
EXPECTED = json.loads(Path(file).read_text())
CLIENTS = [(tritonclient.http, http, {}), (tritonclient.grpc, rpc, {})]


def check(library: Any, port: str, model: str, x: Any, y: Any, **options: Any) -> None:
    """Asks for one model's answer in every way that the library has."""
    client = library.InferenceServerClient(f"127.0.0.1:{port}")
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(model, "1")
    client.get_server_metadata()
    metadata = client.get_model_metadata(model)
    names = metadata["inputs"] if isinstance(metadata, dict) else metadata.inputs
    assert len(names) == 1
    for binary in (True, False) if library is tritonclient.http else (None,):
        given = library.InferInput("x", list(x.shape), "FP32")
        given.set_data_from_numpy(x, **({} if binary is None else {"binary_data": binary}))
        wanted = library.InferRequestedOutput("y", **({} if binary is None else {"binary_data": binary}))
        answer = client.infer(model, [given], outputs=[wanted], request_id="7", **options)
        np.testing.assert_allclose(answer.as_numpy("y"), y, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(client.infer(model, [given]).as_numpy("y"), y, rtol=1e-4, atol=1e-5)
    words = ""
    try:
        client.infer("none", [given])
    except tritonclient.utils.InferenceServerException as error:
        words = str(error)
    assert "model 'none': is not known" in words
    client.close()


for name, case in EXPECTED.items():
    for library, port, options in CLIENTS:
        check(library, port, name, np.float32(case["x"]), np.float32(case["y"]), **options)
    compressed = {"request_compression_algorithm": "gzip"}
    check(tritonclient.http, http, name, np.float32(case["x"]), np.float32(case["y"]), **compressed)
client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{http}")
assert {m["name"] for m in client.get_model_repository_index()} >= set(EXPECTED)
control = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{rpc}")
control.unload_model(next(iter(EXPECTED)))
assert not control.is_model_ready(next(iter(EXPECTED)))
control.load_model(next(iter(EXPECTED)))
assert control.is_model_ready(next(iter(EXPECTED)))
print(f"tritonclient: {len(EXPECTED)} models, HTTP and gRPC")
