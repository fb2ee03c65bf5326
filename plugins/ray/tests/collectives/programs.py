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
import timberframe_sdk as sdk
from timberframe_sdk.testing import asynchronous_device, collective_device

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
    """Returns what `do` gives, or raises, in each process of a group, by rank. expected: how many of them answer."""
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
    """Returns values and gradients of each collective, in a session."""
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


def network(x: Any, labels: Any) -> Any:
    """Returns the loss of a small network, with an embedding of which a step reads some rows."""
    h, init = x, tf.glorot_uniform_initializer(seed=3)
    for i in range(3):
        w = tf.get_variable(f"w{i}", [16, 16], initializer=init)
        h = tf.nn.relu(tf.matmul(h, w) + tf.get_variable(f"b{i}", [16], initializer=tf.zeros_initializer()))
    table = tf.get_variable("table", [5, 16], initializer=init)
    return tf.reduce_mean(tf.square(h - tf.gather(table, labels)))


def trained(steps: int, sharded: bool) -> Any:
    """Returns values of the variables after some steps, of a batch of which each process has its part, or all of it."""
    tf.reset_default_graph()
    rows = 24 // tfr.group().size if sharded else 24
    x, labels = tf.placeholder(tf.float32, [rows, 16]), tf.placeholder(tf.int32, [rows])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    if sharded:
        optimizer = tfr.DistributedOptimizer(optimizer, bucket_bytes=1000)
    step = optimizer.minimize(network(x, labels))
    numbers = np.random.default_rng(0)
    mine = slice(tfr.group().rank * rows, (tfr.group().rank + 1) * rows) if sharded else slice(None)
    with tf.Session(config=tf.SessionConfig(plugins=["cpu"])) as session:
        session.run(tf.global_variables_initializer())
        if sharded:
            session.run(tfr.broadcast_variables(tf.trainable_variables()))
        for _ in range(steps):
            batch = numbers.standard_normal((24, 16)).astype(np.float32), numbers.integers(0, 5, 24)
            session.run(step, {x: batch[0][mine], labels: batch[1][mine]})
        return session.run(tf.trainable_variables())


def trained_in_each_way() -> Any:
    """Twice by all processes together, and once by this one alone."""
    return trained(5, True), trained(5, True), trained(5, False)


def split_products() -> Any:
    """Returns two layers of which each process has columns of the first and rows of the second
    weights: loss and gradients.

    Also those of the whole layers, of which the process's part is given.
    """
    rank, size = tfr.group().rank, tfr.group().size
    numbers = np.random.default_rng(0)
    x, a, b, y = (numbers.standard_normal(s).astype(np.float32) for s in ((4, 6), (6, 8), (8, 3), (4, 3)))
    mine = slice(rank * 8 // size, (rank + 1) * 8 // size)

    columns, rows = tf.constant(a[:, mine]), tf.constant(b[mine])
    (product,) = tfr.all_reduce([tf.matmul(tf.nn.relu(tf.matmul(x, columns)), rows)])
    loss = tf.reduce_mean(tf.square(product - y))
    parts = tf.gradients(loss / size, [columns, rows])

    first, second = tf.constant(a), tf.constant(b)
    whole_loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, first)), second) - y))
    whole = tf.gradients(whole_loss, [first, second])
    with tf.Session() as session:
        return session.run([loss, *parts]), session.run([whole_loss, whole[0][:, mine], whole[1][mine]])


def _sums_on_device(kind: str) -> tuple[Any, Any, tf.SessionConfig]:
    """Returns a sum of what a device for tests makes of a fed tensor: the feed, the result, a
    configuration of sessions.
    """
    module = {"async": asynchronous_device, "collective": collective_device}[kind]
    sdk.register_plugin(kind, module)
    x = tf.placeholder(tf.float32, [100], name="x")
    with tf.device(f"/device:{module.TYPE}:0"):
        (total,) = tfr.all_reduce([x * x])
        y = total + 1.0
    return x, y, tf.SessionConfig(plugins=["cpu", kind])


def on_device(kind: str) -> tuple[bytes, list[str]]:
    """Bits of a sum that is made on a device, by it or by the host, and what the device did in the second run."""
    x, y, config = _sums_on_device(kind)
    given = np.random.default_rng(tfr.group().rank).standard_normal(100).astype(np.float32)
    with tf.Session(config=config) as session:
        session.run(y, {x: given})
        device = next(d for d in session.list_devices() if d.type == kind.upper())
        device.journal.clear()
        return session.run(y, {x: given}).tobytes(), list(device.journal)


def killed_on_device(victim: int) -> Any:
    """As `killed`, with devices that carry the sum out."""
    x, y, config = _sums_on_device("collective")
    given = np.ones(100, np.float32)
    with tf.Session(config=config) as session:
        for _ in range(2):
            session.run(y, {x: given})
        if tfr.group().rank == victim:
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        start = time.monotonic()
        try:
            session.run(y, {x: given})
        except tf.errors.UnavailableError as e:
            return str(e), time.monotonic() - start
    return None
