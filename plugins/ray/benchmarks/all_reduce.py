"""Times of an all-reduce between processes of one machine, by turns with torch's gloo where torch is installed.

``python plugins/ray/benchmarks/all_reduce.py --workers 2 --bytes 2700000 100000000`` prints JSON: milliseconds of the
slowest process, minimum and median. memcpy: a copy of as many bytes by one process, meanwhile the others wait.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_ray.collectives.group import Group, join, leave


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return f"127.0.0.1:{found.getsockname()[1]}"


def _ours(group: Group) -> Callable[[np.ndarray], Any]:
    return lambda x: group.all_reduce(x).wait()


def _gloo(rank: int, size: int, address: str) -> Callable[[np.ndarray], Any] | None:
    try:
        import torch
        from torch import distributed
    except ImportError:
        return None
    distributed.init_process_group("gloo", init_method=f"tcp://{address}", rank=rank, world_size=size)
    return lambda x: distributed.all_reduce(torch.from_numpy(x))


def work(
    rank: int, size: int, addresses: list[str], memory: bool, counts: list[int], repeats: int, results: Any
) -> None:
    """Runs in one process: times of each way for each size, all ways once before any is repeated."""
    ways: dict[str, Callable[[np.ndarray], Any] | None] = {}
    group = join(rank, size, addresses[0], memory=memory)
    ways[group.transport] = _ours(group)
    ways["gloo"] = _gloo(rank, size, addresses[1])
    ways["memcpy"] = lambda x: x.copy() if rank == 0 else None
    barrier = _ours(group)
    for count in counts:
        x = np.ones(count // 4, np.float32)
        times: dict[str, list[float]] = {name: [] for name, run in ways.items() if run is not None}
        for _ in range(repeats + 2):
            for name, run in ways.items():
                if run is None:
                    continue
                x[:] = 1
                barrier(np.zeros(1, np.float32))
                start = time.perf_counter()
                run(x)
                times[name].append(time.perf_counter() - start)
                assert name == "memcpy" or x[-1] == size
        results.put((count, rank, {name: found[2:] for name, found in times.items()}))
    leave()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--bytes", type=int, nargs="+", default=[2_700_000, 100_000_000])
    options.add_argument("--sockets", action="store_true", help="no shared memory, as between machines")
    options.add_argument("--repeats", type=int, default=20)
    given = options.parse_args()
    context = multiprocessing.get_context("spawn")
    results, addresses = context.Queue(), [free_address(), free_address()]
    arguments = (given.workers, addresses, not given.sockets, given.bytes, given.repeats, results)
    processes = [context.Process(target=work, args=(rank, *arguments)) for rank in range(given.workers)]
    for process in processes:
        process.start()
    found = [results.get() for _ in given.bytes for _ in processes]
    for process in processes:
        process.join()
    for count in given.bytes:
        of_ranks = [times for n, _, times in found if n == count]
        line: dict[str, Any] = {"workers": given.workers, "bytes": count}
        for name in of_ranks[0]:
            slowest = [1e3 * max(one) for one in zip(*(times[name] for times in of_ranks), strict=True)]
            line[name] = {"min": round(min(slowest), 3), "median": round(statistics.median(slowest), 3)}
        print(json.dumps(line))


if __name__ == "__main__":
    main()
