"""What a device offers that carries out collectives itself: sums and copies over the processes of a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from timberframe_core.plugin.waiting import Pending

if TYPE_CHECKING:
    from timberframe_core.plugin.contracts import Array


class CollectiveGroup(Protocol):
    """The processes of a group while their devices get to know each other. rank: of this one, from 0."""

    rank: int
    size: int

    def exchange(self, data: bytes) -> list[bytes]:
        """Returns what each process gives, by rank; all must call it equally often. Each may give 4096 bytes at most.

        UnimplementedError where the device of another process has failed, which this one must not catch.
        """


class Collective(Protocol):
    """Collectives of a group on arrays of one device in each process, see `Device.collective`.

    All processes call the same ones in the same order with arrays of equal dtypes and shapes, one after the other: the
    next is called when `result()` of the one before has returned. They are called from a thread of the group. What is
    called returns at once; the work comes after all that the device was given before. It does not write to the arrays
    that it is given. Sums are made in any order that is the same in every run.
    """

    def all_reduce(self, arrays: Sequence[Array]) -> Pending:
        """For each array the sum over all processes, as a list; the arrays have one dtype."""

    def all_gather(self, array: Array) -> Pending:
        """Returns the arrays of all processes, one after the other along the first dimension."""

    def reduce_scatter(self, array: Array) -> Pending:
        """This process's part of the sum: one of as many equal parts along the first dimension as there are ranks."""

    def broadcast(self, array: Array, root: int) -> Pending:
        """Returns the array of the process of rank `root`."""

    def close(self) -> None:
        """Ends it, and at once what is under way, whose result() then raises: another process may have ended."""
