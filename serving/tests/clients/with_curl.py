"""Asks a server with curl: ``python with_curl.py HTTP_PORT GRPC_PORT EXPECTED``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

http, _, file = sys.argv[1:]
EXPECTED = json.loads(Path(file).read_text())


def curl(path: str, body: Any) -> Any:
    """Returns the JSON that curl gets."""
    command = ["curl", "-sf", f"http://127.0.0.1:{http}{path}", "-d", json.dumps(body)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


for model, case in EXPECTED.items():
    rows = curl(f"/v1/models/{model}:predict", {"instances": case["x"]})["predictions"]
    np.testing.assert_allclose(rows, case["y"], rtol=1e-4, atol=1e-5)
    columns = curl(f"/v1/models/{model}/versions/1:predict", {"inputs": {"x": case["x"]}})["outputs"]
    np.testing.assert_allclose(columns, case["y"], rtol=1e-4, atol=1e-5)
print(f"curl: {len(EXPECTED)} models")
