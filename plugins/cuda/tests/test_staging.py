"""Copies between the host and emulated GPUs: what they go through, and that they are right at every size."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from timberframe_core import errors


@pytest.fixture
def device(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device whose page-locked memory is small: two pieces of 4 KiB, and 8 KiB for results."""
    from timberframe_cuda import staging

    monkeypatch.setattr(staging, "PIECE_BYTES", 4096)
    monkeypatch.setattr(staging, "RESULT_BYTES", 8192)
    return cuda.devices({"count": {}, "memory_limit": {}})[0]


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch, device: Any) -> list[int]:
    """The addresses that copies to the GPU read."""
    from cupy.cuda import runtime

    found: list[int] = []
    copy = runtime.memcpyAsync

    def noted(target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        if kind == runtime.memcpyHostToDevice:
            found.append(source)
        copy(target, source, nbytes, kind, stream)

    monkeypatch.setattr(runtime, "memcpyAsync", noted)
    return found


def page_locked(device: Any, address: int) -> bool:
    """Returns whether an address lies in the memory for copies to the GPU."""
    pieces = [p for p in device.staging._pieces if p is not None]
    return any(p.ctypes.data <= address < p.ctypes.data + p.nbytes for p in pieces)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 3), (1024,), (1025,), (5000,), (70, 300)])
def test_an_array_of_any_size_goes_to_the_gpu_and_back(device: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = device.copy_out(device.copy_in(x))
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    np.testing.assert_array_equal(found, x)


def test_an_array_that_is_not_contiguous_goes_to_the_gpu(device: Any) -> None:
    x = np.arange(3000, dtype=np.int16).reshape(50, 60)[::2, ::-3].T
    np.testing.assert_array_equal(device.copy_out(device.copy_in(x)), x)


def test_copies_of_any_size_are_read_from_page_locked_memory(device: Any, sources: list[int]) -> None:
    for size in (1, 100, 4096, 20_000):
        device.copy_in(np.ones(size, np.uint8))
    assert len(sources) == 3 + 5
    assert all(page_locked(device, address) for address in sources)


def test_an_array_may_change_when_it_was_given_to_the_gpu(device: Any) -> None:
    x = np.arange(3000, dtype=np.int32)
    tensor = device.copy_in(x)
    wanted = x.copy()
    x[:] = -1
    np.testing.assert_array_equal(device.copy_out(tensor), wanted)


def test_many_copies_in_flight_do_not_overwrite_each_other(device: Any) -> None:
    tensors = [device.copy_in(np.full(700, i, np.int32)) for i in range(40)]
    copies = [device.start_copy_out(t) for t in tensors]
    for i, copy in enumerate(copies):
        np.testing.assert_array_equal(copy.result(), np.full(700, i, np.int32))


def test_results_are_the_users_own_memory(device: Any) -> None:
    first = device.copy_out(device.copy_in(np.arange(100)))
    for i in range(200):
        device.copy_out(device.copy_in(np.full(100, i)))
    np.testing.assert_array_equal(first, np.arange(100))
    assert first.flags.owndata


def test_memory_of_results_that_nobody_takes_is_used_again(device: Any) -> None:
    tensor = device.copy_in(np.ones(1000, np.uint8))
    for _ in range(100):
        device.start_copy_out(tensor)
    gc.collect()
    device.synchronize()
    assert [device.results.take(4000).start for _ in range(2)] == [0, 4032]


def test_a_copy_that_fails_keeps_no_memory(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy.cuda import runtime

    def fail(*_: Any) -> None:
        raise runtime.CUDARuntimeError(1)

    tensor = device.copy_in(np.ones(1000, np.uint8))
    with monkeypatch.context() as patched:
        patched.setattr(runtime, "memcpyAsync", fail)
        for _ in range(20):
            with pytest.raises(errors.InternalError):
                device.copy_out(tensor)
    assert device.results.take(8000).start == 0


def test_results_beyond_the_page_locked_memory_arrive_too(device: Any) -> None:
    x = np.arange(6000, dtype=np.uint16)
    tensors = [device.copy_in(x + i) for i in range(5)]
    for i, copy in enumerate([device.start_copy_out(t) for t in tensors]):
        np.testing.assert_array_equal(copy.result(), x + i)
