"""Messages between client and worker: a header in JSON, then the arrays as raw bytes. Nothing in them is code.

Strings are none of them: they live in the memory of the client's process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from timberframe_core.dtypes import as_dtype

KEY = "TIMBERFRAME_PROCESS_TARGET"
"""The environment variable that holds the password of the connections."""


def send(connection: Connection, header: Mapping[str, Any], arrays: Sequence[np.ndarray] = ()) -> None:
    """Sends one message."""
    kinds = [[as_dtype(a.dtype).name, list(a.shape)] for a in arrays]
    connection.send_bytes(json.dumps({**header, "arrays": kinds}).encode())
    for array in arrays:
        if array.nbytes:
            connection.send_bytes(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def receive(connection: Connection) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Waits for one message; EOFError or OSError where the other side has ended."""
    header = json.loads(connection.recv_bytes())
    return header, [_array(connection, name, tuple(shape)) for name, shape in header.pop("arrays")]


def _array(connection: Connection, name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(shape, as_dtype(name).numpy)
    if array.nbytes:
        connection.recv_bytes_into(array.reshape(-1).view(np.uint8).data)
    return array
