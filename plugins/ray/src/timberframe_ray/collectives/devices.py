"""Collectives that devices carry out themselves, where those of all processes of a group can do so together."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from timberframe_ray.collectives.links import Links, Waiting, pause
from timberframe_ray.collectives.transport import WHOLE, Transport
from timberframe_sdk import Array, Collective, Device, InternalError, Pending, UnimplementedError, logging

_NOTHING = np.empty(0, np.uint8)
_MOST_BYTES = 1 << 12
_LOOK_SECONDS = 0.005
_LOST_SECONDS = 0.5
"""A device may notice the end of another process so much earlier than the connection to it does."""


class OnDevice(NamedTuple):
    """Arrays of one dtype on a device that has collectives of its own."""

    device: Device
    arrays: Sequence[Array]

    def on_host(self) -> np.ndarray:
        """Returns all their elements, copied into one array of one dimension."""
        return np.concatenate([np.ravel(self.device.copy_out(a)) for a in self.arrays])


class _Members:
    """See `CollectiveGroup`. failed: whether a process has said so; error: what ended an exchange otherwise."""

    def __init__(self, rank: int, size: int, transport: Transport, waiting: Waiting) -> None:
        self.rank, self.size = rank, size
        self._transport, self._waiting = transport, waiting
        self.failed = False
        self.error: BaseException | None = None

    def exchange(self, data: bytes) -> list[bytes]:
        if len(data) > _MOST_BYTES:
            raise InternalError(f"{len(data)} bytes given; {_MOST_BYTES} at most can be exchanged")
        return self.exchange_or_fail(data)

    def exchange_or_fail(self, data: bytes | None) -> list[bytes]:
        """Exchanges messages; None says that this process has failed, so that the others need not wait for it."""
        sign = zlib.crc32(b"set-up of devices")
        sent = np.frombuffer((b"\0" if data is None else b"\1") + (data or b""), np.uint8)
        every = [WHOLE] * self.size
        try:
            found = self._transport.exchange(np.array([sent.size]), [1] * self.size, every, sign, self._waiting)
            lengths = [int(n[0]) for n in found]
            parts = [p.tobytes() for p in self._transport.exchange(sent, lengths, every, sign, self._waiting)]
        except BaseException as e:
            self.error = e
            raise
        failed = [rank for rank, part in enumerate(parts) if not part[0]]
        if failed:
            self.failed = True
            raise UnimplementedError(f"the device of rank {failed[0]} has failed")
        return [part[1:] for part in parts]


class DeviceCollectives:
    """The collectives that devices of all processes have together, by the devices that have met.

    The sign of an exchange says on which device a process's arrays are. As soon as one process has any on a device with
    collectives, all ask before each collective where the arrays of the others are; until then that costs nothing.
    """

    def __init__(self, rank: int, size: int, links: Links, transport: Transport) -> None:
        self._rank, self._size = rank, size
        self._links, self._transport = links, transport
        self._devices: list[Device] = []
        self._made: dict[tuple[int, ...], Collective | None] = {}
        self._asks = False

    def marked(self, sign: int, device: Device | None) -> int:
        """Returns a sign that also says which device this is among those of this process, and
        by which library it works.
        """
        if device is None:
            return sign
        if device not in self._devices:
            self._devices.append(device)
        library = zlib.crc32(device.collective_library.encode()) & 0xFFFF
        return sign | (self._devices.index(device) + 1) << 32 | library << 48

    def look(self) -> None:
        """Notes whether the signs of the last exchange name a device."""
        self._asks = self._asks or any(sign >> 32 for sign in self._transport.signs)

    def agreed(self, device: Device | None, sign: int, waiting: Waiting) -> Collective | None:
        """Returns what carries out a collective on the devices where all arrays are; None where
        they must go by the host.
        """
        if not self._asks:
            return None
        self._transport.exchange(_NOTHING, [0] * self._size, [WHOLE] * self._size, sign, waiting)
        places = tuple(sign >> 32 for sign in self._transport.signs)
        if device is None or not all(places) or len({place >> 16 for place in places}) > 1:
            return None
        if places not in self._made:
            self._made[places] = self._connected(device, waiting)
        return self._made[places]

    def _connected(self, device: Device, waiting: Waiting) -> Collective | None:
        members, made = _Members(self._rank, self._size, self._transport, waiting), None
        try:
            made = device.collective(members)
        except Exception as e:
            if members.error is not None:
                raise members.error from None
            logging.warning("%s: its collectives go through the host: %s", device.spec, e)
        if not members.failed:
            with contextlib.suppress(UnimplementedError):
                members.exchange_or_fail(None if made is None else b"")
        if members.failed and made is not None:
            made.close()
        return None if members.failed else made

    def carry_out(
        self, start: Callable[[Collective, Sequence[Array]], Pending], found: Collective, x: OnDevice, waiting: Waiting
    ) -> OnDevice:
        """Returns the results of a collective; LostError where a process has ended, which devices do not know."""
        pending = start(found, x.arrays)
        began = looked = time.monotonic()
        while not pending.done():
            now = time.monotonic()
            pause(now - began)
            if now - looked > _LOOK_SECONDS:
                looked = now
                waiting.on(None)
                self._check()
        try:
            made = pending.result()
        except Exception:
            end = time.monotonic() + _LOST_SECONDS
            while time.monotonic() < end:  # the error of the process that has ended says more
                self._check()
                time.sleep(_LOOK_SECONDS)
            raise
        return OnDevice(x.device, made if isinstance(made, list) else [made])

    def _check(self) -> None:
        for rank in self._links.sockets:
            self._links.check(rank)

    def close(self) -> None:
        """Ends what is under way."""
        for made in self._made.values():
            if made is not None:
                try:
                    made.close()
                except Exception as e:
                    logging.debug("a collective cannot be closed: %s", e)
        self._made.clear()
