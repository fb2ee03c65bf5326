"""Devices for the replicas of a training."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.device_spec import DeviceSpec

_STATE = (
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
    "VarHandleOp",
)  # fmt: skip


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str | None = "/job:ps",
    worker_device: str | None = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """Returns a function for `tf.device` that puts variables on the tasks of ps_device in rotation,
    all else on worker_device.

    ps_tasks: how many tasks there are; with none the function is None. cluster: a dict of addresses by job, or what has
    `as_dict`, from which ps_tasks follows. merge_devices: parts that an operation's device leaves open are filled in;
    else devices that are set stay. ps_ops: the ops that count as variables. ps_strategy: gives an operation's task.
    """
    if cluster is not None:
        jobs = cluster.as_dict() if hasattr(cluster, "as_dict") else cluster
        if not isinstance(jobs, Mapping):
            raise InvalidTypeError(
                f"replica_device_setter: cluster is a {type(cluster).__name__}; a dict of jobs is required"
            )
        job = DeviceSpec.from_string(ps_device or "").job
        if job is None:
            raise InvalidArgumentError(f"replica_device_setter: ps_device is {ps_device!r}; it must name a job")
        ps_tasks = len(jobs.get(job) or ())
    if not ps_tasks:
        return None
    if ps_strategy is not None and not callable(ps_strategy):
        raise InvalidTypeError("replica_device_setter: ps_strategy is not callable; a function is required")
    turns = itertools.cycle(range(ps_tasks))
    task_of = ps_strategy or (lambda op: next(turns))
    kinds = _STATE if ps_ops is None else tuple(ps_ops)

    def choose(op: Any) -> str:
        if not merge_devices and op.device:
            return str(op.device)
        current = DeviceSpec.from_string(op.device or "")
        if ps_device and (getattr(op, "type", None) or op.op) in kinds:
            wanted = DeviceSpec.from_string(ps_device)
            if wanted.job and current.job in (None, wanted.job):
                wanted = wanted.replace(task=task_of(op))
            return wanted.make_merged_spec(current).to_string()
        return DeviceSpec.from_string(worker_device or "").make_merged_spec(current).to_string()

    return choose


class VariableDeviceChooser:
    """A function for the `device` of variables: the tasks of a job in rotation, or one device where num_tasks is 0.

    num_tasks, job_name: the job and how many tasks it has. device_type, device_index: the device in each task, any of
    its type for a device_index of None. replica: that of the job.
    """

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int | None = 0,
        replica: int | None = None,
    ) -> None:
        self._device = DeviceSpec(None, replica, None, device_type, device_index)
        self._job_name = job_name
        self._tasks = itertools.cycle(range(num_tasks)) if num_tasks else None

    def __call__(self, op: Any) -> str:
        """Returns the device of a variable, the next one in rotation; operations of other kinds stay where they are."""
        if getattr(op, "type", _STATE[0]) not in _STATE:
            return str(op.device)
        if self._tasks is None:
            return self._device.to_string()
        return self._device.replace(job=self._job_name, task=next(self._tasks)).to_string()
