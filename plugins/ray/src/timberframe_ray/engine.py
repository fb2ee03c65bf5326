"""All that is asked of Ray: joining a cluster, actors, calls and their results.

Ray's own types say little (`remote` makes callables of any), so that it is Any here, and nowhere else.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray import exceptions
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from timberframe_ray.monitor import Monitor
from timberframe_ray.trainer import Trainer
from timberframe_ray.worker import Worker
from timberframe_sdk import InvalidArgumentError, NotFoundError, UnavailableError, UnknownError
from timberframe_sdk.remote.errors import AlreadyExistsError

Ref = Any
"""A ray.ObjectRef: the result of a call, there or not yet."""
Handle = Any
"""A ray.actor.ActorHandle."""

REACH_SECONDS = 5.0
"""A cluster has so long to take a connection."""
START_SECONDS = 60.0
"""A worker that is being started has so long to answer."""
_RESTART_SECONDS = 0.1
"""Time between questions to one that is being started again."""
_TAKEN_SECONDS = 10.0
"""So long after the end of a process its workers' names may be taken."""

NAMESPACE = "timberframe"
_PREFIX = "timberframe"

WAITING = 128
"""So many ops on shared queues and accumulators may wait in a worker at the same time, each in a thread."""

# One caller's calls run in the order given only with these (one call at a time in their group): tests/test_order.py.
ORDERED: dict[str, Any] = {
    "concurrency_groups": {"compute": 1, "io": 1, "waiting": WAITING},
    "max_restarts": -1,
    "max_task_retries": 0,  # a call is carried out at most once: no gradient counts twice
    "allow_out_of_order_execution": False,
}

HEALTH = {
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
    "health_check_initial_delay_ms": 1000,
    "timeout_ms_task_wait_for_death_info": 50,
}
"""Settings of a cluster by which a node that hangs is noticed, and the end of a process in less than a second."""


class LostError(Exception):
    """The process that was to give a result has ended or cannot be reached; the call may have been carried out."""


class RestartingError(LostError):
    """Ray starts the process again, or may reach it again."""


os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # a run raises its first error; Ray would print all others

# Joining


def join(address: str = "", folder: str | None = None) -> None:
    """Joins a running cluster, unless this process has joined one.

    address: of its GCS; by default RAY_ADDRESS says it, or it is found on this machine, in the folder where it was
    started, if that is given.
    """
    here = "" if ray.is_initialized() else os.environ.get("RAY_ADDRESS", "")
    if (address or here).startswith("ray://"):
        raise InvalidArgumentError(
            f"cluster at {address or here!r}: Ray Client is much slower; the address of the GCS, <host>:<port>, is "
            "required"
        )
    if ray.is_initialized():
        if address and address != gcs_address():
            raise InvalidArgumentError(
                f"cluster at {address!r}: this process is in the Ray at {gcs_address()}; one process can be in one Ray"
            )
        return
    address = address or (here if ":" in here else "")  # Ray itself knows what else it may say, such as auto
    if address:
        _reach(address)
    try:
        ray.init(
            address=address or "auto", namespace=NAMESPACE, log_to_driver=False, logging_level="error", _temp_dir=folder
        )
    except ConnectionError as e:
        raise UnavailableError(
            f"no Ray cluster can be joined at {address or 'this machine'} ({e}); where `up` has started it, "
            "RAY_AUTH_MODE=token in the environment is required, where none runs, `python -m timberframe_ray up` or "
            "timberframe_ray.local_cluster()"
        ) from None


