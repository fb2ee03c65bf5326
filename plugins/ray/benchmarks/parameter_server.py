"""Steps of workers that each go at their own pace on the variable of one parameter server: prints JSON.

``python plugins/ray/benchmarks/parameter_server.py --workers 1 2 4 --bytes 4 1000000 10000000 --forward 0.02``. In a
step a worker reads the variable, its kernel sleeps for --forward seconds, and the server subtracts what it gives.
steps: the quickest, and the median of the slowest process, in seconds. processor: seconds of it in each worker's step,
of the client, of the worker, and of the server.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import statistics
import tempfile
import time
from typing import Any

import ray
from sleeping import sleep

import timberframe as tf
import timberframe_ray as tfr
from timberframe_ray import engine

WARM = 5


def load(_: Any) -> None:
    """In a worker: it knows the op."""
    importlib.import_module("sleeping")


def busy(_: Any) -> float:
    """In a worker: the seconds of processor time that it has taken."""
    return time.process_time()


def work(task: int, target: str, count: int, given: Any, start: Any, results: Any) -> None:
    """Runs one client: its number, the seconds of its steps, and its processor time."""
    worker = f"/job:worker/task:{task}"
    config = tf.SessionConfig(plugins=["cpu", "sleeping"], device_filters=["/job:ps", worker])
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [count], initializer=tf.ones_initializer())
    with tf.device(worker):
        gradient = sleep(v * 0.0, given.forward, 0.0)
    with tf.device("/job:ps/task:0"):
        step = v.assign_sub(gradient).op
    with tf.Session(target, config=config) as session:
        if task == 0:
            session.run(v.initializer)
        start.wait()
        for _ in range(WARM):
            session.run(step)
        start.wait()
        begun, times = time.process_time(), []
        for _ in range(given.steps):
            before = time.perf_counter()
            session.run(step)
            times.append(time.perf_counter() - before)
        results.put((times, time.process_time() - begun))


def measure(cluster: tfr.Cluster, workers: int, nbytes: int, given: Any) -> dict[str, Any]:
    """Returns what one number of workers and one size take."""
    context = multiprocessing.get_context("spawn")
    results, start = context.Queue(), context.Barrier(workers + 1)
    arguments = (cluster.target, nbytes // 4, given, start, results)
    clients = [context.Process(target=work, args=(task, *arguments)) for task in range(workers)]
    for client in clients:
        client.start()
    actors = [engine.find_worker(cluster.name, "ps", 0)]
    actors += [engine.find_worker(cluster.name, "worker", task) for task in range(workers)]
    start.wait()
    start.wait()
    before = [ray.get(actor.__ray_call__.remote(busy)) for actor in actors]
    found = [results.get() for _ in clients]
    taken = [ray.get(actor.__ray_call__.remote(busy)) - b for actor, b in zip(actors, before, strict=True)]
    for client in clients:
        client.join()
    tf.Session.reset(cluster.target)
    steps = workers * given.steps
    processor = (sum(cpu for _, cpu in found), sum(taken[1:]), taken[0])
    return {
        "workers": workers, "bytes": nbytes, "forward": given.forward,
        "steps": [
            round(min(min(times) for times, _ in found), 5),
            round(max(statistics.median(times) for times, _ in found), 5),
        ],
        "processor": [round(seconds / steps, 5) for seconds in processor],
    }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options.add_argument("--bytes", type=int, nargs="+", default=[4, 1_000_000, 10_000_000])
    options.add_argument("--forward", type=float, default=0.02)
    options.add_argument("--steps", type=int, default=40)
    given = options.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tf-ray-") as folder,
        tfr.local_cluster(1, max(given.workers), folder, object_store_bytes=1 << 30) as cluster,
    ):
        for task in range(max(given.workers)):
            ray.get(engine.find_worker(cluster.name, "worker", task).__ray_call__.remote(load))
        ray.get(engine.find_worker(cluster.name, "ps", 0).__ray_call__.remote(load))
        for workers in given.workers:
            for nbytes in given.bytes:
                print(json.dumps(measure(cluster, workers, nbytes, given)), flush=True)


if __name__ == "__main__":
    main()
