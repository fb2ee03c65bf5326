"""The actor that is one process of a training: it joins the group of all, and runs the program's function."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable
from typing import Any

import ray
from ray import cloudpickle

from timberframe_ray.collectives.group import join, leave
from timberframe_sdk import UnknownError


class Trainer:
    """One process of a training."""

    def address(self) -> str:
        """Returns where a group can meet in which this process has rank 0."""
        with socket.create_server(("", 0)) as found:
            return f"{ray.util.get_node_ip_address()}:{found.getsockname()[1]}"

    def run(self, train_fn: Callable[[], Any], rank: int, size: int, address: str, name: str, seconds: float) -> Any:
        """Returns what the function gives; or its error, and whether a lost process is the cause."""
        joined = None
        try:
            joined = join(rank, size, address, name, seconds)
            return {"result": train_fn()}
        except Exception as e:
            return {"error": _carried(e, rank), "lost": joined is None or joined.failed}
        finally:
            leave()


def _carried(error: Exception, rank: int) -> Exception:
    """Returns the error for another process, with a note of where it was raised; an UnknownError
    where its class cannot go.
    """
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:
        error = UnknownError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    error.add_note(f"It was raised by rank {rank}:\n{''.join(traceback.format_exception(error)).rstrip()}")
    return error
