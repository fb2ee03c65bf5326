"""NCCL: collectives between processes, through connections to a thread of the process that made the unique id."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener

import ml_dtypes
import numpy as np

from cupy._version import __version__
from cupy.cuda import runtime

available = True
UniqueId = bytes if int(__version__.split(".")[0]) >= 14 else tuple
"""Of what type CuPy gives and takes unique ids: since version 14 bytes, before that tuples of int8."""
NCCL_SUM = 0
NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64 = range(6)
NCCL_FLOAT16, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_BFLOAT16 = 6, 7, 8, 9
_DTYPES = dict(enumerate((np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64))) | {
    6: np.float16, 7: np.float32, 8: np.float64, 9: ml_dtypes.bfloat16,
}  # fmt: skip
_ID_BYTES = 128


class NcclError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"NCCL_ERROR_{status}")
        self.status = status


def get_version() -> int:
    return 22705


def get_unique_id() -> bytes | tuple[int, ...]:
    listener = Listener(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    address = str(listener.address[1]).encode().ljust(_ID_BYTES, b"\xff")
    return address if UniqueId is bytes else tuple(np.frombuffer(address, np.int8).tolist())


def _serve(listener: Listener) -> None:
    """Gives all processes what each of them sends, again and again."""
    first = listener.accept()
    size, rank = first.recv()
    found = {rank: first}
    while len(found) < size:
        one = listener.accept()
        found[one.recv()[1]] = one
    with suppress(EOFError, OSError):
        while True:
            parts = [found[r].recv_bytes() for r in range(size)]
            for one in found.values():
                for part in parts:
                    one.send_bytes(part)
    for one in found.values():
        one.close()


def groupStart() -> None: ...


def groupEnd() -> None: ...


class NcclCommunicator:
    def __init__(self, ndev: int, commId: bytes | tuple[int, ...], rank: int) -> None:
        if type(commId) is not UniqueId:
            raise TypeError(f"expected {UniqueId.__name__}, got {type(commId).__name__}")
        assert len(commId) == _ID_BYTES
        port = (commId if isinstance(commId, bytes) else np.array(commId, np.int8).tobytes()).rstrip(b"\xff")
        self._size, self._rank, self._device = ndev, rank, runtime.getDevice()
        self._hub: Connection | None = Client(("127.0.0.1", int(port)))
        self._hub.send((ndev, rank))
        self._status = 0

    def abort(self) -> None:
        if self._hub is not None:
            self._hub.close()
            self._hub = None

    def check_async_error(self) -> None:
        if self._hub is None or self._status:
            raise NcclError(self._status or 4)

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        assert op == NCCL_SUM
        self._enqueue(stream, sendbuf, recvbuf, count, datatype, lambda parts: sum(parts[1:], parts[0]))

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        self._enqueue(stream, sendbuf, recvbuf, count, datatype, np.concatenate)

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        assert op == NCCL_SUM
        mine = slice(self._rank * recvcount, (self._rank + 1) * recvcount)
        count = self._size * recvcount
        self._enqueue(stream, sendbuf, recvbuf, count, datatype, lambda parts: sum(parts[1:], parts[0])[mine])

    def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int) -> None:
        self._enqueue(stream, sendbuff, recvbuff, count, datatype, lambda parts: parts[root])

    def _enqueue(
        self, stream: int, source: int, target: int, count: int, datatype: int,
        combine: Callable[[list[np.ndarray]], np.ndarray],
    ) -> None:  # fmt: skip
        runtime.check_stream(stream)
        if self._hub is None or runtime.streams[stream] != self._device:
            raise NcclError(4)
        dtype, hub = np.dtype(_DTYPES[datatype]), self._hub

        def exchange() -> None:
            try:
                hub.send_bytes(ctypes.string_at(source, count * dtype.itemsize))
                parts = [np.frombuffer(hub.recv_bytes(), dtype) for _ in range(self._size)]
            except (EOFError, OSError):
                self._status = 2
                return
            made = np.ascontiguousarray(combine(parts))
            ctypes.memmove(target, made.ctypes.data, made.nbytes)

        runtime.do(stream, exchange)
