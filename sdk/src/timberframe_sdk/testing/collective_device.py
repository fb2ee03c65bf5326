"""A device for tests that carries out collectives itself: as the asynchronous one, with connections between processes.

``timberframe_sdk.register_plugin("collective", collective_device)`` gives each session one, /device:COLLECTIVE:0.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_sdk import CollectiveGroup, Device, KernelDef, device_count, hookimpl, memory_limit
from timberframe_sdk.testing.asynchronous_device import MEMORY_BYTES, AsynchronousDevice, DeviceTensor, Task

TYPE = "COLLECTIVE"
CONNECT_SECONDS = 20.0


class CollectiveDevice(AsynchronousDevice):
    """The device. library: devices work together where they have the same; empty for one that has none."""

    type = TYPE

    def __init__(self, index: int, limit: int | None, library: str = "connections 1") -> None:
        super().__init__(index, limit)
        self.spec = f"/device:{TYPE}:{index}"
        self.collective_library = library

    def collective(self, group: CollectiveGroup) -> Connections:
        self.journal.append("meet")
        return Connections(self, group)


class Connections:
    """See `Collective`: each process sends its arrays to all others; sums are made in the order of the ranks."""

    def __init__(self, device: CollectiveDevice, group: CollectiveGroup) -> None:
        self._device, self._rank, self._size = device, group.rank, group.size
        self._links: dict[int, socket.socket] = {}
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.settimeout(CONNECT_SECONDS)
            ports = [int(port) for port in group.exchange(str(listening.getsockname()[1]).encode())]
            for rank in range(group.rank):
                self._links[rank] = socket.create_connection(("127.0.0.1", ports[rank]), CONNECT_SECONDS)
                self._links[rank].sendall(bytes([group.rank]))
            for _ in range(group.rank + 1, group.size):
                found, _ = listening.accept()
                self._links[found.recv(1)[0]] = found
        for link in self._links.values():
            link.settimeout(None)

    def all_reduce(self, arrays: Sequence[DeviceTensor]) -> Task:
        return self._start("all-reduce", arrays, [a.shape for a in arrays], lambda parts: _sum(parts))

    def all_gather(self, array: DeviceTensor) -> Task:
        shape = (self._size * array.shape[0], *array.shape[1:])
        return self._start("all-gather", [array], [shape], np.concatenate)

    def reduce_scatter(self, array: DeviceTensor) -> Task:
        rows = array.shape[0] // self._size
        mine = slice(self._rank * rows, (self._rank + 1) * rows)
        return self._start("reduce-scatter", [array], [(rows, *array.shape[1:])], lambda parts: _sum(parts)[mine])

    def broadcast(self, array: DeviceTensor, root: int) -> Task:
        return self._start("broadcast", [array], [array.shape], lambda parts: parts[root])

    def close(self) -> None:
        for link in self._links.values():
            with contextlib.suppress(OSError):  # the other side has closed it
                link.shutdown(socket.SHUT_RDWR)  # wakes who waits for it
            link.close()

    def _start(
        self,
        what: str,
        arrays: Sequence[DeviceTensor],
        shapes: Sequence[tuple[int, ...]],
        combine: Callable[[list[np.ndarray]], np.ndarray],
    ) -> Task:
        """Appends it to the device's queue: what `combine` makes of the arrays of all processes, for each array."""
        device = self._device
        device.journal.append(what)
        made = [DeviceTensor(device, a.dtype, shape) for a, shape in zip(arrays, shapes, strict=True)]

        def work() -> Any:
            for source, target in zip(arrays, made, strict=True):
                source.check()
                device.memory[target.address] = np.array(combine(self._exchange(device.memory[source.address])))
            return made if what == "all-reduce" else made[0]

        return Task(device.queue, work)

    def _exchange(self, x: np.ndarray) -> list[np.ndarray]:
        """Returns the arrays of all processes, by rank. Of two processes that of the lower rank sends first."""
        parts, data = {self._rank: x}, np.ascontiguousarray(x).tobytes()
        for rank, link in sorted(self._links.items()):
            if self._rank < rank:
                link.sendall(data)
            found = _received(link, len(data))
            if self._rank > rank:
                link.sendall(data)
            parts[rank] = np.frombuffer(found, x.dtype).reshape(x.shape)
        return [parts[rank] for rank in range(self._size)]


def _received(link: socket.socket, count: int) -> bytearray:
    found = bytearray(count)
    left = memoryview(found)
    while left:
        more = link.recv_into(left)
        if not more:
            raise ConnectionResetError("the other process has closed the connection")
        left = left[more:]
    return found


def _sum(parts: Sequence[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@hookimpl
def timberframe_devices(config: Mapping[str, Any]) -> list[Device]:
    limit = memory_limit(config, TYPE, MEMORY_BYTES)
    return [CollectiveDevice(i, limit) for i in range(device_count(config, TYPE, 1))]


@hookimpl
def timberframe_kernels() -> list[KernelDef]:
    return []
