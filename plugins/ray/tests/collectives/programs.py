"""What processes of a group run in the tests; they are started by `multiprocessing`, so that this can be imported."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import timberframe as tf
import timberframe_ray as tfr

SECONDS = 60.0


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return f"127.0.0.1:{found.getsockname()[1]}"


def _enter(do: Callable[..., Any], rank: int, size: int, address: str, results: Any, arguments: Any) -> None:
    tfr.join(rank, size, address, seconds=SECONDS)
    try:
        results.put((rank, do(*arguments)))
    except Exception as e:
        results.put((rank, e))
    tfr.leave()


def in_processes(size: int, do: Callable[..., Any], *arguments: Any, expected: int | None = None) -> dict[int, Any]:
    """What `do` gives, or raises, in each process of a group, by rank. expected: how many of them answer."""
    context = multiprocessing.get_context("spawn")
    results, address = context.Queue(), free_address()
    processes = [
        context.Process(target=_enter, args=(do, rank, size, address, results, arguments)) for rank in range(size)
    ]
    for process in processes:
        process.start()
    try:
        return dict(results.get(timeout=120) for _ in range(size if expected is None else expected))
    finally:
        for process in processes:
            process.join(20)
            process.kill()


def collectives() -> list[Any]:
    """Values and gradients of each collective, in a session."""
    rank, size = tfr.group().rank, tfr.group().size
    x, y = tf.constant([1.0 + rank, 2.0]), tf.constant([[3.0 * rank]])
    first, second = tfr.all_reduce([x, y])
    gathered = tfr.all_gather(y)
    scattered = tfr.reduce_scatter(tf.constant(np.arange(2 * size, dtype=np.float32)))
    copied = tfr.broadcast(x, root=1)
    factor = 1.0 + rank
    pairs = [(first, x), (gathered, y), (copied, x)]
    gradients = [tf.gradients(tf.reduce_sum(t * factor), source)[0] for t, source in pairs]
    with tf.Session() as session:
        # each in a run of its own, in the same order everywhere
        return [session.run(t) for t in (first, second, gathered, scattered, copied, *gradients)]


def killed(victim: int) -> Any:
    """One process ends itself while the others are in an all-reduce: their error, and how long it took to come."""
    x = tf.constant(np.ones(1000, np.float32), name="x")
    (total,) = tfr.all_reduce([x])
    with tf.Session() as session:
        session.run(total)
        if tfr.group().rank == victim:
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        start = time.monotonic()
        try:
            session.run(total)
        except tf.errors.UnavailableError as e:
            return str(e), time.monotonic() - start
    return None
