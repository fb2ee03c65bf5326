"""Requests and answers of HTTP as bytes on a connection, for tests of what clients' libraries hide."""

from __future__ import annotations

import json
import socket
from typing import Any

PREDICT = "/v1/models/double:predict"
GOOD = json.dumps({"instances": [[1, 2]]}).encode()
SECONDS = 60.0
"""The time after which a server counts as stuck; no test waits for it."""


def connected(server: Any) -> socket.socket:
    """Returns a connection to a server of the tests."""
    return socket.create_connection(("127.0.0.1", server.server.http_port), timeout=SECONDS)


def head(path: str = PREDICT, length: int = len(GOOD), *further: str) -> bytes:
    """Returns the head of a request with a key."""
    lines = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {length}", "X-Api-Key: secret", *further]
    return "\r\n".join([*lines, "", ""]).encode()


def received(connection: socket.socket) -> tuple[bytes, bytes]:
    """Returns the head and the body of the next answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(1)
        assert part, data
        data += part
    found = data.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
    body = b""
    while len(body) < int(found):
        body += connection.recv(int(found) - len(body))
    return data, body
