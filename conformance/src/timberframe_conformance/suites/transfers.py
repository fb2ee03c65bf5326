"""Memory and copies of a device, one check for each mistake of drivers: sizes, overlap, waiting, sharing, threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import CaseFailedError, Measured, NotApplicableError
from timberframe_conformance.suites.checks import in_threads
from timberframe_core.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from timberframe_conformance.target import Target
    from timberframe_core.plugin.contracts import Device

BUFFER_SIZES = (64, 1000, 65_537, 1 << 20)
LARGE = 1 << 20
"""Elements of a copy that takes a while."""
THREADS = 4
AHEAD = 6
"""Large copies that are enqueued first, so that what is not waited for is not done by chance."""

GIVEN_BACK, PARTS = 3, 16
"""How many times the device's memory is allocated and given back, and in how many parts each time."""
LEAST_PART = 1 << 16
GIVING_BACK_SECONDS = 10

TOGETHER, SMALL_BLOCKS = 14, 60
"""Parts that are allocated at the same time, and smaller blocks after each of them."""
MOST_FILLED = 1 << 30
"""Bytes of memory that may be in use as a whole for a moment: more are a card's, which other processes use, too."""
STEP = 1 << 14
"""Bytes to which the size of the largest block is found."""
TRIED, LOST, WHOLE = 3, 32, 0.75
"""Number of times that blocks are allocated and given back, the bytes of each whose loss is noticed, and the share of
the largest block that must stay. So many blocks lose more than STEP."""


def _numbers(seed: int, size: int) -> np.ndarray:
    return np.arange(seed, seed + size, dtype=np.float32)


def _busy(device: Device) -> list[Any]:
    """Returns tensors whose copies keep an asynchronous device's queue busy for a while."""
    return [device.copy_in(_numbers(i, LARGE)) for i in range(AHEAD)] if device.asynchronous else []


def _buffer_sizes(target: Target) -> Measured | None:
    """Checks that each allocation has the bytes that were asked for, and shares none with another."""
    device: Any = target.device
    buffers = [device.allocator.allocate(n) for n in BUFFER_SIZES for _ in range(2)]
    try:
        for buffer in buffers:
            handle = buffer.handle
            if isinstance(handle, np.ndarray | memoryview | bytearray):
                given = len(handle) if isinstance(handle, bytearray) else handle.nbytes
                if given < buffer.nbytes:
                    raise CaseFailedError(
                        f"the allocator gives {given} bytes where {buffer.nbytes} are asked for; it must give as many"
                    )
        if hasattr(device, "array") and hasattr(device, "copy"):
            _fill(device, buffers)
    finally:
        for buffer in buffers:
            buffer.close()
    return None


def _fill(device: Any, buffers: list[Any]) -> None:
    """Writes other bytes to each buffer and reads all of them: a short buffer would share its end with another."""
    tensors, patterns = [], []
    for i, buffer in enumerate(buffers):
        patterns.append(np.full(buffer.nbytes, i + 1, np.uint8))
        try:
            tensors.append(device.array(buffer, 0, np.dtype(np.uint8), (buffer.nbytes,)))
            device.copy(device.copy_in(patterns[-1]), tensors[-1])
        except Exception as e:
            raise CaseFailedError(
                f"a tensor of {buffer.nbytes} bytes does not fit into a buffer of as many: {type(e).__name__}: {e}; "
                "the allocator must give the bytes that are asked for"
            ) from e
    for buffer, tensor, wanted in zip(buffers, tensors, patterns, strict=True):
        found = device.copy_out(tensor)
        if not np.array_equal(found, wanted):
            count = int(np.count_nonzero(found != wanted))
            raise CaseFailedError(
                f"{count} of the {buffer.nbytes} bytes of an allocation are overwritten through others; allocations "
                "must have the bytes that are asked for, and share none"
            )


