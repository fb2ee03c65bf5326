"""Tasks of clusters that TensorFlow's programs start, one in each process: what `tf.train.Server` finds here."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
import time
from collections.abc import Mapping

from timberframe_ray import engine

OBJECT_STORE_BYTES = 512 << 20

_LOOK_SECONDS = 0.5

_numbers = itertools.count()


class TaskServer:
    """The worker of one task, which ends with this process. See `Server`."""

    def __init__(self, cluster: str, job: str, task: int, jobs: Mapping[str, list[int]]) -> None:
        self.target = f"ray:{cluster}/{job}/{task}"
        self._worker = engine.start_worker(cluster, job, task, jobs, detached=False)
        engine.describe(self._worker)

    def start(self) -> None:
        """It has started."""

    def join(self) -> None:
        """Returns when this process leaves the cluster; ends the program (SystemExit) when the cluster has ended.

        Programs go on with a worker's part after it, as in TensorFlow it never returns.
        """
        while engine.joined():
            stay = engine.stay(self._worker)
            while engine.joined() and not engine.wait(stay, _LOOK_SECONDS):
                pass
            if engine.joined() and not engine.restarts(stay):
                sys.exit()
            time.sleep(_LOOK_SECONDS)


def serve(cluster: Mapping[str, Mapping[int, str]] | None, job: str, task: int) -> TaskServer:
    """See `ServingKind`. Tasks of equal clusters are in one, by all its addresses; Ray finds the places."""
    if cluster is None:
        start_here()
        return TaskServer(local_name(), job, task, {job: [task]})
    engine.join()
    digest = hashlib.sha256(json.dumps(cluster, sort_keys=True).encode()).hexdigest()
    return TaskServer(digest[:12], job, task, {name: sorted(tasks) for name, tasks in cluster.items()})


def start_here(folder: str | None = None, object_store_bytes: int = OBJECT_STORE_BYTES, cpus: int = 1) -> bool:
    """Starts Ray, to end with this process, unless that has joined one; whether it did."""
    if engine.joined():
        return False
    engine.start_local(folder, object_store_bytes, cpus)
    return True


def local_name() -> str:
    """Returns a name for a cluster of this process."""
    return f"local-{os.getpid()}-{next(_numbers)}"
