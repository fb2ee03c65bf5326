"""Sessions on a cluster: ``tf.Session("ray:<cluster>")``.

An address is ``<cluster>[/<job>/<task>][@<host>:<port>]``: the cluster's name, the task whose devices come first, and
where Ray's GCS is if not on this machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from timberframe_ray import engine
from timberframe_ray.device import RayDevice
from timberframe_ray.engine import START_SECONDS
from timberframe_ray.link import ANSWER_SECONDS, Link
from timberframe_ray.server import serve as serve
from timberframe_sdk import InvalidArgumentError, UnavailableError, logging
from timberframe_sdk.remote.target import RemoteTarget, SessionConfig, settings_of

_ADDRESS = re.compile(r"([\w.-]+)(?:/(\w+)/(\d+))?(?:@([^/]+:\d+|ray://.+))?\Z")
_PARAMETERS = "ps"
"""The job whose devices come last: it has variables, and no other work unless it is named."""
_SILENT_SECONDS = 5.0
"""So often a session that waits for workers says for which."""


class Address(NamedTuple):
    """What an address says. first: job and number of the task whose devices come first."""

    cluster: str
    first: tuple[str, int] | None
    gcs: str


def read_address(address: str) -> Address:
    """Returns the parts of an address; InvalidArgumentError where it is malformed."""
    found = _ADDRESS.match(address)
    if found is None:
        raise InvalidArgumentError(
            f"session target 'ray:{address}' is malformed; ray:<cluster>[/<job>/<task>][@<host>:<port>] is required"
        )
    cluster, job, task, gcs = found.groups()
    return Address(cluster, None if job is None else (job, int(task)), gcs or "")


def _in_order(where: Address, config: SessionConfig) -> list[tuple[str, int]]:
    """Returns the tasks that a session uses, when all have workers: the one that the address
    names first, servers last.
    """
    end = time.monotonic() + START_SECONDS
    tasks = engine.tasks_of(where.cluster)
    if not tasks:
        raise engine.not_found(where.cluster)
    while True:
        try:
            jobs = engine.describe(_worker(where.cluster, *tasks[0]))["jobs"]
            break
        except UnavailableError:  # it has ended, and may be started again
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
            tasks = engine.tasks_of(where.cluster) or tasks
    known = [(job, task) for job, numbers in jobs.items() for task in numbers]
    if where.first is not None and where.first not in known:
        names = ", ".join(f"{job}/{task}" for job, task in known)
        raise InvalidArgumentError(
            f"session target 'ray:{where.cluster}/{where.first[0]}/{where.first[1]}': the cluster has no such task; "
            f"one of {names} is required"
        )
    wanted = [(job, task) for job, task in known if config.allows(f"/job:{job}/replica:0/task:{task}")]
    if not wanted:
        filters, names = ", ".join(config.device_filters), ", ".join(f"/job:{job}/task:{task}" for job, task in known)
        raise InvalidArgumentError(
            f"cluster '{where.cluster}': device_filters are {filters}; one of its tasks is required, which are {names}"
        )
    report = time.monotonic() + _SILENT_SECONDS
    while missing := set(wanted) - set(tasks):
        names = ", ".join(f"/job:{job}/task:{task}" for job, task in sorted(missing))
        if time.monotonic() > report:
            report += _SILENT_SECONDS
            logging.warning("cluster '%s': waiting for the worker of %s", where.cluster, names)
        if time.monotonic() > end:
            raise UnavailableError(f"cluster '{where.cluster}': {names} has no worker after {START_SECONDS:g} s")
        time.sleep(0.1)
        tasks = engine.tasks_of(where.cluster)
    return sorted(wanted, key=lambda t: (t != where.first, t[0] == _PARAMETERS, t))


def open(address: str, config: SessionConfig) -> RemoteTarget:
    """Returns the target for a new session; waits until all tasks of the cluster have workers."""
    where = read_address(address)
    engine.join(where.gcs)
    target, settings = RemoteTarget(config, RayDevice), settings_of(config)
    target.connect(
        [partial(_link, where.cluster, job, task, f"ray:{address}", settings) for job, task in _in_order(where, config)]
    )
    return target


def _link(cluster: str, job: str, task: int, url: str, settings: Mapping[str, Any]) -> Link:
    return Link(_worker(cluster, job, task), f"/job:{job}/replica:0/task:{task}", url, settings)


def _worker(cluster: str, job: str, task: int) -> engine.Handle:
    """Returns the worker of a task that had one a moment ago."""
    found = engine.find_worker(cluster, job, task)
    if found is None:
        raise UnavailableError(f"cluster '{cluster}': /job:{job}/task:{task} has no worker any more")
    return found


def reset(address: str, containers: Sequence[str]) -> None:
    """Drops the variables in these containers, or all; a worker that ends or starts meanwhile has none.

    UnavailableError where a worker does not answer in time.
    """
    where = read_address(address)
    engine.join(where.gcs)
    for job, task in engine.tasks_of(where.cluster):
        worker = engine.find_worker(where.cluster, job, task)
        if worker is None:
            continue
        try:
            with suppress(engine.LostError):
                engine.get(engine.control(worker, "reset", containers=list(containers)), ANSWER_SECONDS)
        except TimeoutError as e:
            raise UnavailableError(f"cluster '{where.cluster}': /job:{job}/task:{task} was not reset ({e})") from None
