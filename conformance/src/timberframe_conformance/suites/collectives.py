"""Collectives that a device carries out itself (`Device.collective`): sums and copies over the devices of a group.

The members are threads of this process, each with a device of its own: two where a session can have two, else one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance.case import CaseFailedError, NotApplicableError
from timberframe_conformance.suites.checks import Checks, in_threads, same
from timberframe_core.errors import UnimplementedError

if TYPE_CHECKING:
    from timberframe_conformance.target import Target
    from timberframe_core.plugin.collectives import Collective
    from timberframe_core.plugin.contracts import Array, Device

SUITE = "collectives"
MEMBERS = 2
MOST_BYTES = 4096
"""So much a member may give in one exchange."""
SECONDS = 30.0
"""A member that does not come to an exchange by then has failed."""
DTYPES = ("float32", "float64", "int32", "int64", "uint8")
"""Those of them that the device holds are tried."""
RUNS = 3

check = Checks(SUITE, expected=False)
collect = check.collect


class _Meeting:
    """What the members of a group have in common while they exchange."""

    def __init__(self, size: int) -> None:
        self.parts: list[bytes] = [b""] * size
        self.all_here = threading.Barrier(size, timeout=SECONDS)


class _Member:
    """See `CollectiveGroup`."""

    def __init__(self, rank: int, size: int, meeting: _Meeting) -> None:
        self.rank, self.size, self._meeting = rank, size, meeting

    def exchange(self, data: bytes) -> list[bytes]:
        if len(data) > MOST_BYTES:
            raise CaseFailedError(f"a member gives {len(data)} bytes in one exchange; {MOST_BYTES} are the most")
        self._meeting.parts[self.rank] = data
        try:
            self._meeting.all_here.wait()
            found = list(self._meeting.parts)
            self._meeting.all_here.wait()  # before anybody writes the next ones
        except threading.BrokenBarrierError:
            raise UnimplementedError("the device of another member has failed") from None
        return found


Work = Callable[["Device", "Collective", _Member], None]


def _in_group(target: Target, graph: Any, work: Work) -> None:
    """Calls `work` in each member of a group, and raises the first error of one."""
    kind = target.device.type
    if target.url or not target.device.collective_library:
        raise NotApplicableError("the device carries out no collectives itself")
    with target.session(graph, device_count={kind: MEMBERS}) as session:
        devices: list[Device] = [d for d in session.list_devices() if d.type == kind][:MEMBERS]
        meeting = _Meeting(len(devices))

        failures: list[BaseException] = []

        def member(rank: int) -> None:
            group = _Member(rank, len(devices), meeting)
            try:
                made = devices[rank].collective(group)
                try:
                    work(devices[rank], made, group)
                except BaseException as e:
                    failures.append(e)  # before others fail since this one closes its side
                    raise
                finally:
                    made.close()
            except BaseException as e:
                failures.append(e)
                meeting.all_here.abort()  # the others need not wait for it

        in_threads(member, len(devices))
    if failures:
        raise failures[0]


def _dtypes(device: Device) -> list[str]:
    return [d for d in DTYPES if d in (device.attributes.dtypes or DTYPES)]


def _numbers(rank: int, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Returns small whole numbers, whose sums are exact in any order."""
    return ((np.arange(np.prod(shape, dtype=int)) % 7 + 10 * rank).astype(dtype)).reshape(shape)


def _parts(group: _Member, dtype: str, shape: Sequence[int]) -> list[np.ndarray]:
    return [_numbers(rank, dtype, shape) for rank in range(group.size)]


def _is(device: Device, found: Array, wanted: np.ndarray, what: str) -> None:
    """Raises CaseFailedError unless an array of the device has dtype, shape and values."""
    x = np.asarray(device.copy_out(found))
    if x.dtype != wanted.dtype:
        raise CaseFailedError(f"{what} is of {x.dtype}; it must be of {wanted.dtype}")
    same(x, wanted, what)


