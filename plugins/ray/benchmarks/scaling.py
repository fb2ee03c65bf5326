"""Steps of data-parallel training of sleeping layers, by number of processes: prints JSON.

``python plugins/ray/benchmarks/scaling.py --workers 1 2 4 --layers 4 --forward 0.001 --bytes 2700000``. Each layer
sleeps forward, twice as long backward, and has its share of the bytes of gradients. steps: the quickest and the median.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from typing import Any

import numpy as np
from all_reduce import free_address
from sleeping import sleep

import timberframe as tf
import timberframe_ray as tfr


def work(rank: int, size: int, address: str, given: Any, results: Any) -> None:
    """One process: seconds of its steps, the quickest and the median."""
    tfr.join(rank, size, address)
    count = given.bytes // given.layers // 4
    x = tf.placeholder(tf.float32, [count])
    h = x
    for i in range(given.layers):
        h = sleep(
            h * tf.get_variable(f"w{i}", [count], initializer=tf.ones_initializer()), given.forward, 2 * given.forward
        )
    optimizer = tfr.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.0), given.bucket)
    step = optimizer.minimize(tf.reduce_mean(h))
    times = []
    config = tf.SessionConfig(plugins=["cpu", "reference"], device_count={"REFERENCE": 1})
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        batch = np.ones(count, np.float32)
        for _ in range(given.steps + 3):
            start = time.perf_counter()
            session.run(step, {x: batch})
            times.append(time.perf_counter() - start)
    results.put((min(times[3:]), statistics.median(times[3:])))
    tfr.leave()


def measure(size: int, given: Any) -> list[float]:
    """The quickest and the median step, of the slowest process, in seconds."""
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
    options.add_argument("--bytes", type=int, default=2_700_000)
    options.add_argument("--bucket", type=int, default=1 << 20)
    options.add_argument("--steps", type=int, default=20)
    given = options.parse_args()
    alone: list[float] = []
    for size in given.workers:
        found = measure(size, given)
        alone = alone or found
        ratios = [round(a / b, 3) for a, b in zip(alone, found, strict=True)]
        print(json.dumps({"workers": size, "steps": [round(t, 5) for t in found], "efficiency": ratios}), flush=True)


if __name__ == "__main__":
    main()
