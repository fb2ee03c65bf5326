"""The actor that is one process of a training: it joins the group of all, and runs the program's function."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import ray

from timberframe_ray.collectives.group import join, leave
from timberframe_sdk.remote.errors import error_header


class Trainer:
    """One process of a training."""

    def address(self) -> str:
        """Where a group can meet in which this process has rank 0."""
        with socket.create_server(("", 0)) as found:
            return f"{ray.util.get_node_ip_address()}:{found.getsockname()[1]}"

    def run(self, train_fn: Callable[[], Any], rank: int, size: int, address: str, name: str, seconds: float) -> Any:
        """What the function gives; or the message of its error, and whether a lost process is the cause."""
        joined = None
        try:
            joined = join(rank, size, address, name, seconds)
            return {"result": train_fn()}
        except Exception as e:
            return {**error_header(e), "lost": joined is None or joined.failed}
        finally:
            leave()