@check("Collective", "all-reduce")
def _all_reduce(target: Target, graph: Any) -> None:
    """Sums of several tensors at a time, in each dtype; tensors that are given, and earlier sums, stay as they are."""

    def work(device: Device, collective: Collective, group: _Member) -> None:
        for dtype in _dtypes(device):
            shapes = [(3,), (), (2, 5), (1031,)]
            given = [_numbers(group.rank, dtype, shape) for shape in shapes]
            tensors = [device.copy_in(x) for x in given]
            sums = collective.all_reduce(tensors).result()
            doubled = collective.all_reduce([device.copy_in(np.asarray(x + x)) for x in given]).result()
            for shape, x, tensor, total, double in zip(shapes, given, tensors, sums, doubled, strict=True):
                wanted = np.sum(_parts(group, dtype, shape), axis=0, dtype=dtype)
                what = f"the sum of {dtype}{list(shape)} at rank {group.rank}"
                _is(device, total, wanted, what)
                _is(device, double, wanted + wanted, f"{what}, of the second run,")
                _is(device, tensor, x, f"after it the tensor that rank {group.rank} gave")

    _in_group(target, graph, work)


@check("Collective", "all-gather")
def _all_gather(target: Target, graph: Any) -> None:
    """One after the other along the first dimension, by rank."""

    def work(device: Device, collective: Collective, group: _Member) -> None:
        for dtype in _dtypes(device):
            found = collective.all_gather(device.copy_in(_numbers(group.rank, dtype, (3, 4)))).result()
            _is(device, found, np.concatenate(_parts(group, dtype, (3, 4))), "what all have gathered")

    _in_group(target, graph, work)


@check("Collective", "reduce-scatter")
def _reduce_scatter(target: Target, graph: Any) -> None:
    """Each member has its part of the sum."""

    def work(device: Device, collective: Collective, group: _Member) -> None:
        shape = (3 * group.size, 2)
        for dtype in _dtypes(device):
            found = collective.reduce_scatter(device.copy_in(_numbers(group.rank, dtype, shape))).result()
            total: np.ndarray = np.sum(_parts(group, dtype, shape), axis=0, dtype=dtype)
            mine = total[3 * group.rank : 3 * group.rank + 3]
            _is(device, found, mine, f"the part of rank {group.rank}")

    _in_group(target, graph, work)


@check("Collective", "broadcast")
def _broadcast(target: Target, graph: Any) -> None:
    """From each member in turn; the others' tensors stay as they are."""

    def work(device: Device, collective: Collective, group: _Member) -> None:
        for root in range(group.size):
            mine = _numbers(group.rank, "float32", (2, 3))
            tensor = device.copy_in(mine)
            found = collective.broadcast(tensor, root).result()
            _is(device, found, _numbers(root, "float32", (2, 3)), f"what rank {root} has sent to all")
            _is(device, tensor, mine, f"after it the tensor that rank {group.rank} gave")

    _in_group(target, graph, work)


@check("Collective", "equal-bits")
def _equal_bits(target: Target, graph: Any) -> None:
    """Sums whose rounding depends on their order have equal bits in every run and in all members."""
    bits: list[set[bytes]] = [set() for _ in range(MEMBERS)]

    def work(device: Device, collective: Collective, group: _Member) -> None:
        x = np.random.default_rng(group.rank).standard_normal(10_007).astype(np.float32)
        for _ in range(RUNS):
            (total,) = collective.all_reduce([device.copy_in(x)]).result()
            bits[group.rank].add(np.asarray(device.copy_out(total)).tobytes())

    _in_group(target, graph, work)
    found = set().union(*bits)
    if len(found) != 1:
        raise CaseFailedError(f"{RUNS} sums of the same tensors have {len(found)} different results; all must be equal")


@check("Collective", "member-ends")
def _member_ends(target: Target, graph: Any) -> None:
    """What waits for a member that has closed its side raises, and soon."""
    outcome: list[str] = []

    def work(device: Device, collective: Collective, group: _Member) -> None:
        if group.size == 1:
            raise NotApplicableError(f"a session has no {MEMBERS} devices of its type")
        if group.rank:
            collective.close()
            return
        try:
            collective.all_reduce([device.copy_in(np.ones(100_000, np.float32))]).result()
            outcome.append("gave a sum")
        except Exception:
            outcome.append("raised")

    _in_group(target, graph, work)
    if outcome != ["raised"]:
        raise CaseFailedError("a sum with a member that had closed its side did not raise; it must, and at once")
