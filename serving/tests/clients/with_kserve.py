"""Asks a server with kserve's clients: ``python with_kserve.py HTTP_PORT GRPC_PORT EXPECTED``."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

http, rpc, file = sys.argv[1:]
EXPECTED = json.loads(Path(file).read_text())


def request(model: str, x: Any, binary: bool) -> InferRequest:
    """Returns a request of the Open Inference Protocol."""
    given = InferInput("x", list(x.shape), "FP32")
    given.set_data_from_numpy(x, binary_data=binary)
    return InferRequest(model, [given], request_id="7")


async def main() -> None:
    base = f"http://127.0.0.1:{http}"
    second = InferenceRESTClient(RESTConfig(protocol="v2"))
    first = InferenceRESTClient(RESTConfig(protocol="v1"))
    grpc = InferenceGRPCClient(f"127.0.0.1:{rpc}")
    assert await second.is_server_ready(base)
    assert await second.is_server_live(base)
    assert await grpc.is_server_ready()
    for model, case in EXPECTED.items():
        x, y = np.float32(case["x"]), np.float32(case["y"])
        assert await second.is_model_ready(base, model)
        for binary in (True, False):
            answer = await second.infer(base, request(model, x, binary), model_name=model)
            np.testing.assert_allclose(answer.outputs[0].as_numpy(), y, rtol=1e-4, atol=1e-5)
        answer = await first.infer(base, {"instances": x.tolist()}, model_name=model)
        np.testing.assert_allclose(answer["predictions"], y, rtol=1e-4, atol=1e-5)
        for binary in (True, False):
            answer = await grpc.infer(request(model, x, binary))
            np.testing.assert_allclose(answer.outputs[0].as_numpy(), y, rtol=1e-4, atol=1e-5)
    await grpc.close()
    print(f"kserve: {len(EXPECTED)} models, REST v1 and v2, gRPC")


asyncio.run(main())