def _reach(address: str) -> None:
    """Raises UnavailableError where nobody listens at an address: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), REACH_SECONDS).close()
    except OSError as e:
        raise UnavailableError(
            f"no Ray cluster can be reached at {address} ({e}); the address that `python -m "
            "timberframe_ray status` prints there is required"
        ) from None


def start_local(folder: str | None, memory: int, cpus: int = 1) -> None:
    """Starts a cluster of this machine that ends with this process. memory: bytes of its object store.

    cpus: for trainings; workers ask for none, and Ray keeps as many idle processes.
    """
    ray.init(
        address="local",
        num_cpus=cpus,
        include_dashboard=False,
        object_store_memory=memory,
        namespace=NAMESPACE,
        log_to_driver=False,
        logging_level="error",
        _temp_dir=folder,
        _system_config=HEALTH,
    )


def joined() -> bool:
    """Returns whether this process is part of a cluster."""
    return bool(ray.is_initialized())


def leave() -> None:
    """Leaves the cluster, and ends it where this process started it."""
    ray.shutdown()


def gcs_address() -> str:
    """Returns the address by which other processes join the cluster."""
    found: str = ray.get_runtime_context().gcs_address
    return found


def dashboard() -> str:
    """Returns where Ray's dashboard is, as the end of a line; empty where there is none."""
    url = ray.get_runtime_context().dashboard_url if hasattr(ray.get_runtime_context(), "dashboard_url") else ""
    return f", dashboard at {url}" if url else ""


# Actors


def start_worker(cluster: str, job: str, task: int, jobs: Mapping[str, Sequence[int]], detached: bool = True) -> Handle:
    """Returns the worker of a task, started where it does not run. jobs: the tasks of the whole cluster.

    detached: it outlives this process. AlreadyExistsError where one that does not is there already.
    """
    options: dict[str, Any] = {
        "name": _name(cluster, job, task), "namespace": NAMESPACE, "lifetime": "detached" if detached else None,
        "get_if_exists": detached, "num_cpus": 0, "scheduling_strategy": "SPREAD",
    }  # fmt: skip
    actor = ray.remote(**ORDERED)(Worker).options(**options)
    end = time.monotonic() + _TAKEN_SECONDS
    while True:
        try:
            return actor.remote(cluster, job, task, {k: list(v) for k, v in jobs.items()})
        except ValueError:  # what Ray raises where the name is taken, as it may be for a while after its owner's end
            if time.monotonic() > end:
                raise AlreadyExistsError(
                    f"cluster '{cluster}': /job:{job}/task:{task} is served already; each task has one server"
                ) from None
            time.sleep(0.1)


def start_trainer(cpus: float) -> Handle:
    """Returns a process of a training, which ends with this one; it starts when there is room for it."""
    actor = ray.remote(max_restarts=0, max_task_retries=0)(Trainer)
    return actor.options(num_cpus=cpus, scheduling_strategy="SPREAD").remote()


def find_worker(cluster: str, job: str, task: int) -> Handle | None:
    """Returns the worker of a task, None where there is none."""
    try:
        return ray.get_actor(_name(cluster, job, task), namespace=NAMESPACE)
    except ValueError:
        return None


def describe(worker: Handle) -> dict[str, Any]:
    """Returns what a worker says of itself, when it has started, or started again;
    UnavailableError where it does not.
    """
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            found: dict[str, Any] = get(control(worker, "describe"), max(end - time.monotonic(), 0))
        except RestartingError:
            time.sleep(_RESTART_SECONDS)
        except (TimeoutError, LostError) as e:
            raise UnavailableError(f"a worker of the cluster does not answer ({e})") from None
        else:
            return found


def tasks_of(cluster: str) -> list[tuple[str, int]]:
    """Job and number of the tasks of a cluster that have a worker."""
    found = [name.split("/") for name in _names()]
    return sorted((job, int(task)) for _, its, job, task in found if its == cluster)


def clusters() -> list[str]:
    """Returns the names of the clusters that have workers."""
    return sorted({name.split("/")[1] for name in _names()})


def _names() -> list[str]:
    named = list_named_actors(all_namespaces=True)
    return [n["name"] for n in named if n["namespace"] == NAMESPACE and n["name"].count("/") == 3]


