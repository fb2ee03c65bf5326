"""The device contract: allocator, copies, concurrency, synchronisation."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import (
    LEVELS,
    Case,
    CaseFailedError,
    Measured,
    NotApplicableError,
    UnsupportedError,
    generator,
)
from timberframe_conformance.cases.layouts import LAYOUTS, arrange
from timberframe_conformance.cases.types import TESTABLE
from timberframe_conformance.cases.values import make_array
from timberframe_conformance.suites import transfers
from timberframe_conformance.suites.checks import in_threads
from timberframe_core.dtypes import BY_NAME
from timberframe_core.errors import ResourceExhaustedError, UnimplementedError
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.samples import Arg

if TYPE_CHECKING:
    from timberframe_conformance.target import Target

SUITE = "device"
SIZES = (1, 3, 64, 1000, 65_537, 1 << 20)
SHAPES = ((), (0,), (1,), (7,), (3, 5), (2, 1, 3), (4, 0, 2), (70_001,))

OPTIONAL = frozenset({"allocator-alignment", "copy-direct", "dlpack-there-and-back"})
"""What a device may be unable to show or do: handles without an address, direct copies, memory that others can use."""

ALLOCATION = "allocator-"
"""How names of checks begin that only a device of this process can pass; the memory of others is allocated where they
are."""


def collect(target: Target, ops: Sequence[OpDef]) -> Iterator[Case]:
    """Cases that ask the device itself, without an op."""
    checks: dict[str, Callable[[Target], Measured | None]] = {
        "attributes": _attributes,
        "allocator-alignment": _alignment,
        "allocator-statistics": _statistics,
        "allocator-close-twice": _close_twice,
        "allocator-exhaustion": _exhaustion,
        "allocator-concurrency": _concurrent_allocation,
        **transfers.CHECKS,
        "copy-started": _started_copy,
        "copy-direct": _direct_copy,
        "dlpack-to-numpy": _dlpack_to_numpy,
        "dlpack-there-and-back": _dlpack_there_and_back,
        "dlpack-keeps-memory": _dlpack_keeps_memory,
    }
    apart = not target.device.host_memory  # what uses the device's memory up is done in another process
    yield _case(target, "allocator-loses-nothing", transfers.loses_nothing, isolate=apart)  # while none is in use
    for name, check in checks.items():
        yield _case(target, name, check)
    held = target.device.attributes.dtypes
    for dtype in TESTABLE:
        if dtype == "string":
            continue
        for layout in LAYOUTS:
            check = functools.partial(_copies, dtype, layout)
            expected = not held or dtype in held
            yield Case(
                SUITE, "Device", (("T", dtype),), f"copy-{layout}", check, LEVELS[0], expected, asked_by=LEVELS[0]
            )
    yield _case(target, "allocator-gives-back", transfers.gives_back, isolate=apart)


def _case(target: Target, name: str, check: Callable[[Target], Measured | None], isolate: bool = False) -> Case:
    expected = name not in OPTIONAL
    if target.url and name.startswith(ALLOCATION):
        check, expected = functools.partial(_if_implemented, check), False
    return Case(SUITE, "Device", (), name, check, LEVELS[0], expected, isolate, asked_by=LEVELS[0])


def _if_implemented(check: Callable[[Target], Measured | None], target: Target) -> Measured | None:
    try:
        return check(target)
    except UnimplementedError as e:
        raise UnsupportedError(str(e)) from None


def _attributes(target: Target) -> Measured | None:
    device = target.device
    problems = []
    if device.type != device.type.upper() or not device.type:
        problems.append(f"type is {device.type!r}; it must be upper case")
    task, _, local = device.spec.rpartition("/device:")
    if not local.startswith(f"{device.type}:"):
        problems.append(f"spec is {device.spec!r}; it must end with /device:{device.type}: and an index")
    if bool(task) != bool(target.url):
        problems.append(f"spec is {device.spec!r}; it must name job and task where a target has the device, only there")
    if device.attributes.memory <= 0:
        problems.append(f"memory is {device.attributes.memory}; the bytes that it may use are required")
    alignment = device.allocator.alignment
    if alignment <= 0 or alignment & (alignment - 1):
        problems.append(f"alignment is {alignment}; a power of two is required")
    if problems:
        raise CaseFailedError("; ".join(problems))
    return None


def _address(handle: Any) -> int | None:
    """Returns the address of an allocation, where its handle shows one."""
    if isinstance(handle, int):
        return handle
    if isinstance(handle, np.ndarray):
        return int(handle.__array_interface__["data"][0])
    try:
        return int(np.frombuffer(handle, np.uint8).__array_interface__["data"][0])
    except (TypeError, ValueError, BufferError):
        return None


def _alignment(target: Target) -> Measured | None:
    allocator = target.device.allocator
    buffers = [allocator.allocate(n) for n in SIZES]
    try:
        for n, buffer in zip(SIZES, buffers, strict=True):
            address = _address(buffer.handle)
            if address is None:
                raise NotApplicableError("the allocator's handles show no address")
            if address % allocator.alignment:
                raise CaseFailedError(
                    f"an allocation of {n} bytes lies at {address:#x}; a multiple of {allocator.alignment} is required"
                )
    finally:
        for buffer in buffers:
            buffer.close()
    return None


def _statistics(target: Target) -> Measured | None:
    allocator = target.device.allocator
    gc.collect()
    before = allocator.statistics()
    buffers = [allocator.allocate(n) for n in SIZES]
    during = allocator.statistics()
    for buffer in buffers:
        buffer.close()
    after = allocator.statistics()
    if during.live - before.live != len(SIZES) or during.used - before.used < sum(SIZES):
        raise CaseFailedError(
            f"{len(SIZES)} allocations of {sum(SIZES)} bytes raised live by {during.live - before.live} and used by "
            f"{during.used - before.used}; they must be counted"
        )
    if (after.live, after.used) != (before.live, before.used):
        raise CaseFailedError(
            f"after release {after.live} live, {after.used} bytes; it was {before.live} and {before.used}"
        )
    if during.peak < during.used or after.total - before.total != len(SIZES):
        raise CaseFailedError(
            f"peak is {during.peak} with {during.used} used, total rose by {after.total - before.total}"
        )
    return None


def _close_twice(target: Target) -> Measured | None:
    gc.collect()
    before = target.statistics()
    buffer = target.device.allocator.allocate(100)
    buffer.close()
    buffer.close()
    del buffer
    after = target.statistics()
    if after.used != before.used or after.live != before.live:
        raise CaseFailedError(f"closing a buffer twice leaves {after.used} bytes in use; it was {before.used}")
    return None


def _exhaustion(target: Target) -> Measured | None:
    allocator: Any = target.device.allocator
    gc.collect()
    _refuse(allocator)  # it may give idle memory back first, so what a refusal leaves shows the second time
    before = allocator.statistics()
    _refuse(allocator)
    after = allocator.statistics()
    if (after.used, after.live) != (before.used, before.live):
        raise CaseFailedError(f"a refused allocation left {after.used - before.used} bytes in use; it must leave none")
    allocator.allocate(1000).close()
    return None


def _refuse(allocator: Any) -> None:
    """Asks for more memory than there can be."""
    limit = allocator.statistics().limit
    asked = (limit if limit is not None else 1 << 62) + 1
    try:
        buffer = allocator.allocate(asked)
    except ResourceExhaustedError as e:
        if str(asked) not in str(e):
            raise CaseFailedError(f"the error says {str(e)!r}; it must say that {asked} bytes were asked") from e
    else:
        buffer.close()
        raise CaseFailedError(f"an allocation of {asked} bytes succeeded; ResourceExhaustedError is required")


def _concurrent_allocation(target: Target) -> Measured | None:
    allocator = target.device.allocator
    gc.collect()
    before = allocator.statistics()

    def work(i: int) -> None:
        for n in range(50):
            buffer = allocator.allocate(64 * (i + 1) + n)
            buffer.close()

    in_threads(work, transfers.THREADS)
    after = allocator.statistics()
    if (after.used, after.live) != (before.used, before.live):
        raise CaseFailedError(f"after threads allocated and released, {after.used - before.used} bytes more are in use")
    return None


def _started_copy(target: Target) -> Measured | None:
    """Returns a copy to the host that is only started gives the value that the tensor had then,
    and is done at some time.
    """
    device = target.device
    x = np.arange(10_000, dtype=np.float32)
    started, marker = device.start_copy_out(device.copy_in(x)), device.marker()
    marker.result()
    if not started.done() or not marker.done():
        raise CaseFailedError("a copy that was started before a marker is not done when the marker is")
    for _ in range(2):
        if not np.array_equal(started.result(), x):
            raise CaseFailedError("a copy that was started gives other values")
    return None


def _direct_copy(target: Target) -> Measured | None:
    device = target.device
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    made = device.copy_from(device, device.copy_in(x))
    if made is None:
        raise NotApplicableError("the device has no way but through the host")
    if not np.array_equal(device.copy_out(made), x):
        raise CaseFailedError("copy_from the device itself changes the values")
    return None


def _dlpack_to_numpy(target: Target) -> Measured | None:
    device = target.device
    shared = device.dlpack_device
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    given = device.to_dlpack(device.copy_in(x))
    reported = tuple(int(v) for v in given.__dlpack_device__())
    if reported != (shared or (1, 0)):
        raise CaseFailedError(f"to_dlpack gives a tensor on {reported}; the device says {shared}")
    if reported == (1, 0) and not np.array_equal(np.from_dlpack(given), x):
        raise CaseFailedError("NumPy reads other values through DLPack")
    return None


def _dlpack_there_and_back(target: Target) -> Measured | None:
    device = target.device
    if device.dlpack_device is None:
        raise NotApplicableError("the device does not share memory through DLPack")
    for dtype in ("float32", "float64", "int64", "uint8", "bool"):
        if device.attributes.dtypes and dtype not in device.attributes.dtypes:
            continue
        for shape in SHAPES:
            x = make_array(Arg(shape), dtype, generator(f"dlpack/{dtype}"))
            back = device.from_dlpack(device.to_dlpack(device.copy_in(x)))
            if tuple(back.shape) != shape or np.dtype(back.dtype) != x.dtype:
                raise CaseFailedError(f"{dtype}{list(shape)} comes back as {back.dtype}{list(back.shape)}")
            if device.copy_out(back).tobytes() != x.tobytes():
                raise CaseFailedError(f"{dtype}{list(shape)} comes back changed")
    return None


def _dlpack_keeps_memory(target: Target) -> Measured | None:
    """Returns a tensor that was taken in outlives the one that it was made of; its memory
    goes with the last of them.
    """
    device = target.device
    gc.collect()
    before = target.statistics()
    made = device.copy_in(np.arange(100_000, dtype=np.float32))
    view = device.to_dlpack(made)
    if device.dlpack_device is not None:
        view = device.from_dlpack(view)
    del made
    gc.collect()
    others = [device.copy_in(np.zeros(100_000, np.float32)) for _ in range(3)]
    values = device.copy_out(view) if device.dlpack_device is not None else np.from_dlpack(view)
    if not np.array_equal(values, np.arange(100_000)):
        raise CaseFailedError("the memory of a tensor was used again while a DLPack view of it lived")
    del view, values, others
    device.synchronize()
    gc.collect()
    after = target.statistics()
    if (after.used, after.live) != (before.used, before.live):
        raise CaseFailedError(f"{after.used - before.used} bytes stay in use when the last view is gone")
    return None


def _copies(dtype: str, layout: str, target: Target) -> Measured | None:
    device = target.device
    if device.attributes.dtypes and dtype not in device.attributes.dtypes:
        raise NotApplicableError(f"the device does not hold {dtype}")
    rng = generator(f"copy/{dtype}/{layout}")
    for shape in SHAPES:
        x = arrange(make_array(Arg(shape), dtype, rng, special=True), layout)
        wanted = np.ascontiguousarray(x).tobytes()
        array = device.copy_in(x)
        if tuple(array.shape) != x.shape or np.dtype(array.dtype) != BY_NAME[dtype].numpy:
            raise CaseFailedError(f"copy_in of {dtype}{list(shape)} gives {array.dtype}{list(array.shape)}")
        back = device.copy_out(array)
        if back.shape != x.shape or back.dtype != x.dtype or np.ascontiguousarray(back).tobytes() != wanted:
            raise CaseFailedError(f"{dtype}{list(shape)} in layout {layout} comes back changed")
        if back.size and x.flags.writeable:
            kept = back.copy()
            x.flat[0] = x.flat[-1]
            if back.base is not x and kept.tobytes() != back.tobytes() and not device.host_memory:
                raise CaseFailedError("the device's copy changes with the host array")
    return None