def gives_back(target: Target) -> Measured | None:
    """Memory that was given back can be had again, whatever the allocator's statistics say."""
    device: Any = target.device
    if device.host_memory or device.is_cpu:
        raise NotApplicableError("its memory is the host's, of which a leak would take what other programs need")
    memory, allocator = device.attributes.memory, device.allocator
    nbytes = _largest(allocator, memory // PARTS)
    end, total = time.monotonic() + GIVING_BACK_SECONDS, 0
    while total < GIVEN_BACK * memory:
        if time.monotonic() > end:
            raise NotApplicableError(
                f"the device has {memory} bytes, of which only {total} could be allocated and given back in turn in "
                f"{GIVING_BACK_SECONDS} s"
            )
        if not _can_allocate(allocator, nbytes):
            raise CaseFailedError(
                f"an allocation of {nbytes} bytes is refused after {total} bytes had been allocated and given back in "
                f"turn, on a device with {memory} bytes, of which {allocator.statistics().used} are said to be in use; "
                "memory must be free again when its last reference is dropped"
            )
        device.synchronize()  # what is dropped may be freed when the queue comes to it
        total += nbytes
    return None


def loses_nothing(target: Target) -> Measured | None:
    """Checks that all bytes of a block can be had again, in one piece with those around it.

    The largest block that there can be must be as large after most of the memory was in use in blocks of odd sizes. A
    driver that loses memory does so each time, unlike one that makes what it keeps, and other processes.
    """
    device: Any = target.device
    if device.host_memory or device.is_cpu:
        raise NotApplicableError("its memory is the host's, whose allocator is the system's")
    if device.attributes.memory > MOST_FILLED:
        raise NotApplicableError(f"other processes may need its memory, of more than {MOST_FILLED} bytes")
    sizes = [_largest_block(device)]
    for _ in range(TRIED):
        blocks = _use_in_blocks(device, sizes[0] // PARTS)
        sizes.append(_largest_block(device))
        if sizes[-1] > max(sizes[-2] - LOST * blocks, sizes[0] * WHOLE):
            return None
    raise CaseFailedError(
        f"the largest block that there can be has {sizes[0]} bytes, and {', '.join(map(str, sizes[1:]))} each time "
        f"after {blocks} blocks of odd sizes were allocated and given back, while "
        f"{device.allocator.statistics().used} bytes are said to be in use; all bytes of a block must be free again "
        "when its last reference is dropped, in one piece with those around it"
    )


def _largest_block(device: Any) -> int:
    """Returns the size of the largest block that there can be now, less than STEP too small."""
    device.synchronize()
    least, most = 0, device.attributes.memory + 1
    while most - least > STEP:
        middle = (least + most) // 2
        if _can_allocate(device.allocator, middle):
            least = middle
        else:
            most = middle
    return least


def _use_in_blocks(device: Any, part: int) -> int:
    """Takes much of the memory, in parts with small blocks between them, and gives back every second block first.

    Returns how many blocks there were; fewer where others use memory, too.
    """
    blocks: list[Any] = []
    try:
        for i in range(TOGETHER):
            blocks.append(device.allocator.allocate(part - 2 * i - 1))
            blocks += [device.allocator.allocate(61 * k + i + 1) for k in range(SMALL_BLOCKS)]
    except ResourceExhaustedError:
        pass
    for block in blocks[::2] + blocks[1::2]:
        block.close()
    return len(blocks)


def _largest(allocator: Any, nbytes: int) -> int:
    """So many bytes, or half of them as often as it takes until they can be allocated."""
    while not _can_allocate(allocator, nbytes):
        nbytes //= 2
        if nbytes < LEAST_PART:
            raise NotApplicableError(f"fewer than {LEAST_PART} bytes in a row are free")
    return nbytes


def _can_allocate(allocator: Any, nbytes: int) -> bool:
    """Returns whether there is such a buffer, which is given back at once."""
    try:
        allocator.allocate(nbytes).close()
    except ResourceExhaustedError:
        return False
    return True


def _side_by_side(target: Target) -> Measured | None:
    """Checks that tensors that live at the same time do not share memory."""
    device = target.device
    arrays = [_numbers(1000 * i, n) for i, n in enumerate((1, 17, 1000, 10_000, 70_001))]
    tensors = [device.copy_in(x) for x in arrays]
    device.synchronize()
    for i, (x, a) in enumerate(zip(arrays, tensors, strict=True)):
        found = device.copy_out(a)
        if not np.array_equal(found, x):
            raise CaseFailedError(
                f"tensor {i} of {len(arrays)}, of {x.nbytes} bytes, has other values in {np.count_nonzero(found != x)} "
                "elements once the others are made; tensors that live at the same time must not share memory"
            )
    return None


def _reads_at_once(target: Target) -> Measured | None:
    """Checks that a host array may change as soon as copy_in has returned, unless the
    device's tensors are host arrays.
    """
    device = target.device
    if device.host_memory:
        raise NotApplicableError("its tensors are host arrays, which it may borrow")
    ahead = _busy(device)
    for size in (7, 1000, LARGE):
        x = _numbers(1, size)
        a = device.copy_in(x)
        x[...] = -1
        device.synchronize()
        found = device.copy_out(a)
        late = int(np.count_nonzero(found == -1))
        if late:
            raise CaseFailedError(
                f"copy_in goes on reading the host array after it has returned: {late} of {size} elements are those "
                "written to the array afterwards; copy_in must wait until the array is read, or copy it first"
            )
        if wrong := int(np.count_nonzero(found != _numbers(1, size))):
            raise CaseFailedError(
                f"copy_in loses elements: {wrong} of {size} are neither what the host array had nor what was written "
                f"to it afterwards, the first at {int(np.argmax(found != _numbers(1, size)))}"
            )
    del ahead
    return None


def _copy_out_waits(target: Target) -> Measured | None:
    """copy_out waits for the work that makes its tensor."""
    device = target.device
    _require_waiting(device, "copy_out", device.copy_out)
    return None


def _start_copy_out_waits(target: Target) -> Measured | None:
    """Checks that a copy to the host that is started comes after the work that makes its tensor."""
    device = target.device
    _require_waiting(device, "start_copy_out", lambda a: device.start_copy_out(a).result())
    return None


def _require_waiting(device: Device, name: str, copy: Callable[[Any], np.ndarray]) -> None:
    """Copies tensors to the host while the device is still at work on them. name: of the device's method."""
    ahead = _busy(device)
    for size in (1000, LARGE):
        x = _numbers(1, size)
        for a in _enqueued(device, x):
            found = _or_error(copy, a)
            if isinstance(found, np.ndarray) and np.array_equal(found, x):
                continue
            device.synchronize()
            what = f"raises {found}" if isinstance(found, str) else f"gives {np.sum(found != x)} wrong elements"
            if not np.array_equal(copy(a), x):
                raise CaseFailedError(f"{name} of {size} elements {what}, after synchronize() too")
            raise CaseFailedError(
                f"{name} does not wait for the work that makes its tensor: for {size} elements it {what}, and gives "
                "the right ones after synchronize()"
            )
    del ahead


def _enqueued(device: Any, x: np.ndarray) -> list[Any]:
    """Returns tensors that the device may still be making: x copied in, and on a KernelDevice
    copied once more by itself.
    """
    made = [device.copy_in(x)]
    if hasattr(device, "empty") and hasattr(device, "copy"):
        made.append(device.empty(x.dtype, x.shape))
        device.copy(*made)
    return made


def _or_error(copy: Callable[[Any], np.ndarray], a: Any) -> np.ndarray | str:
    """Returns what a copy to the host gives, as it is now, or the error that it raises."""
    try:
        return np.array(copy(a))
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def _copy_out_owns(target: Target) -> Measured | None:
    """Checks that the array of copy_out is the caller's: neither changes the other later."""
    device: Any = target.device
    if device.host_memory:
        raise NotApplicableError("its tensors are host arrays, which it may hand out; sessions copy them")
    for size in (7, 1000, LARGE):
        x = _numbers(1, size)
        a = device.copy_in(x)
        found = device.copy_out(a)
        kept = device.start_copy_out(a).result()
        if found.flags.writeable:
            found[...] = -1
        if not np.array_equal(device.copy_out(a), x):
            raise CaseFailedError(
                f"a tensor of {size} elements changes when the array that copy_out gave is written to; it must own its "
                "memory"
            )
        if hasattr(device, "copy"):
            device.copy(device.copy_in(_numbers(5, size)), a)
            device.synchronize()
        if not np.array_equal(kept, x):
            raise CaseFailedError(
                f"an array of {size} elements that start_copy_out gave changes when the tensor is written to later; it "
                "must own its memory"
            )
    return None


def _dropped_in_use(target: Target) -> Measured | None:
    """Memory of a tensor that was dropped is used again only when the device is past its last use."""
    device: Any = target.device
    if not (device.asynchronous and hasattr(device, "empty") and hasattr(device, "copy")):
        raise NotApplicableError("it copies nothing by itself while the host goes on")
    ahead = [*_busy(device), device.empty(np.dtype(np.float32), (LARGE,))]
    for size in (1000, LARGE):
        for a in ahead[:-1]:
            device.copy(a, ahead[-1])  # the queue is busy for a while
        made, x = [], _numbers(1, size)
        for _ in range(AHEAD):
            source, target_tensor = device.copy_in(x), device.empty(x.dtype, x.shape)
            device.copy(source, target_tensor)
            made.append(target_tensor)
            del source
            device.copy_in(np.full(size, -1, x.dtype))
        wrong = sum(not np.array_equal(device.copy_out(a), x) for a in made)
        if wrong:
            raise CaseFailedError(
                f"{wrong} of {len(made)} copies within the device, of {size} elements each, have other values: their "
                "source was dropped while they waited in the queue, and its memory was written to before they were "
                "made; memory must be free only when the device is past its last use"
            )
    return None


def _synchronize(target: Target) -> Measured | None:
    """Checks that all work that was enqueued before synchronize() is done when it returns."""
    device = target.device
    x = _numbers(0, LARGE if device.asynchronous else 10)
    started = [device.start_copy_out(device.copy_in(x)) for _ in range(AHEAD)]
    device.synchronize()
    late = sum(not s.done() for s in started)
    if late:
        raise CaseFailedError(
            f"synchronize() returned while {late} of {len(started)} copies that were started before it were not done; "
            "it must wait for all pending work"
        )
    if not all(np.array_equal(s.result(), x) for s in started):
        raise CaseFailedError("a copy that was started has other values after synchronize()")
    return None


def _in_several_threads(target: Target) -> Measured | None:
    """Copies of several threads at once."""
    device = target.device

    def work(i: int) -> None:
        for size in (10_000, 100) * 10:
            x = np.full(size, i, np.float32)
            found = device.copy_out(device.copy_in(x))
            if not np.array_equal(found, x):
                others = sorted({int(v) for v in np.unique(found) if v != i and v in range(THREADS)})
                raise CaseFailedError(
                    f"{np.count_nonzero(found != x)} of {size} elements are wrong"
                    + (f", with values of threads {others}" if others else "")
                )

    try:
        for i in range(THREADS):
            work(i)
    except CaseFailedError as e:
        raise CaseFailedError(f"copies that one thread makes one after the other are wrong already: {e}") from e
    try:
        in_threads(work, THREADS)
    except CaseFailedError as e:
        raise CaseFailedError(
            f"copies of {THREADS} threads at once disturb each other, while those of one thread are right: {e}; "
            "copy_in and copy_out must lock what they share, such as a staging buffer"
        ) from e
    return None


CHECKS: Mapping[str, Callable[[Target], Measured | None]] = {
    "allocator-sizes": _buffer_sizes,
    "copies-side-by-side": _side_by_side,
    "copy-in-reads-at-once": _reads_at_once,
    "copy-out-waits": _copy_out_waits,
    "start-copy-out-waits": _start_copy_out_waits,
    "copy-out-owns": _copy_out_owns,
    "dropped-in-use": _dropped_in_use,
    "copies-concurrency": _in_several_threads,
    "synchronize": _synchronize,
}
"""Cases of the suite `device`, besides `gives_back` and `loses_nothing`."""
