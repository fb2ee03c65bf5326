"""Streams that work late find a wait that is missing, and memory that is used after it was given back.

Each test plants one such fault into what the plugin calls, and compares with the same work without it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

X = np.arange(1 << 16, dtype=np.float32)
Work = Callable[[Any, Any], np.ndarray]
"""What two devices do to find X again."""


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EMULATED_STREAMS", "late")
    return "late"


@pytest.fixture
def devices(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from cupy.cuda import runtime

    monkeypatch.setattr("timberframe_cuda.staging.PIECE_BYTES", X.nbytes)
    monkeypatch.setattr("cuda_on_cpu.queues.LATENESS", 60)  # a busy machine may take long between two calls
    yield cuda.devices({"count": {}, "memory_limit": {}})
    runtime.synchronize()  # what a fault left undone still uses memory


def there_and_back(first: Any, second: Any) -> np.ndarray:
    found: np.ndarray = first.copy_out(first.copy_in(X))
    return found


def from_one_to_another(first: Any, second: Any) -> np.ndarray:
    there = second.copy_from(first, first.copy_in(X))
    found: np.ndarray = second.copy_out(there)
    return found


def many_at_once(first: Any, second: Any) -> np.ndarray:
    """More than the page-locked memory of copies holds."""
    tensors = [first.copy_in(X + i) for i in range(32)]
    return np.stack([first.copy_out(a) - i for i, a in enumerate(tensors)])


@pytest.mark.parametrize("work", [there_and_back, from_one_to_another, many_at_once])
def test_without_a_fault_nothing_shows(devices: Any, work: Work) -> None:
    found = work(*devices)
    np.testing.assert_array_equal(found, np.broadcast_to(X, found.shape))


def plant(monkeypatch: pytest.MonkeyPatch, name: str, calls: set[int]) -> None:
    """Leaves out the calls with these numbers of a method of `cupy.cuda`."""
    import cupy

    owner: Any = getattr(cupy.cuda, name.split(".")[0])
    method, number = name.split(".")[1], [0]
    call = getattr(owner, method)

    def sometimes(*given: Any) -> Any:
        number[0] += 1
        return None if number[0] - 1 in calls else call(*given)

    monkeypatch.setattr(owner, method, sometimes)


def test_a_wait_of_the_host_that_is_missing_shows(devices: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "Event.synchronize", set(range(100)))
    assert not np.array_equal(there_and_back(*devices), X)


def test_a_wait_of_a_stream_that_is_missing_shows(devices: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second device reads before the first has written."""
    plant(monkeypatch, "Stream.wait_event", {0})
    assert not np.array_equal(from_one_to_another(*devices), X)


def test_memory_given_back_while_another_stream_reads_it_shows(devices: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first device may give the memory to others while the second still reads it."""
    plant(monkeypatch, "Stream.wait_event", {1})
    assert not np.array_equal(from_one_to_another(*devices), X)


def test_a_block_of_the_pool_is_used_again_at_once(devices: Any) -> None:
    first = devices[0]
    address = first.copy_in(X).handle.ptr
    gc.collect()
    assert first.copy_in(X).handle.ptr == address


def test_page_locked_memory_that_is_used_again_too_early_shows(devices: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No upload waits for those before it."""
    plant(monkeypatch, "Event.synchronize", set(range(30)))
    assert not np.array_equal(many_at_once(*devices), np.broadcast_to(X, (32, X.size)))
