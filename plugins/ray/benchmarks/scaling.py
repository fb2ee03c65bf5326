"""Steps of data-parallel training, by number of processes: prints JSON.

``python plugins/ray/benchmarks/scaling.py --workers 1 2 4 --layers 4 --forward 0.001 --bytes 2700000``. Each layer
sleeps forward, twice as long backward, and has its share of the bytes of gradients. ``--rows N`` in place of --forward
takes the CPU's kernels, in one thread: layers are products of N rows with square matrices of as many bytes.
steps: the quickest and the median. throughput: of all processes together, over that of one; processor: seconds of it in
each process and step.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import time
from typing import Any

import numpy as np
from all_reduce import free_address
from sleeping import sleep

import timberframe as tf
import timberframe_ray as tfr


def sleeping(given: Any) -> tuple[Any, Any, tf.SessionConfig]:
    """Returns a placeholder, what comes of it after layers that sleep, and a configuration with one thread."""
    count = given.bytes // given.layers // 4
    x = tf.placeholder(tf.float32, [count])
    h = x
    for i in range(given.layers):
        weights = tf.get_variable(f"w{i}", [count], initializer=tf.ones_initializer())
        h = sleep(h, given.forward, 2 * given.forward, [weights])
    return x, h, tf.SessionConfig(plugins=["cpu", "sleeping"], intra_op_parallelism_threads=1)


def computing(given: Any) -> tuple[Any, Any, tf.SessionConfig]:
    """Returns a placeholder, what comes of it after products of matrices, and a configuration with one thread."""
    width = math.isqrt(given.bytes // given.layers // 4)
    x = tf.placeholder(tf.float32, [given.rows, width])
    h = x
    for i in range(given.layers):
        h = tf.nn.relu(
            tf.matmul(h, tf.get_variable(f"w{i}", [width, width], initializer=tf.glorot_uniform_initializer()))
        )
    return x, h, tf.SessionConfig(plugins=["cpu"], intra_op_parallelism_threads=1)


def work(rank: int, size: int, address: str, given: Any, results: Any) -> None:
    """Runs in one process: seconds of its steps, the quickest and the median, and of processor time in each."""
    tfr.join(rank, size, address)
    x, h, config = (computing if given.rows else sleeping)(given)
    optimizer = tfr.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.0), given.bucket)
    step = optimizer.minimize(tf.reduce_mean(h))
    times = []
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        batch = np.ones(x.shape.as_list(), np.float32)
        for _ in range(given.steps + 3):
            start, begun = time.perf_counter(), time.process_time()
            session.run(step, {x: batch})
            times.append((time.perf_counter() - start, time.process_time() - begun))
    seconds, busy = zip(*times[3:], strict=True)
    results.put((min(seconds), statistics.median(seconds), statistics.median(busy)))
    tfr.leave()


def measure(size: int, given: Any) -> list[float]:
    """Returns the quickest and the median step and a step's processor time, of the slowest process, in seconds."""
    context = multiprocessing.get_context("spawn")
    results, address = context.Queue(), free_address()
    processes = [context.Process(target=work, args=(r, size, address, given, results)) for r in range(size)]
    for process in processes:
        process.start()
    found = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return [max(of_rank) for of_rank in zip(*found, strict=True)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--forward", type=float, default=0.0016)
    options.add_argument("--rows", type=int, default=0)
    options.add_argument("--bytes", type=int, default=2_700_000)
    options.add_argument("--bucket", type=int, default=1 << 20)
    options.add_argument("--steps", type=int, default=20)
    given = options.parse_args()
    alone: list[float] = []
    for size in given.workers:
        *found, busy = measure(size, given)
        alone = alone or found
        ratios = [a / b for a, b in zip(alone, found, strict=True)]
        line = {
            "workers": size, "steps": [round(t, 5) for t in found], "efficiency": [round(r, 3) for r in ratios],
            "throughput": [round(size * r, 2) for r in ratios], "processor": round(busy, 5),
        }  # fmt: skip
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
