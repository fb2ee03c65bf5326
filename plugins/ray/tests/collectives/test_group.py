"""What the processes of a group compute together, here as threads of one process: values, order of sums, failures."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")

from timberframe_ray.collectives import memory as shared_memory
from timberframe_ray.collectives.group import Group, connect
from timberframe_sdk import InvalidArgumentError, UnavailableError, as_dtype
from timberframe_sdk.remote.errors import FailedPreconditionError

Together = Callable[..., list[Any]]
Do = Callable[[Group], Any]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of 4 KB, so that arrays of some KB have many."""
    monkeypatch.setattr(shared_memory, "_PIECE_BYTES", 1 << 12)
    monkeypatch.setattr("timberframe_ray.collectives.sockets.Sockets.piece_bytes", 1 << 12)


def numbers(rank: int, count: int = 3001, dtype: str = "float32") -> np.ndarray:
    values = np.random.default_rng(rank).integers(-50, 50, count)
    return values.astype(as_dtype(dtype).numpy)


@pytest.mark.parametrize("size", [2, 16, 64, 1000])
def test_the_shared_memory_of_a_container_has_room_for_a_group(size: int) -> None:
    assert shared_memory.segment_bytes(size) < 64 << 20


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("memory", [True, False], ids=["memory", "sockets"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_collectives_give_what_they_say_for_arrays_of_many_pieces(together: Together, size: int, memory: bool) -> None:
    count = 1000 * size

    def do(group: Group) -> Any:
        x = numbers(group.rank, count)
        works = [group.all_reduce(x.copy()), group.reduce_scatter(x), group.all_gather(x), group.broadcast(x, size - 1)]
        return group.transport, [w.wait() for w in works]

    total = np.sum([numbers(r, count) for r in range(size)], axis=0)
    everything = np.concatenate([numbers(r, count) for r in range(size)])
    for rank, (transport, found) in enumerate(together(size, do, memory)):
        assert transport == ("memory" if memory else "sockets")
        expected = [total, total[1000 * rank : 1000 * (rank + 1)], everything, numbers(size - 1, count)]
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("memory", [True, False], ids=["memory", "sockets"])
@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float64", "int32", "int64", "complex64", "complex128"])
def test_sums_of_each_dtype(together: Together, dtype: str, memory: bool) -> None:
    found = together(2, lambda g: g.all_reduce(numbers(g.rank, 7, dtype)).wait(), memory)
    for x in found:
        np.testing.assert_array_equal(x, numbers(0, 7, dtype) + numbers(1, 7, dtype))


def test_no_elements_and_fewer_than_processes(together: Together) -> None:
    found = together(3, lambda g: [g.all_reduce(np.full(n, g.rank, np.float32)).wait().tolist() for n in (0, 1, 2)])
    assert found == [[[], [3.0], [3.0, 3.0]]] * 3


@pytest.mark.parametrize("memory", [True, False], ids=["memory", "sockets"])
def test_sums_are_in_the_order_of_ranks_bit_for_bit(together: Together, memory: bool) -> None:
    def given(rank: int) -> np.ndarray:
        return np.random.default_rng(rank).standard_normal(999).astype(np.float32)

    expected = ((given(0) + given(1)) + given(2)) + given(3)
    for x in together(4, lambda g: g.all_reduce(given(g.rank)).wait(), memory):
        assert x.tobytes() == expected.tobytes()


def test_small_floats_are_rounded_once(together: Together) -> None:
    values = [1.0, 2.0**-11, 2.0**-11]  # in half precision 1 + 2**-11 is 1
    for x in together(3, lambda g: g.all_reduce(np.array([values[g.rank]], np.float16)).wait()):
        assert x[0] == np.float16(1 + 2.0**-10)


@pytest.mark.parametrize("memory", [True, False], ids=["memory", "sockets"])
def test_different_collectives_are_an_error_in_all_processes(together: Together, memory: bool) -> None:
    found = together(2, lambda g: g.all_reduce(np.ones(3 + g.rank, np.float32)).wait(), memory)
    assert all(isinstance(e, InvalidArgumentError | UnavailableError) for e in found)
    assert any("is in another collective, or gives another dtype or size" in str(e) for e in found)


@pytest.mark.parametrize("memory", [True, False], ids=["memory", "sockets"])
def test_a_process_that_leaves_is_named_by_the_others(together: Together, memory: bool) -> None:
    ends: list[float] = []

    def do(group: Group) -> Any:
        group.all_reduce(np.ones(10)).wait()
        if group.rank == 1:
            time.sleep(0.2)
            ends.append(time.monotonic())
            return None
        try:
            group.all_reduce(np.ones(10)).wait()
        finally:
            ends.append(time.monotonic())

    found = together(3, do, memory)
    for rank in (0, 2):
        assert isinstance(found[rank], UnavailableError)
        assert "rank 1" in str(found[rank])
    assert max(ends) - min(ends) < 1


@pytest.mark.parametrize("memory", [True, False], ids=["memory", "sockets"])
def test_a_process_that_does_not_take_part_ends_the_others_by_their_deadline(together: Together, memory: bool) -> None:
    def do(group: Group) -> Any:
        group.all_reduce(np.ones(10)).wait()
        if group.rank == 1:
            time.sleep(0.8)
            return None
        start = time.monotonic()
        with pytest.raises(UnavailableError, match=r"rank 1 has not taken part for 0\.3 s .of the 2 of group 'test'."):
            group.all_reduce(np.ones(10)).wait()
        with pytest.raises(FailedPreconditionError, match="group 'test' has ended"):
            group.all_reduce(np.ones(10)).wait()
        return time.monotonic() - start

    taken = together(2, do, memory, seconds=0.3)[0]
    assert 0.3 <= taken < 0.7


def test_who_joins_another_group_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        address = f"127.0.0.1:{found.getsockname()[1]}"
    errors: list[Exception] = []

    def work(rank: int, name: str) -> None:
        try:
            connect(rank, 2, address, name, 0.5, True)
        except UnavailableError as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i, name)) for i, name in enumerate(("this", "other"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(errors) == 2
    assert any("rank 0 has not met ranks [1]" in str(e) for e in errors)


def test_an_address_where_rank_0_cannot_listen_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UnavailableError, match=f"rank 0 cannot listen at {address} .*; an address of its machine"):
            connect(0, 2, address, "test", 30, True)


def test_shared_memory_has_no_name_once_all_have_it(together: Together) -> None:
    def names(group: Group) -> list[Path]:
        group.all_reduce(np.ones(1)).wait()
        return list(Path("/dev/shm").glob("timberframe-*")) if group.rank == 0 else []

    before = set(Path("/dev/shm").glob("timberframe-*"))
    assert set(together(2, names)[0]) <= before


@pytest.mark.parametrize(("rank", "size", "address"), [(2, 2, "here:1"), (-1, 1, ""), (0, 2, "here"), (1, 2, "here:x")])
def test_ranks_and_addresses_that_make_no_sense_are_refused(rank: int, size: int, address: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"it must lie in|<host>:<port> is required"):
        connect(rank, size, address, "test", 0.1, True)
