"""Two simulated nodes of Ray on this machine, the second of which can be lost."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray._common.utils import get_default_ray_temp_dir
from ray.cluster_utils import Cluster as RayCluster

import timberframe as tf
from timberframe_ray import Cluster, engine

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
MOVE_SECONDS = 60.0


class Nodes:
    """The first node has the client, and stays. address: of the cluster."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        # Ray's class writes the address into its default folder, which exists once Ray has run on the machine.
        Path(get_default_ray_temp_dir()).mkdir(parents=True, exist_ok=True)
        head = {**NODE, "include_dashboard": False, "_system_config": engine.HEALTH, "temp_dir": folder}
        self._cluster = RayCluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address
        self._second = self._cluster.add_node(**NODE)

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *_: object) -> None:
        engine.leave()
        self.signal(signal.SIGKILL)
        self._cluster.shutdown()

    def _raylet(self) -> int:
        """Returns the number of the second node's own process."""
        found: Any = self._second.all_processes["raylet"][0].process.pid
        return int(found)

    def move(self, cluster: Cluster, place: tuple[str, int]) -> None:
        """Makes a task's worker run on the second node."""
        end = time.monotonic() + MOVE_SECONDS
        while time.monotonic() < end:
            with suppress(tf.errors.UnavailableError):  # while it starts
                if _parent(cluster.process(*place)) == self._raylet():
                    return
                engine.end(engine.find_worker(cluster.name, *place), restart=True)
            time.sleep(0.2)
        raise AssertionError(f"after {MOVE_SECONDS:g} s {place} is not on the second node")

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to all processes of the second node."""
        raylet = self._raylet()
        for process in (raylet, *_children(raylet)):
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def renew(self) -> None:
        """Another second node in place of the one that was lost; for the main thread, with which it ends."""
        self.signal(signal.SIGKILL)
        self._cluster.remove_node(self._second, allow_graceful=False)
        self._second = self._cluster.add_node(**NODE)


def held() -> dict[str, int]:
    """Returns bytes in the object stores of all nodes; open files and Python threads of this process."""
    tf.summary.FileWriterCache.clear()  # it keeps the writer of each folder open, as TensorFlow's does
    gc.collect()
    store = "object_store_memory"
    return {
        "bytes": round(ray.cluster_resources()[store] - ray.available_resources()[store]),
        "files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),  # Python's: Ray itself keeps one of its own for each node that was lost
    }


def _children(process: int) -> list[int]:
    found = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(number) for number in thread.read_text().split()]
    return found


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
