"""Clusters and their tasks. What carries them is an installed target, which is loaded when a task is to be served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe_core.arguments import instance
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graphdef import messages
from timberframe_core.runtime.targets import find_serving

_PROTOCOL = "grpc"
"""What programs name that do not choose: TensorFlow's own protocol stands for whatever is installed."""


class ClusterSpec:
    """The jobs of a cluster and the addresses of their tasks.

    cluster: a dict of jobs, each a list of addresses or a dict of addresses by number; a ClusterDef; or a ClusterSpec.
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            jobs: Mapping[str, Any] = cluster._jobs
        elif isinstance(cluster, Mapping):
            jobs = cluster
        else:
            message = messages.as_message(cluster, messages.ClusterDef, "cluster")
            jobs = {job.name: dict(job.tasks) for job in message.job}
        self._jobs: dict[str, dict[int, str]] = {
            _text(job, "the name of a job"): _tasks(job, tasks) for job, tasks in sorted(jobs.items())
        }

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(repr(self._jobs))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"

    def as_dict(self) -> dict[str, Any]:
        """Returns a list of addresses for each job, or a dict by number where numbers are left out."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """Returns a ClusterDef."""
        found = messages.ClusterDef()
        for job, tasks in self._jobs.items():
            found.job.add(name=job, tasks=tasks)
        return found

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """Returns how many tasks a job has."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Returns the numbers of a job's tasks."""
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Returns the address of a task; InvalidArgumentError where there is none."""
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise InvalidArgumentError(
                f"ClusterSpec: job {job_name!r} has no task {task_index!r}; it has {list(tasks)}"
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Returns the addresses of a job's tasks by number, None for those left out."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def _job(self, name: str) -> Mapping[int, str]:
        if name not in self._jobs:
            raise InvalidArgumentError(
                f"ClusterSpec: has no job {name!r}; its jobs are {', '.join(self._jobs) or 'none'}"
            )
        return self._jobs[name]

    def by_number(self) -> Mapping[str, Mapping[int, str]]:
        """Returns the addresses by job and number."""
        return self._jobs


def _tasks(job: str, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, Mapping):
        numbered = dict(tasks)
    elif isinstance(tasks, Sequence) and not isinstance(tasks, str | bytes):
        numbered = dict(enumerate(tasks))
    else:
        raise InvalidTypeError(
            f"ClusterSpec: job {job!r} is {tasks!r}; a list of addresses or a dict by number is required"
        )
    wrong = next((n for n in numbered if not isinstance(n, int) or isinstance(n, bool) or n < 0), None)
    if wrong is not None:
        raise InvalidTypeError(f"ClusterSpec: job {job!r} has a task {wrong!r}; a number of at least 0 is required")
    return {n: _text(address, f"the address of task {n} of job {job!r}") for n, address in sorted(numbered.items())}


def _text(value: Any, what: str) -> str:
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(value, str):
        raise InvalidTypeError(f"ClusterSpec: {what} is {value!r}; a str is required")
    return value


class Server:
    """A task of a cluster: its devices are there for sessions of all tasks, until this process ends.

    server_or_cluster_def: a ClusterSpec, or what it takes; or a ServerDef, which has the other arguments, too.
    job_name, task_index: which task it is; may be left out where the cluster has one job, or the job one task.
    protocol: the scheme of an installed target that serves tasks, such as "ray"; by default, and for "grpc", the first.
    config: for TensorFlow's programs; sessions bring their own. start: at once.

    Raises NotFoundError where no installed package serves tasks.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        given = server_or_cluster_def
        if hasattr(given, "task_index") and hasattr(given, "cluster"):
            cluster = ClusterSpec(given.cluster)
            job_name = job_name or given.job_name
            task_index = given.task_index if task_index is None else task_index
            protocol = protocol or given.protocol
        else:
            cluster = ClusterSpec(given)
        job, task = _which(cluster, job_name, task_index)
        self._set(cluster, cluster.by_number(), job, task, protocol, start)

    def _set(self, cluster: ClusterSpec, tasks: Any, job: str, task: int, protocol: str | None, start: bool) -> None:
        self._cluster, self._job, self._task = cluster, job, task
        self._protocol = "" if protocol in (None, _PROTOCOL) else str(protocol)
        self._tasks = tasks
        self._server: Any = None
        if start:
            self.start()

    @classmethod
    def create_local_server(cls, config: Any = None, start: bool = True) -> Server:
        """Returns a cluster of one task, on this machine: ``/job:local/replica:0/task:0``."""
        found = cls.__new__(cls)
        found._set(ClusterSpec({"local": ["localhost:0"]}), None, "local", 0, None, start)
        return found

    def start(self) -> None:
        """Makes the task's devices reachable; nothing where they are."""
        if self._server is None:
            self._server = find_serving(self._protocol).serve(self._tasks, self._job, self._task)

    def join(self) -> None:
        """Waits until the task has ended: for ever, in a parameter server."""
        self.start()
        self._server.join()

    @property
    def target(self) -> str:
        """The target of sessions to which the devices of this task come first."""
        self.start()
        found: str = self._server.target
        return found

    @property
    def server_def(self) -> Any:
        """A ServerDef: the cluster, and which task of it this is."""
        found = messages.ServerDef(job_name=self._job, task_index=self._task, protocol=self._protocol or _PROTOCOL)
        found.cluster.CopyFrom(self._cluster.as_cluster_def())
        return found


def _which(cluster: ClusterSpec, job: str | None, task: int | None) -> tuple[str, int]:
    """Returns the task that a server is; InvalidArgumentError where it is not said, or not in the cluster."""
    if job is None and len(cluster.jobs) == 1:
        job = cluster.jobs[0]
    if job is None:
        raise InvalidArgumentError(f"Server: job_name is not given; one of {', '.join(cluster.jobs)} is required")
    numbers = cluster.task_indices(instance(job, str, "Server: job_name", "a str"))
    if task is None and len(numbers) == 1:
        task = numbers[0]
    if task is None:
        raise InvalidArgumentError(f"Server: task_index is not given; job {job!r} has tasks {numbers}")
    cluster.task_address(job, task)
    return job, task
