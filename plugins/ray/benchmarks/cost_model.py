"""The cost model of docs/scaling.md: seconds of a step by the number of workers. Run, it prints that page's table."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

CALL = 0.2e-3
"""What a collective takes that moves nothing."""
COPY = 0.25e-9
"""Seconds a byte takes in an all-reduce of processes through shared memory, each on a core of its own."""
PIECE, TRIP = 4 << 20, 0.2e-3
"""Bytes of an exchange through sockets, and what a message and its answer take."""
HOP = 1.0e-3
"""A call of a worker of Ray that waits for another one's result."""
STORE = 1.8e-3
"""What a tensor above 100 KB takes in Ray's object store besides, where it crosses to another process."""
STORE_BYTE = 0.47e-9
"""Seconds that each of its bytes takes there."""
STORED_BYTES = 100_000
BLOCK = 1.25e-3
"""What the client adds to a block of work in a pipeline."""


@dataclass
class Training:
    """compute: seconds of a step of one worker, a third of them forward. parameters: bytes of its gradients.

    host: seconds of a processor that each worker's step takes besides, where `compute` is a device's.
    """

    compute: float
    parameters: float
    buckets: int = 4
    bandwidth: float = 1.25e9
    """Bytes a second of each machine's network, in each direction."""
    host: float = 0.0


def all_reduce_in_memory(workers: int, nbytes: float, cores: int = 2) -> float:
    """Between processes of one machine: copies in, sums and copies out, of as many at a time as there are cores."""
    return max(1.0, workers / cores) * (CALL + COPY * nbytes) if workers > 1 else 0.0


def all_reduce_by_network(workers: int, nbytes: float, bandwidth: float) -> float:
    """Between machines: each sends and receives 2 P (W - 1) / W bytes, in two exchanges for each piece."""
    if workers == 1:
        return 0.0
    return CALL + 2 * TRIP * math.ceil(nbytes / PIECE) + 2 * nbytes * (workers - 1) / workers / bandwidth


def overlapped(training: Training, reduce_all: float) -> float:
    """Returns a step whose buckets are reduced during the backward pass: the last one, and what it
    does not cover, is added.
    """
    backward = training.compute * 2 / 3
    last = reduce_all / training.buckets
    covered = backward * (training.buckets - 1) / training.buckets
    return training.compute + last + max(0.0, reduce_all - last - covered)


def on_shared_cores(free: float, host: float, load: float) -> float:
    """Returns a step of `free` seconds that no processor is needed for, and `host` seconds of
    one that others want, too.

    load: seconds of each core that all processes together want in a step of each. Where cores are busy for a part r of
    the time, work takes 1 / (1 - r) times as long; the step T decides that part: T = free + host / (1 - load / T).
    """
    total = free + host + load
    return (total + math.sqrt(total * total - 4 * free * load)) / 2


def data_parallel(training: Training, workers: int) -> float:
    return overlapped(training, all_reduce_by_network(workers, training.parameters, training.bandwidth))


def data_parallel_on_one_machine(training: Training, workers: int, cores: int = 2) -> float:
    """Returns all processes on its cores, which do `host` and, beside the devices, what the sums take."""
    free = overlapped(training, all_reduce_in_memory(workers, training.parameters, cores))
    sums = all_reduce_in_memory(min(workers, 2), training.parameters)
    return on_shared_cores(free, training.host, workers * (training.host + sums) / cores)


def parameter_server(training: Training, workers: int, servers: int = 1) -> float:
    """Returns the seconds of a step: each worker reads P bytes and sends P, in three hops; the servers'
    network carries W times that.
    """
    traffic = training.parameters / training.bandwidth
    return max(training.compute + 3 * HOP + 2 * traffic, workers * traffic / servers)


def parameter_server_on_one_machine(training: Training, workers: int, cores: int = 2) -> float:
    """Returns the same through Ray's object store, which the variable and its gradient cross."""
    stored = STORE + STORE_BYTE * training.parameters if training.parameters > STORED_BYTES else 0.0
    path = 3 * HOP + 2 * stored
    return on_shared_cores(training.compute, path, workers * (training.host + 2 * stored) / cores)


def pipeline(compute: float, stages: int, parts: int) -> float:
    """Returns a batch whose work takes one device `compute`, by equal stages: parts and bubbles."""
    return (parts + stages - 1) * (compute / (stages * parts) + 2 * BLOCK)


def _table(training: Training) -> None:
    print("|workers|all-reduce|parameter server|pipeline, 4 parts for each stage|\n|-|-|-|-|")
    for workers in (1, 2, 4, 8, 16, 32, 64):
        reduced = training.compute / data_parallel(training, workers)
        served = training.compute / parameter_server(training, workers)
        piped = training.compute / pipeline(training.compute * workers, workers, 4 * workers)
        print(f"|{workers}|{reduced:.0%}|{served:.0%}|{piped:.0%}|")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--compute", type=float, default=0.1)
    options.add_argument("--bytes", type=float, default=100e6)
    given = options.parse_args()
    _table(Training(given.compute, given.bytes))


if __name__ == "__main__":
    main()
