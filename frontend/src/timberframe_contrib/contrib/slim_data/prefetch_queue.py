"""`slim.prefetch_queue`: a queue of batches that are made ahead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timberframe.api.framework import name_scope
from timberframe.api.queues import FIFOQueue, PaddingFIFOQueue, QueueBase
from timberframe.train.queue_runner import QueueRunner, add_queue_runner, summarize_fullness
from timberframe_core.graph.apply import convert_to_tensor


def prefetch_queue(
    tensors: Any,
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """Returns a queue that threads fill with what these tensors, a list or dict, are in each run.

    Its `dequeue` gives a list, or a dict of the same names. dynamic_pad: it is a PaddingFIFOQueue, whose elements may
    differ in shape. A queue runner is added.
    """
    names = list(tensors) if isinstance(tensors, Mapping) else None
    listed = list(tensors.values()) if isinstance(tensors, Mapping) else list(tensors)
    with name_scope(name, "prefetch_queue", listed):
        parts = [convert_to_tensor(t) for t in listed]
        make = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        shapes = [t.get_shape() for t in parts]
        known = dynamic_pad or all(s.is_fully_defined() for s in shapes)
        queue = make(capacity, [t.dtype for t in parts], shapes if known else None, names, shared_name, "fifo_queue")
        element = parts if names is None else dict(zip(names, parts, strict=True))
        add_queue_runner(QueueRunner(queue, [queue.enqueue(element)] * num_threads))
        summarize_fullness(queue, capacity, f"fraction_of_{capacity}_full")
    return queue
