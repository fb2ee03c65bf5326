"""Collectives by NCCL between emulated GPUs."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from timberframe_core import errors
from timberframe_sdk import as_dtype

PROGRAM = """
import sys
import numpy as np
import timberframe as tf
import timberframe_ray as tfr
from cupy.cuda import nccl

calls = []
call = nccl.NcclCommunicator.allReduce
nccl.NcclCommunicator.allReduce = lambda *given: calls.append(call(*given))
rank, address = int(sys.argv[1]), sys.argv[2]
tfr.join(rank, 2, address)
x = tf.placeholder(tf.float32, [100])
with tf.device("/device:CUDA:0"):
    (total,) = tfr.all_reduce([x * x])
    y = total + 1.0
given = np.random.default_rng(rank).standard_normal(100).astype(np.float32)
with tf.Session(config=tf.SessionConfig(plugins=["cpu", "cuda"])) as session:
    found = [session.run(y, {x: given}) for _ in range(3)]
print(len(calls), *(y.tobytes().hex() for y in found))
tfr.leave()
"""


REALS = ["half", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int32", "uint32", "int64", "uint64"]


class Members:
    """See `CollectiveGroup`, for threads. given: what each exchanges."""

    def __init__(self, rank: int, size: int, given: list[bytes], barrier: threading.Barrier) -> None:
        self.rank, self.size, self._given, self._barrier = rank, size, given, barrier

    def exchange(self, data: bytes) -> list[bytes]:
        self._given[self.rank] = data
        self._barrier.wait(20)
        return list(self._given)


@pytest.fixture(params=["13.6.0", "14.2.0"])
def cupy_version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The version of CuPy that is emulated: before 14 it gives and takes NCCL's unique ids as tuples."""
    monkeypatch.setenv("EMULATED_CUPY", request.param)
    return str(request.param)


@pytest.fixture
def together(cupy_version: str, cuda: Any) -> Callable[[Callable[[Any, Any, int], Any]], list[Any]]:
    """Calls a function with a device, its collectives and the rank, in a thread for each of two GPUs."""
    devices = cuda.devices({"count": {}, "memory_limit": {}})

    def run(do: Callable[[Any, Any, int], Any]) -> list[Any]:
        given, barrier, found = [b"", b""], threading.Barrier(2), [None, None]

        def work(rank: int) -> None:
            try:
                made = devices[rank].collective(Members(rank, 2, given, barrier))
                found[rank] = do(devices[rank], made, rank)
            except Exception as e:
                found[rank] = e

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return found

    return run


def numbers(rank: int, dtype: str) -> np.ndarray:
    return np.random.default_rng(rank).integers(0 if dtype[0] == "u" else -50, 50, (4, 3)).astype(as_dtype(dtype).numpy)


@pytest.mark.parametrize(
    "dtype",
    [
        "half",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "uint8",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "complex64",
        "complex128",
    ],
)
def test_collectives_of_each_dtype(together: Any, dtype: str) -> None:
    def do(device: Any, made: Any, rank: int) -> Any:
        x, y = device.copy_in(numbers(rank, dtype)), device.copy_in(numbers(10 + rank, dtype))
        works = [made.all_gather(x), made.reduce_scatter(x), made.broadcast(x, 1)]
        tensors = [*made.all_reduce([x, y]).result(), *(w.result() for w in works)]
        return [device.copy_out(a) for a in tensors]

    first, second = numbers(0, dtype), numbers(1, dtype)
    total = first + second
    for rank, found in enumerate(together(do)):
        expected = [
            total, numbers(10, dtype) + numbers(11, dtype), np.concatenate([first, second]),
            total[2 * rank : 2 * rank + 2], second,
        ]  # fmt: skip
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_collective_of_a_process_that_has_ended_is_an_error(together: Any) -> None:
    def do(device: Any, made: Any, rank: int) -> Any:
        x = device.copy_in(np.ones(3, np.float32))
        if rank == 1:
            made.close()
            return None
        with pytest.raises(errors.InternalError, match=r"/device:CUDA:0: NCCL reports NCCL_ERROR_2"):
            made.all_reduce([x]).result()
        return "ended"

    assert together(do) == ["ended", None]


def test_closed_collectives_say_so(together: Any) -> None:
    def do(device: Any, made: Any, rank: int) -> Any:
        work = made.all_reduce([device.copy_in(np.ones(3, np.float32))])
        made.close()
        with pytest.raises(errors.UnavailableError, match="the group of its collectives has ended"):
            work.result()

    assert together(do) == [None, None]


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint16"])
def test_dtypes_that_nccl_lacks_are_moved(together: Any, dtype: str) -> None:
    def do(device: Any, made: Any, rank: int) -> Any:
        x = device.copy_in(numbers(rank, dtype))
        return [device.copy_out(w.result()) for w in (made.all_gather(x), made.broadcast(x, 1))]

    for found in together(do):
        np.testing.assert_array_equal(found[0], np.concatenate([numbers(0, dtype), numbers(1, dtype)]))
        np.testing.assert_array_equal(found[1], numbers(1, dtype))


def test_a_dtype_that_nccl_lacks_is_refused(together: Any) -> None:
    def do(device: Any, made: Any, rank: int) -> Any:
        with pytest.raises(errors.InvalidArgumentError, match="a tensor of uint16 given; NCCL adds up float16"):
            made.all_reduce([device.copy_in(np.ones(3, np.uint16))])

    assert together(do) == [None, None]


def test_an_error_of_a_call_is_not_hidden_by_that_of_the_group(together: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy.cuda import nccl

    def fail(status: int) -> None:
        raise nccl.NcclError(status)

    monkeypatch.setattr(nccl.NcclCommunicator, "allReduce", lambda *_: fail(5))
    monkeypatch.setattr(nccl, "groupEnd", lambda: fail(3))

    def do(device: Any, made: Any, rank: int) -> Any:
        with pytest.raises(errors.InternalError, match="NCCL reports NCCL_ERROR_5"):
            made.all_reduce([device.copy_in(np.ones(3, np.float32))])

    assert together(do) == [None, None]


def test_work_that_nobody_waits_for_keeps_its_memory_until_it_is_done(
    together: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cupy.cuda import runtime

    def do(device: Any, made: Any, rank: int) -> Any:
        made.all_reduce([device.copy_in(np.ones(3, np.float32))])
        return device.allocator.statistics().live

    monkeypatch.setattr(runtime, "eventQuery", lambda event: 600)  # cudaErrorNotReady
    assert together(do) == [2, 2]


def test_without_nccl_a_device_has_no_collectives(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from cupy.cuda import nccl

    monkeypatch.setattr(nccl, "available", False)
    assert cuda.devices({"count": {}, "memory_limit": {}})[0].collective_library == ""


@pytest.mark.slow
def test_two_processes_add_up_on_their_gpus(cupy_version: str, emulated_environment: dict[str, str]) -> None:
    pytest.importorskip("ray", reason="ray is not installed: it has no wheel for this Python or system")
    with socket.create_server(("127.0.0.1", 0)) as found:
        address = f"127.0.0.1:{found.getsockname()[1]}"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), address],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=emulated_environment,
        )
        for rank in range(2)
    ]  # fmt: skip
    printed = [process.communicate(timeout=240) for process in processes]
    given = [np.random.default_rng(rank).standard_normal(100).astype(np.float32) for rank in range(2)]
    total = given[0] * given[0] + given[1] * given[1]
    wanted = (total + np.float32(1)).tobytes().hex()
    for out, err in printed:
        assert out.split() == ["2", wanted, wanted, wanted], err  # the first one shows what devices there are
