"""Transactions: leases of versions, updates in place, and new versions that an executable allocates itself."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest

import timberframe_sdk as sdk
from timberframe_core.errors import FailedPreconditionError
from timberframe_sdk import InternalError, InvalidArgumentError, ResourceExhaustedError
from timberframe_sdk.testing.reference_device import ReferenceDevice
from timberframe_sdk.transaction import UNCHANGED_RUNS, StandingLease

F = np.dtype(np.float32)


@pytest.fixture
def device() -> ReferenceDevice:
    return ReferenceDevice()


def variable(device: ReferenceDevice, number: int = 0, values: tuple[float, ...] | None = (1, 2)) -> sdk.Variable:
    made = sdk.Variable(f"v{number}", number, device, sdk.as_dtype("float32"))
    if values is not None:
        made.commit(np.array(values, F), (len(values),))
    return made


def transaction(*variables: sdk.Variable) -> sdk.Transaction:
    """Adds 1 to each, in place where that is possible."""
    nodes, resources, updates = [], [], []
    for i, v in enumerate(variables):
        old, new = sdk.Value(2 * i, F, (2,), "resource", v), sdk.Value(2 * i + 1, F, (2,))
        nodes.append(sdk.KernelNode("Inc", f"inc{i}", {}, [old], [new], v.device))
        resources.append(old)
        updates.append(sdk.Update(v, old, new, True))
    return sdk.Transaction(sdk.Cluster(variables[0].device, nodes, [], [], resources, updates))


def add_one(t: sdk.Transaction) -> bool:
    """Runs it, and says whether the first new version lies over the old one."""
    with t.begin(lambda dtype, shape: np.empty(shape, dtype)) as arrays:
        in_place = arrays[1] is arrays[0]
        for i in range(0, len(arrays), 2):
            np.add(arrays[i], 1, arrays[i + 1])
    return in_place


def values(v: sdk.Variable) -> list[float]:
    version = v.lease()
    assert version is not None
    found: list[float] = version.array.tolist()
    version.release()
    return found


def test_an_old_version_that_nobody_reads_is_written_over(device: ReferenceDevice) -> None:
    v = variable(device)
    assert add_one(transaction(v))
    assert values(v) == [2, 3]


def test_a_version_with_another_reader_is_left_alone(device: ReferenceDevice) -> None:
    v = variable(device)
    version = v.lease()
    assert version is not None
    assert not add_one(transaction(v))
    assert version.array.tolist() == [1, 2]
    assert values(v) == [2, 3]


def test_a_version_is_written_over_again_when_its_reader_is_done(device: ReferenceDevice) -> None:
    v = variable(device)
    version = v.lease()
    assert version is not None
    version.release()
    assert add_one(transaction(v))


def test_other_references_to_the_array_do_not_count(device: ReferenceDevice) -> None:
    """Python may count references in any way that it likes, or not at all."""
    v = variable(device)
    assert v.version is not None
    held = v.version.array
    assert add_one(transaction(v))
    assert held.tolist() == [2, 3]


def test_a_run_that_only_reads_keeps_writers_off(device: ReferenceDevice) -> None:
    v = variable(device)
    reading = sdk.Transaction(sdk.Cluster(device, [], [], [], [sdk.Value(0, F, (2,), "resource", v)]))
    with reading.begin() as arrays:
        done = []
        writer = threading.Thread(target=lambda: done.append(add_one(transaction(v))))
        writer.start()
        writer.join(10)
        assert done == [False]
        assert arrays[0].tolist() == [1, 2]


def test_a_reader_waits_while_a_version_is_written_over(device: ReferenceDevice) -> None:
    v = variable(device)
    seen: list[list[float]] = []
    reader = threading.Thread(target=lambda: seen.append(values(v)))
    with transaction(v).begin(lambda dtype, shape: np.empty(shape, dtype)) as arrays:
        arrays[1][:] = 7
        reader.start()
        reader.join(0.2)
        assert seen == []
        arrays[1][:] = 8
    reader.join(10)
    assert seen == [[8, 8]]


def test_readers_never_see_half_of_an_update(device: ReferenceDevice) -> None:
    v = variable(device, values=(0, 0))
    t, torn = transaction(v), []

    def read() -> None:
        for _ in range(2000):
            first, second = values(v)
            if first != second:
                torn.append((first, second))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    while any(thread.is_alive() for thread in readers):
        with t.begin(lambda dtype, shape: np.empty(shape, dtype)) as arrays:
            for i in range(2):
                arrays[1][i] = arrays[0][i] + 1
    assert torn == []


def test_all_values_stay_where_the_memory_for_one_is_missing(device: ReferenceDevice) -> None:
    first, second = variable(device, 0), variable(device, 1)
    held = second.lease()

    def empty(dtype: np.dtype[np.float32], shape: tuple[int, ...]) -> np.ndarray:
        raise ResourceExhaustedError("no memory")

    with pytest.raises(ResourceExhaustedError):
        transaction(first, second).begin(empty)
    assert held is not None
    assert values(first) == values(second) == [1, 2]


def test_a_failed_run_gives_its_leases_back(device: ReferenceDevice) -> None:
    v = variable(device)
    with pytest.raises(ZeroDivisionError), transaction(v).begin(lambda dtype, shape: np.empty(shape, dtype)):
        raise ZeroDivisionError
    assert values(v) == [1, 2]
    assert add_one(transaction(v))


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (None, FailedPreconditionError, "'v1': the variable has no value; run its initializer first"),
        ((1, 2, 3), InvalidArgumentError, r"'v1': the variable changed to shape \(3,\) during the run"),
    ],
)
def test_a_run_that_cannot_begin_gives_its_leases_back(
    given: tuple[float, ...] | None, kind: type[Exception], words: str, device: ReferenceDevice
) -> None:
    first, second = variable(device, 0), variable(device, 1, given)
    with pytest.raises(kind, match=words):
        transaction(first, second).begin()
    assert add_one(transaction(first))


def test_an_executable_may_allocate_new_versions_itself(device: ReferenceDevice) -> None:
    v = variable(device)
    made = np.array([5, 6], F)
    with transaction(v).begin() as arrays:
        assert list(arrays) == [0]  # the old version alone
        arrays[1] = made
    assert v.version is not None
    assert v.version.array is made


def test_without_arrays_of_its_own_a_run_writes_over_no_version(device: ReferenceDevice) -> None:
    v = variable(device)
    seen: list[list[float]] = []
    with transaction(v).begin() as arrays:
        reader = threading.Thread(target=lambda: seen.append(values(v)))
        reader.start()
        reader.join(10)
        arrays[1] = np.array([5, 6], F)
    assert seen == [[1, 2]]


def test_a_new_version_that_is_missing_is_an_error_that_names_the_node(device: ReferenceDevice) -> None:
    first, second = variable(device, 0), variable(device, 1)
    run = transaction(first, second).begin()
    with pytest.raises(InternalError, match="Inc 'inc1': the executable gave no new version of variable 'v1'"), run:
        run.arrays[1] = np.array([5, 6], F)
    assert values(first) == values(second) == [1, 2]


def reading(v: sdk.Variable) -> sdk.Transaction:
    return sdk.Transaction(sdk.Cluster(v.device, [], [], [], [sdk.Value(0, F, (2,), "resource", v)]))


def settled(v: sdk.Variable) -> tuple[sdk.Transaction, StandingLease]:
    """Returns a transaction whose runs share a lease, and that lease, which was entered."""
    t = reading(v)
    for _ in range(UNCHANGED_RUNS + 1):
        assert t.standing() is None
        with t.begin():
            pass
    lease = t.standing()
    assert lease is not None
    return t, lease


def test_runs_that_read_the_same_versions_share_a_lease(device: ReferenceDevice) -> None:
    t, lease = settled(variable(device))
    with t.begin() as arrays:
        assert arrays[0].tolist() == [1, 2]
    assert t.standing() is lease


def test_a_version_of_a_shared_lease_is_written_over_when_no_run_is_on(device: ReferenceDevice) -> None:
    v = variable(device)
    t, lease = settled(v)
    lease.leave()
    assert add_one(transaction(v))
    assert t.standing() is None
    with t.begin() as arrays:
        assert arrays[0].tolist() == [2, 3]


def test_a_version_is_left_alone_while_a_run_is_on_with_a_shared_lease(device: ReferenceDevice) -> None:
    v = variable(device)
    t, lease = settled(v)
    assert not add_one(transaction(v))
    assert lease.arrays[0].tolist() == [1, 2]
    assert t.standing() is None
    lease.leave()


def test_a_shared_lease_keeps_no_array_of_a_version_that_was_replaced(device: ReferenceDevice) -> None:
    v = variable(device)
    array = np.array([5, 6], F).view(Referable)
    v.commit(array, (2,))
    _, lease = settled(v)
    lease.leave()
    gone = weakref.ref(array)
    del array
    v.commit(np.array([7, 8], F), (2,))
    assert gone() is None


def test_a_shared_lease_gives_its_arrays_back_with_the_last_run(device: ReferenceDevice) -> None:
    v = variable(device)
    _, lease = settled(v)
    v.commit(None, None)
    assert lease.arrays[0].tolist() == [1, 2]
    lease.leave()
    assert lease.arrays == {}


def test_a_variable_that_changes_now_and_then_has_no_shared_lease(device: ReferenceDevice) -> None:
    v = variable(device)
    t = reading(v)
    for i in range(4 * UNCHANGED_RUNS):
        if i % UNCHANGED_RUNS == 0:
            v.commit(np.array([i, i], F), (2,))
        assert t.standing() is None
        with t.begin() as arrays:
            assert arrays[0].tolist() == [i - i % UNCHANGED_RUNS] * 2


class Referable(np.ndarray):
    """An array that can be referenced weakly by a name of its own."""
