"""Clusters: their workers started and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from timberframe_ray import engine
from timberframe_ray.server import OBJECT_STORE_BYTES as OBJECT_STORE_BYTES
from timberframe_ray.server import local_name, start_here


class Cluster:
    """The workers of a cluster, which `close`, or the end of a `with` block, ends. target: the URL for sessions."""

    def __init__(self, name: str, jobs: Mapping[str, Sequence[int]], own: bool = False) -> None:
        self.name, self.jobs = name, jobs
        self._gcs = engine.gcs_address()
        self.target = f"ray:{name}@{self._gcs}"
        self._own = own
        workers = [engine.start_worker(name, job, task, jobs) for job, tasks in jobs.items() for task in tasks]
        for worker in workers:
            engine.describe(worker)

    def target_of(self, job: str, task: int) -> str:
        """The URL for sessions to which the devices of this task come first."""
        return f"ray:{self.name}/{job}/{task}@{self._gcs}"

    def process(self, job: str, task: int) -> int:
        """The number of the process of a task on its machine."""
        found: int = engine.describe(engine.find_worker(self.name, job, task))["process"]
        return found

    def close(self) -> None:
        """Ends the workers, and Ray where it was started with them."""
        if not engine.joined():
            return
        end_workers(self.name)
        if self._own:
            engine.leave()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def end_workers(name: str) -> None:
    """Ends the workers of a cluster; what they hold is gone."""
    for job, task in engine.tasks_of(name):
        worker = engine.find_worker(name, job, task)
        if worker is not None:
            engine.end(worker)


def local_cluster(
    ps: int = 0, workers: int = 1, folder: str | None = None, object_store_bytes: int = OBJECT_STORE_BYTES
) -> Cluster:
    """A cluster on this machine for tests and notebooks; it starts Ray where this process has not joined one.

    ps, workers: how many tasks the jobs "ps" and "worker" have. folder: where Ray keeps its logs and sockets.
    """
    own = start_here(folder, object_store_bytes)
    jobs = {"ps": range(ps), "worker": range(workers)}
    return Cluster(local_name(), {k: v for k, v in jobs.items() if v}, own)
