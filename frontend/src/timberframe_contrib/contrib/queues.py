"""`slim.queues`: the runners of queues while a block is in force."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from timberframe.api.framework import GraphKeys
from timberframe.train.coordinator import Coordinator
from timberframe.train.queue_runner import start_queue_runners
from timberframe_core.errors import WrongStateError

__all__ = ["NestedQueueRunnerError", "QueueRunners"]

_running = threading.local()


class NestedQueueRunnerError(WrongStateError):
    """A block of QueueRunners is within another one."""


@contextmanager
def QueueRunners(session: Any) -> Iterator[None]:  # noqa: N802 - TensorFlow's name
    """Starts all queue runners of the session's graph, and stops them at the end of the block.

    Raises NestedQueueRunnerError within such a block.
    """
    if getattr(_running, "inside", False):
        raise NestedQueueRunnerError("slim.queues.QueueRunners: a block of it is open; they cannot be nested")
    coordinator = Coordinator()
    runners = session.graph.get_collection(GraphKeys.QUEUE_RUNNERS)
    threads = start_queue_runners(session, coordinator) if runners else []
    _running.inside = True
    try:
        yield
        coordinator.request_stop()
    except Exception as e:
        coordinator.request_stop(e)
    finally:
        _running.inside = False
        coordinator.join(threads, stop_grace_period_secs=120)
