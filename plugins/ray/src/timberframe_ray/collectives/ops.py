"""Collectives in graphs: ops that the host carries out with the other processes of this one's group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from timberframe_ray.collectives.devices import OnDevice
from timberframe_ray.collectives.group import Work, group
from timberframe_sdk import HostCall, InferenceContext, apply_op, define_op, format_shape, host_op

_T = "T: {half, bfloat16, float, double, int32, int64, complex64, complex128}"


def _start_gradient(op: Any, pending: Any) -> list[Any]:
    return list(apply_op("Ray>AllReduceEnd", [pending, list(op.inputs)]))


def _end_gradient(op: Any, *gradients: Any) -> list[Any]:
    return [apply_op("Ray>AllReduceStart", [list(gradients)]), *[None] * (len(op.inputs) - 1)]


define_op(
    "Ray>AllReduceStart",
    inputs=["values: N * T"],
    outputs=["sums: variant"],
    attrs=["N: int >= 1", _T],
    doc="Starts to add up the tensors of all processes of the group, and returns at once.",
    shape=lambda c: [()],
    gradient=_start_gradient,
    on_host=True,
    stateful=True,
)

define_op(
    "Ray>AllReduceEnd",
    inputs=["sums: variant", "values: N * T"],
    outputs=["output: N * T"],
    attrs=["N: int >= 1", _T],
    doc="The sums, when they are there; `values`, those that were given, say only their shapes.",
    shape=lambda c: list(c.shapes[1:]),
    gradient=_end_gradient,
    constant_inputs=("values",),
    on_host=True,
    stateful=True,
)


def _gathered(c: InferenceContext) -> list[Any]:
    shape = c.shapes[0]
    if shape is None:
        return [None]
    if not shape:
        raise c.error("the input is a scalar; it must have a first dimension, along which all are put together")
    return [(None if shape[0] is None else shape[0] * c.attrs["size"], *shape[1:])]


def _scattered(c: InferenceContext) -> list[Any]:
    shape, size = c.shapes[0], c.attrs["size"]
    if shape is None:
        return [None]
    if not shape or (shape[0] is not None and shape[0] % size):
        raise c.error(f"the input has shape {format_shape(shape)}; its first dimension must be a multiple of {size}")
    return [(None if shape[0] is None else shape[0] // size, *shape[1:])]


define_op(
    "Ray>AllGather",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["size: int >= 1", _T],
    doc="The tensors of all `size` processes of the group, one after the other along the first dimension.",
    shape=_gathered,
    gradient=lambda op, g: [reduce_scatter(g)],
    on_host=True,
    stateful=True,
)

define_op(
    "Ray>ReduceScatter",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["size: int >= 1", _T],
    doc="The sum of all processes' tensors; each gets one of `size` equal parts of it along the first dimension.",
    shape=_scattered,
    gradient=lambda op, g: [all_gather(g)],
    on_host=True,
    stateful=True,
)


def _broadcast_gradient(op: Any, gradient: Any) -> list[Any]:
    (total,) = all_reduce([gradient])
    return [total if group().rank == op.attrs["root"] else apply_op("ZerosLike", [total])]


define_op(
    "Ray>Broadcast",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["root: int >= 0 = 0", _T],
    doc="The tensor of the process of rank `root`, in all of them; those of the others only say its shape.",
    shape=lambda c: [c.shapes[0]],
    gradient=_broadcast_gradient,
    on_host=True,
    stateful=True,
)


@host_op("Ray>AllReduceStart", located=["values"])
def _start(call: HostCall) -> list[Any]:
    given = _given(call)
    if isinstance(given, OnDevice):
        return [(group().all_reduce(given), None)]
    flat = np.concatenate([x.ravel() for x in given])  # a copy: the run goes on, and may use its memory again
    return [(group().all_reduce(flat), None)]


@host_op("Ray>AllReduceEnd", located=["values"])
def _end(call: HostCall) -> list[Any]:
    work, *values = call.inputs
    flat = _result(call, work)
    if isinstance(flat, OnDevice):
        return [(array, flat.device) for array in flat.arrays]
    shapes = [tuple(array.shape) for array, _ in values]
    ends = np.cumsum([int(np.prod(s)) for s in shapes])
    return [part.reshape(s) for part, s in zip(np.split(flat, ends[:-1]), shapes, strict=True)]


@host_op("Ray>AllGather", located=["input"])
def _all_gather(call: HostCall) -> list[Any]:
    shape = _shape(call)
    _check_size(call)
    return [_carried_out(call, group().all_gather, (shape[0] * call.attrs["size"], *shape[1:]))]


@host_op("Ray>ReduceScatter", located=["input"])
def _reduce_scatter(call: HostCall) -> list[Any]:
    shape = _shape(call)
    _check_size(call)
    return [_carried_out(call, group().reduce_scatter, (shape[0] // call.attrs["size"], *shape[1:]))]


@host_op("Ray>Broadcast", located=["input"])
def _broadcast(call: HostCall) -> list[Any]:
    root = call.attrs["root"]
    if root >= group().size:
        raise call.error(f"root is {root}; it must be a rank of the group, of {group().size}")
    return [_carried_out(call, partial(group().broadcast, root=root), _shape(call))]


def _shape(call: HostCall) -> tuple[int, ...]:
    ((array, _),) = call.inputs
    return tuple(array.shape)


def _carried_out(call: HostCall, do: Callable[[Any], Work], shape: tuple[int, ...]) -> Any:
    """Returns what a collective of one tensor gives, in the shape that it has then; where it was carried out."""
    given = _given(call)
    found = _result(call, do(given if isinstance(given, OnDevice) else given[0].ravel()))
    return (found.arrays[0], found.device) if isinstance(found, OnDevice) else found.reshape(shape)


def _given(call: HostCall) -> OnDevice | list[np.ndarray]:
    """Returns the inputs where they are, if that is one device with collectives; else on the host."""
    devices = {id(device): device for _, device in call.inputs}
    (device, *others) = devices.values()
    if not others and device is not None and device.collective_library:
        return OnDevice(device, [array for array, _ in call.inputs])
    return [np.asarray(a) if home is None else call.cancel.wait(home.start_copy_out(a)) for a, home in call.inputs]


def _check_size(call: HostCall) -> None:
    size = group().size
    if call.attrs["size"] != size:
        raise call.error(f"attr size is {call.attrs['size']}; the group has {size} processes, and it must be theirs")


def _result(call: HostCall, work: Work) -> Any:
    """Returns what comes of a collective; a run that is cancelled ends it, and with it the group."""
    try:
        with work.changed:
            call.cancel.wait_for(work.changed, lambda: work.over)
    except BaseException as e:
        work.cancelled = e
        raise
    return work.wait()


def all_reduce(values: Sequence[Any]) -> list[Any]:
    """For each tensor the sum of those of all processes of the group, which must give equal shapes.

    The tensors have one dtype, any shapes, and are added up together; results have their shapes. Dtypes of collectives
    are float16, bfloat16, float32, float64, int32, int64, complex64 and complex128. Meanwhile this process goes on with
    what needs no sum. A run raises UnavailableError where there is no group, or a process of it was lost, and
    InvalidArgumentError where another one gives another dtype or size.
    """
    started = apply_op("Ray>AllReduceStart", [list(values)])
    return list(apply_op("Ray>AllReduceEnd", [started, list(values)]))


def all_gather(value: Any) -> Any:
    """Returns the tensors of all processes of the group, of equal shapes, one after the other
    along the first dimension.

    value: of shape [n, ...]; the result has shape [size * n, ...] and the same dtype, one of `all_reduce`'s. The group
    must have been joined: UnavailableError. Errors of a run are those of `all_reduce`.
    """
    return apply_op("Ray>AllGather", [value], {"size": group().size})


def reduce_scatter(value: Any) -> Any:
    """This process's part of the sum of all processes' tensors, of equal ones along the first dimension.

    value: of shape [n, ...], where n is a multiple of the group's size, else InvalidArgumentError; the result has shape
    [n / size, ...] and the same dtype, one of `all_reduce`'s. The group must have been joined: UnavailableError. Errors
    of a run are those of `all_reduce`.
    """
    return apply_op("Ray>ReduceScatter", [value], {"size": group().size})


def broadcast(value: Any, root: int = 0) -> Any:
    """Returns the tensor of the process of rank `root`, in all of them; shapes must be equal.

    value: of any shape, with one of `all_reduce`'s dtypes, which are the result's. A run raises InvalidArgumentError
    where `root` is no rank of the group; its other errors are those of `all_reduce`.
    """
    return apply_op("Ray>Broadcast", [value], {"root": root})