def _name(cluster: str, job: str, task: int) -> str:
    return f"{_PREFIX}/{cluster}/{job}/{task}"


def end(handle: Handle, restart: bool = False) -> None:
    """Ends an actor's process; restart: Ray then starts another one for it."""
    ray.kill(handle, no_restart=not restart)


def stay(worker: Handle) -> Ref:
    """Returns what is there when the process of a worker ends; see `restarts`."""
    return worker.stay.options(concurrency_group="waiting").remote()


def restarts(stay: Ref) -> bool:
    """Returns whether Ray starts a worker again that has ended."""
    try:
        ray.get(stay)
    except exceptions.ActorUnavailableError:
        return True
    except exceptions.RayError:
        return False
    return False


_monitors: dict[str, tuple[Handle, Ref]] = {}
"""By client: its monitor, and what is there when that has ended."""
_lock = threading.Lock()


def monitor() -> Handle:
    """Returns the process that makes this one's control calls: from here they would wait behind
    calls that wait for arguments.

    It ends with this process, by which workers know that; so it is on the same node, and where it was lost there is
    another one.
    """
    with _lock:
        job = client()
        if job not in _monitors or ready(_monitors[job][1]):
            _monitors.clear()
            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
            options = {"num_cpus": 0, "max_concurrency": 1000, "scheduling_strategy": here}
            made = ray.remote(Monitor).options(**options).remote()
            _monitors[job] = made, made.closed.remote()
        return _monitors[job][0]


def client() -> str:
    """Returns the name of this process in the cluster."""
    found: str = ray.get_runtime_context().get_job_id()
    return found


# Calls


def submit(worker: Handle, count: int, *arguments: Any, group: str = "compute") -> list[Ref]:
    """Calls `Worker.step`; count: how many results it gives. References among the arguments are waited for first.

    group: "compute", for calls in their order, or "waiting", for one that may wait for other calls.
    """
    found = worker.step.options(num_returns=count, concurrency_group=group).remote(*arguments)
    return [found] if count == 1 else list(found)


def control(worker: Handle, call: str, **details: Any) -> Ref:
    """Returns a call that a worker answers at once, whatever else it does."""
    return monitor().ask.remote(worker, call, details)


def put(value: Any) -> Ref:
    """Returns the value in the object store."""
    return ray.put(value)


def ready(ref: Ref) -> bool:
    """Returns whether a result, or the error in its place, is there."""
    return bool(ray.wait([ref], timeout=0, fetch_local=False)[0])


def wait(ref: Ref, seconds: float) -> bool:
    """Waits so long at most; whether the result, or the error in its place, is there."""
    return bool(ray.wait([ref], timeout=seconds)[0])


def get(ref: Ref, seconds: float | None = None) -> Any:
    """Returns the result of a call; LostError where its process has ended, TimeoutError
    where it is not there in time.
    """
    try:
        return ray.get(ref, timeout=seconds)
    except exceptions.GetTimeoutError:
        raise TimeoutError(f"no answer in {seconds:g} s") from None
    except exceptions.RayTaskError as e:
        if isinstance(e.cause, exceptions.RayError):
            raise _lost(e.cause) from None
        raise UnknownError(f"{type(e.cause).__name__}: {e.cause}") from e
    except exceptions.RayError as e:
        raise _lost(e) from None


def _lost(error: exceptions.RayError) -> LostError:
    kind = RestartingError if isinstance(error, exceptions.ActorUnavailableError) else LostError
    return kind(_first_line(error))


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"


def not_found(cluster: str) -> NotFoundError:
    """Returns the error of a cluster that has no workers."""
    known = ", ".join(clusters()) or "none"
    return NotFoundError(
        f"cluster {cluster!r} has no workers in the Ray at {gcs_address()} (clusters there: {known}); start it with "
        f"`python -m timberframe_ray up --name {cluster}`, or name another Ray: ray:{cluster}@<host>:<port>"
    )
