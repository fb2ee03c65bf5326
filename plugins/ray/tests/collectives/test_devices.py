"""Collectives that devices carry out themselves: when they do, values and bits, and processes that end meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

from timberframe_ray.collectives.devices import OnDevice
from timberframe_ray.collectives.group import Group
from timberframe_sdk import InternalError, UnavailableError
from timberframe_sdk.testing.collective_device import CollectiveDevice

Together = Callable[..., list[Any]]
Do = Callable[[Group, CollectiveDevice], Any]


@pytest.fixture(params=[True, False], ids=["memory", "sockets"])
def memory(request: pytest.FixtureRequest) -> bool:
    """Whether the group has shared memory; without, the processes meet and fall back through sockets."""
    found: bool = request.param
    return found


@pytest.fixture
def on_devices(together: Together) -> Together:
    """`together` where each rank has a device of a kind; libraries: those of the devices."""

    def run(size: int, do: Do, memory: bool = True, libraries: Any = None, kind: Any = CollectiveDevice) -> list[Any]:
        return together(
            size, lambda group: do(group, kind(0, None, *([libraries[group.rank]] if libraries else []))), memory
        )

    return run


def numbers(rank: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(rank).standard_normal(shape).astype(np.float32)


def on(device: CollectiveDevice, *arrays: np.ndarray) -> OnDevice | np.ndarray:
    """Returns the arrays on a device; where that has no collectives, on the host, as the ops do it."""
    if device.collective_library:
        return OnDevice(device, [device.copy_in(x) for x in arrays])
    return np.concatenate([x.ravel() for x in arrays])


def taken(found: Any) -> list[np.ndarray]:
    """Returns the results of a collective on the host."""
    return [found.device.copy_out(a) for a in found.arrays] if isinstance(found, OnDevice) else [found]


def meet(group: Group, device: CollectiveDevice) -> None:
    """The first collective of a group goes through the host, and shows all what devices there are."""
    group.all_reduce(on(device, np.zeros(1, np.float32))).wait()
    device.journal.clear()


def test_collectives_are_carried_out_on_the_devices(on_devices: Together, memory: bool) -> None:
    def do(group: Group, device: CollectiveDevice) -> Any:
        meet(group, device)
        x, y = numbers(group.rank, 6, 2), numbers(10 + group.rank, 3)
        works = [
            group.all_reduce(on(device, x, y)), group.reduce_scatter(on(device, x)),
            group.all_gather(on(device, y)), group.broadcast(on(device, y), 1),
        ]  # fmt: skip
        found = [w.wait() for w in works]
        assert "copy out" not in device.journal
        return [taken(one) for one in found]

    total = (numbers(0, 6, 2) + numbers(1, 6, 2)) + numbers(2, 6, 2)
    gathered = np.concatenate([numbers(10 + r, 3) for r in range(3)])
    for rank, found in enumerate(on_devices(3, do, memory)):
        expected = [
            [total, (numbers(10, 3) + numbers(11, 3)) + numbers(12, 3)],
            [total[2 * rank : 2 * rank + 2]], [gathered], [numbers(11, 3)],
        ]  # fmt: skip
        for one, wanted in zip(found, expected, strict=True):
            for x, y in zip(one, wanted, strict=True):
                assert x.tobytes() == y.tobytes()
                assert x.shape == y.shape


def test_the_first_collective_and_all_later_ones_have_the_same_bits(on_devices: Together, memory: bool) -> None:
    def do(group: Group, device: CollectiveDevice) -> Any:
        x = numbers(group.rank, 1001)
        return [np.concatenate(taken(group.all_reduce(on(device, x)).wait())).tobytes() for _ in range(3)]

    found = on_devices(3, do, memory)
    assert {bits for of_rank in found for bits in of_rank} == {found[0][0]}


def test_devices_meet_once(on_devices: Together, memory: bool) -> None:
    def do(group: Group, device: CollectiveDevice) -> Any:
        for _ in range(3):
            group.all_reduce(on(device, np.ones(2, np.float32))).wait()
        return device.journal.count("meet"), device.journal.count("all-reduce")

    assert on_devices(2, do, memory) == [(1, 2)] * 2


@pytest.mark.parametrize("libraries", [("a", ""), ("", "a"), ("a 1", "a 2")], ids=["second", "first", "versions"])
def test_processes_with_other_devices_go_through_the_host(
    on_devices: Together, libraries: tuple[str, str], memory: bool
) -> None:
    def do(group: Group, device: CollectiveDevice) -> Any:
        x = numbers(group.rank, 5)
        found = [np.concatenate(taken(group.all_reduce(on(device, x)).wait())) for _ in range(3)]
        assert "meet" not in device.journal
        return found

    for found in on_devices(2, do, memory, libraries):
        for x in found:
            np.testing.assert_array_equal(x, numbers(0, 5) + numbers(1, 5))


def test_arrays_that_one_process_has_on_the_host_go_through_it(on_devices: Together, memory: bool) -> None:
    def do(group: Group, device: CollectiveDevice) -> Any:
        meet(group, device)
        x = numbers(group.rank, 5)
        found = [group.all_reduce(x.copy() if group.rank else on(device, x)).wait() for _ in range(2)]
        found.append(group.all_reduce(on(device, x)).wait())  # they still have their devices
        return [np.concatenate(taken(one)) for one in found], device.journal.count("all-reduce")

    for found, count in on_devices(2, do, memory):
        assert count == 1
        for x in found:
            np.testing.assert_array_equal(x, numbers(0, 5) + numbers(1, 5))


class Unconnected(CollectiveDevice):
    """One that cannot set up its collectives in one of the processes, before or after the others exchange something."""

    def collective(self, group: Any) -> Any:
        if group.rank == 1:
            raise InternalError("no such bus")
        return super().collective(group)


class UnconnectedLater(CollectiveDevice):
    def collective(self, group: Any) -> Any:
        made = super().collective(group)
        if group.rank == 1:
            raise InternalError("no such bus")
        return made


@pytest.mark.parametrize("kind", [Unconnected, UnconnectedLater])
def test_devices_that_cannot_be_connected_go_through_the_host(on_devices: Together, kind: Any, memory: bool) -> None:
    def do(group: Group, device: CollectiveDevice) -> Any:
        return [group.all_reduce(on(device, numbers(group.rank, 5))).wait() for _ in range(3)]

    for found in on_devices(3, do, memory, kind=kind):
        for x in found:
            np.testing.assert_array_equal(x, (numbers(0, 5) + numbers(1, 5)) + numbers(2, 5))


def test_a_process_that_leaves_is_named_by_the_others(on_devices: Together, memory: bool) -> None:
    def do(group: Group, device: CollectiveDevice) -> Any:
        meet(group, device)
        group.all_reduce(on(device, np.ones(4, np.float32))).wait()
        if group.rank == 1:
            time.sleep(0.2)
            return None
        group.all_reduce(on(device, np.ones(4, np.float32))).wait()
        return None

    found = on_devices(3, do, memory)
    for rank in (0, 2):
        assert isinstance(found[rank], UnavailableError)
        assert "rank 1" in str(found[rank])


@pytest.mark.slow
def test_ops_leave_tensors_on_their_device(programs: Any) -> None:
    by_host, by_device = (programs.in_processes(2, programs.on_device, kind) for kind in ("async", "collective"))
    for rank in (0, 1):
        bits, journal = by_device[rank]
        assert bits == by_host[rank][0]
        assert journal.count("all-reduce") == 1
        assert journal.count("copy out") == 1  # the result, which was fetched


@pytest.mark.slow
def test_a_process_that_is_killed_while_devices_are_at_work_ends_the_others(programs: Any) -> None:
    found = programs.in_processes(3, programs.killed_on_device, 1, expected=2)
    for rank in (0, 2):
        message, seconds = found[rank]
        assert "rank 1" in message
        assert "Ray>AllReduceEnd" in message
        assert seconds < 5
