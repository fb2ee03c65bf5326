"""Collectives by NCCL, through CuPy: sums and copies between the GPUs of a group of processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import cupy
import numpy as np

from timberframe_accelerator import DeviceTensor
from timberframe_cuda.context import finished
from timberframe_sdk import CollectiveGroup, InternalError, InvalidArgumentError, Pending, UnavailableError

with warnings.catch_warnings(action="ignore", category=UserWarning):  # CuPy warns at the import where there is no NCCL
    from cupy.cuda import nccl

_DTYPES = {
    "float16": "NCCL_FLOAT16", "bfloat16": "NCCL_BFLOAT16", "float32": "NCCL_FLOAT32", "float64": "NCCL_FLOAT64",
    "int8": "NCCL_INT8", "int32": "NCCL_INT32", "int64": "NCCL_INT64", "uint8": "NCCL_UINT8", "uint32": "NCCL_UINT32",
    "uint64": "NCCL_UINT64",
}  # fmt: skip
_PARTS = {"complex64": "float32", "complex128": "float64"}
"""Complex numbers are added up as pairs of real ones."""


def library() -> str:
    """Returns the name and version of NCCL; empty where CuPy cannot load it."""
    return f"NCCL {nccl.get_version()}" if nccl.available else ""


class Nccl:
    """See `Collective`. Its work is on a stream of its own, which waits for the device's."""

    def __init__(self, device: Any, group: CollectiveGroup) -> None:
        self._device, self._size, self._closed = device, group.size, False
        self._under_way: dict[cupy.cuda.Event, Any] = {}
        made = as_bytes(nccl.get_unique_id()) if group.rank == 0 else b""
        identity = as_unique_id(group.exchange(made)[0])
        with device.gpu:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._communicator = nccl.NcclCommunicator(group.size, identity, group.rank)

    def all_reduce(self, arrays: Sequence[DeviceTensor]) -> Pending:
        def call(a: DeviceTensor, made: DeviceTensor, count: int, dtype: int) -> None:
            self._communicator.allReduce(_at(a), _at(made), count, dtype, nccl.NCCL_SUM, self._stream.ptr)

        return self._enqueue(arrays, [a.shape for a in arrays], call, adds=True, one=False)

    def all_gather(self, array: DeviceTensor) -> Pending:
        def call(a: DeviceTensor, made: DeviceTensor, count: int, dtype: int) -> None:
            self._communicator.allGather(_at(a), _at(made), count, dtype, self._stream.ptr)

        return self._enqueue([array], [(self._size * array.shape[0], *array.shape[1:])], call, adds=False)

    def reduce_scatter(self, array: DeviceTensor) -> Pending:
        def call(a: DeviceTensor, made: DeviceTensor, count: int, dtype: int) -> None:
            part = count // self._size
            self._communicator.reduceScatter(_at(a), _at(made), part, dtype, nccl.NCCL_SUM, self._stream.ptr)

        return self._enqueue([array], [(array.shape[0] // self._size, *array.shape[1:])], call, adds=True)

    def broadcast(self, array: DeviceTensor, root: int) -> Pending:
        def call(a: DeviceTensor, made: DeviceTensor, count: int, dtype: int) -> None:
            self._communicator.broadcast(_at(a), _at(made), count, dtype, root, self._stream.ptr)

        return self._enqueue([array], [array.shape], call, adds=False)

    def close(self) -> None:
        self._closed = True
        with self._device.gpu:
            self._communicator.abort()  # `destroy` would wait for processes that have ended
        self._under_way.clear()

    def _enqueue(
        self,
        arrays: Sequence[DeviceTensor],
        shapes: Sequence[tuple[int, ...]],
        call: Callable[[DeviceTensor, DeviceTensor, int, int], None],
        adds: bool,
        one: bool = True,
    ) -> Pending:
        """Calls NCCL for each array; the event after it. adds: whether it adds the arrays up, and not only moves them.

        one: its result is the first tensor, else a list of all.
        """
        device, counts = self._device, [_counted(a, adds) for a in arrays]
        made = [device.empty(a.dtype, shape) for a, shape in zip(arrays, shapes, strict=True)]
        before = device.event()
        with self._calling():
            self._stream.wait_event(before)
            with _one_group():
                for a, result, counted in zip(arrays, made, counts, strict=True):
                    call(a, result, *counted)
            event = cupy.cuda.Event(disable_timing=True)
            event.record(self._stream)
        self._keep(event, (arrays, made))
        return _Work(self, event, made[0] if one else made)

    def _keep(self, event: cupy.cuda.Event, arrays: Any) -> None:
        """Keeps arrays until an event, even if nobody waits for the work: their memory is for the device's stream."""
        for old in [e for e in list(self._under_way) if finished(e)]:
            self._under_way.pop(old, None)
        self._under_way[event] = arrays

    def check(self) -> None:
        """Raises what NCCL has noticed meanwhile."""
        if self._closed:
            raise UnavailableError(f"{self._device.spec}: the group of its collectives has ended")
        with self._calling():
            self._communicator.check_async_error()

    def received(self, event: cupy.cuda.Event) -> None:
        """Makes the device's stream wait for the results: what it does later may use the memory of the arrays."""
        with self._device.calling():
            self._device.stream.wait_event(event)
        self._under_way.pop(event, None)

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """As the device's `calling`, on the stream of the collectives; NCCL's errors come out as ours."""
        with self._device.calling():
            try:
                with self._stream:
                    yield
            except nccl.NcclError as e:
                raise InternalError(f"{self._device.spec}: NCCL reports {e}") from e


@contextmanager
def _one_group() -> Iterator[None]:
    """Makes NCCL start the calls of the block together; an error of one of them is not lost in what the end reports."""
    nccl.groupStart()
    try:
        yield
    except BaseException:
        with suppress(nccl.NcclError):
            nccl.groupEnd()
        raise
    nccl.groupEnd()


class _Work:
    """A Pending: NCCL's work until an event."""

    def __init__(self, owner: Nccl, event: cupy.cuda.Event, made: Any) -> None:
        self._owner, self._event, self._made = owner, event, made

    def done(self) -> bool:
        self._owner.check()
        return finished(self._event)

    def result(self) -> Any:
        with self._owner._device.calling():
            self._event.synchronize()
        self._owner.check()
        self._owner.received(self._event)
        return self._made


def as_bytes(unique_id: bytes | tuple[int, ...]) -> bytes:
    """Returns an id of CuPy's as the group's processes exchange it, whatever versions of CuPy they have."""
    return unique_id if isinstance(unique_id, bytes) else np.array(unique_id, np.int8).tobytes()


def as_unique_id(data: bytes) -> bytes | tuple[int, ...]:
    """Returns an id as this version of CuPy takes it: since 14 as bytes, before that as a tuple of signed numbers."""
    since_14 = int(cupy.__version__.partition(".")[0]) >= 14
    return data if since_14 else tuple(np.frombuffer(data, np.int8).tolist())


def _counted(a: DeviceTensor, adds: bool) -> tuple[int, int]:
    """Returns how many numbers of which of NCCL's dtypes a tensor has; those of others are moved as bytes."""
    name, count = a.dtype.name, int(np.prod(a.shape))
    if name in _PARTS:
        name, count = _PARTS[name], 2 * count
    if name not in _DTYPES and not adds:
        name, count = "uint8", a.nbytes
    if name not in _DTYPES:
        raise InvalidArgumentError(f"a tensor of {name} given; NCCL adds up {', '.join([*_DTYPES, *_PARTS])}")
    return count, int(getattr(nccl, _DTYPES[name]))


def _at(a: DeviceTensor) -> int:
    return int(a.handle.ptr)
