"""Clusters: their workers started and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from timberframe_ray import engine
from timberframe_ray.server import OBJECT_STORE_BYTES as OBJECT_STORE_BYTES
from timberframe_ray.server import local_name, start_here
from timberframe_sdk import InvalidArgumentError
from timberframe_sdk.remote.errors import AlreadyExistsError


class Cluster:
    """The workers of a cluster, which `close`, or the end of a `with` block, ends. target: the URL for sessions.

    jobs: the numbers of the tasks of each job. Workers that run already are part of it; AlreadyExistsError where theirs
    are other jobs. own: Ray was started for this cluster.
    """

    def __init__(self, name: str, jobs: Mapping[str, Sequence[int]], own: bool = False) -> None:
        self.name, self.jobs = name, jobs
        self._gcs = engine.gcs_address()
        self.target = f"ray:{name}@{self._gcs}"
        self._own = own
        _check_running(name, jobs)
        workers = [engine.start_worker(name, job, task, jobs) for job, tasks in jobs.items() for task in tasks]
        for worker in workers:
            engine.describe(worker)

    def target_of(self, job: str, task: int) -> str:
        """Returns the URL for sessions to which the devices of this task come first."""
        return f"ray:{self.name}/{job}/{task}@{self._gcs}"

    def process(self, job: str, task: int) -> int:
        """Returns the number of the process of a task on its machine."""
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


def _check_running(name: str, jobs: Mapping[str, Sequence[int]]) -> None:
    """AlreadyExistsError where a cluster of this name runs that has other tasks: sessions would not see new ones."""
    for job, task in engine.tasks_of(name)[:1]:
        running = engine.describe(engine.find_worker(name, job, task))["jobs"]
        if running != {k: list(v) for k, v in jobs.items()}:
            raise AlreadyExistsError(
                f"cluster '{name}': it runs with {_tasks(running)}, and {_tasks(jobs)} are asked for; end that first, "
                "or give the new one another name"
            )


def _tasks(jobs: Mapping[str, Sequence[int]]) -> str:
    """Returns how many tasks each job has, as in "1 task of job 'ps'"."""
    counted = [f"{len(tasks)} task{'' if len(tasks) == 1 else 's'} of job '{job}'" for job, tasks in jobs.items()]
    return " and ".join(counted) or "no task"


def jobs_of(ps: int, workers: int) -> dict[str, range]:
    """Returns the tasks of the jobs "ps" and "worker", without a job that has none."""
    jobs = {"ps": range(ps), "worker": range(workers)}
    return {job: tasks for job, tasks in jobs.items() if tasks}


def end_workers(name: str) -> None:
    """Ends the workers of a cluster; what they hold is gone."""
    for job, task in engine.tasks_of(name):
        worker = engine.find_worker(name, job, task)
        if worker is not None:
            engine.end(worker)


def local_cluster(
    ps: int = 0, workers: int = 1, folder: str | None = None, object_store_bytes: int | None = None
) -> Cluster:
    """Returns a cluster on this machine for tests and notebooks; it starts Ray where this process has not joined one.

    ps, workers: how many tasks the jobs "ps" and "worker" have, one or more in all. folder: where Ray keeps its logs
    and sockets; by default where Ray chooses. object_store_bytes: shared memory for tensors, 512 MiB by default. Both
    are for the start of Ray: InvalidArgumentError where this process has joined one.
    """
    if min(ps, workers) < 0 or not ps + workers:
        raise InvalidArgumentError(
            f"local_cluster: ps is {ps}, workers is {workers}; numbers of at least 0, and one above 0, are required"
        )
    if engine.joined() and (folder is not None or object_store_bytes is not None):
        raise InvalidArgumentError(
            f"local_cluster: folder is {folder!r}, object_store_bytes is {object_store_bytes}, and this process has "
            f"joined the Ray at {engine.gcs_address()}; both are for the start of Ray, and must be left out"
        )
    own = start_here(folder, OBJECT_STORE_BYTES if object_store_bytes is None else object_store_bytes)
    return Cluster(local_name(), jobs_of(ps, workers), own)
