"""Bugs in the collectives that a device carries out itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_conformance.case import NotApplicableError
from timberframe_conformance.mutants.base import seam_mutant
from timberframe_conformance.replacements import Replacements
from timberframe_core.graph.graph import Graph
from timberframe_core.plugin.contracts import Deferred

SUITE = "collectives"

Work = Callable[["Member", Any], Any]
"""What a wrong collective gives, of a member and the arrays that it was given."""


class Member:
    """A member of a group with one wrong collective. right: those of the device; group: see `CollectiveGroup`."""

    def __init__(self, device: Any, right: Any, group: Any, name: str, work: Work) -> None:
        self.device, self.right, self.rank, self.size = device, right, group.rank, group.size
        self.earlier: dict[Any, Any] = {}
        """Results of earlier collectives."""
        setattr(self, name, lambda given, *root: Deferred(lambda: work(self, given)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    def on_host(self, array: Any) -> np.ndarray:
        return np.asarray(self.device.copy_out(array))

    def changed(self, array: Any, change: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Returns an array of the device that has other values, or another dtype."""
        return self.device.copy_in(np.ascontiguousarray(change(self.on_host(array))))


def _wrong(r: Replacements, target: Any, name: str, work: Work) -> None:
    """Makes a collective of the device give what `work` does."""
    device = target.device
    with target.session(Graph(), device_count={device.type: 2}) as session:
        members = sum(d.type == device.type for d in session.list_devices())
    if not device.collective_library or members < 2:
        raise NotApplicableError("two devices of its type carry out no collectives in a session")

    def make(collective: Any) -> Any:
        return lambda self, group: Member(self, collective(self, group), group, name, work)

    r.replace(type(device), "collective", make)


def _sums(member: Member, arrays: Any) -> list[Any]:
    found: list[Any] = member.right.all_reduce(arrays).result()
    return found


@seam_mutant("sum-lacks-last-rank", "sums lack what the last rank gives", SUITE, only=("all-reduce",))
def _(r: Replacements, target: Any) -> None:
    def work(member: Member, arrays: Any) -> Any:
        last = member.rank == member.size - 1
        return _sums(member, [member.changed(x, np.zeros_like) for x in arrays] if last else arrays)

    _wrong(r, target, "all_reduce", work)


@seam_mutant("sum-of-another-dtype", "sums of float32 are of int32", SUITE, only=("all-reduce",))
def _(r: Replacements, target: Any) -> None:
    def work(member: Member, arrays: Any) -> Any:
        floats = np.dtype(arrays[0].dtype) == np.float32 and max(int(np.prod(x.shape)) for x in arrays) < 10_000
        return [member.changed(x, lambda x: x.astype(np.int32)) if floats else x for x in _sums(member, arrays)]

    _wrong(r, target, "all_reduce", work)


@seam_mutant("sum-of-before", "a sum is in the memory of the one before it", SUITE, only=("all-reduce",))
def _(r: Replacements, target: Any) -> None:
    def work(member: Member, arrays: Any) -> Any:
        kind = tuple((str(x.dtype), tuple(x.shape)) for x in arrays)
        return member.earlier.setdefault(kind, _sums(member, arrays))

    _wrong(r, target, "all_reduce", work)


@seam_mutant("sum-is-what-is-given", "a sum is the tensor that was given", SUITE, only=("all-reduce", "equal-bits"))
def _(r: Replacements, target: Any) -> None:
    def work(member: Member, arrays: Any) -> Any:
        _sums(member, arrays)
        return list(arrays)

    _wrong(r, target, "all_reduce", work)


@seam_mutant("gathered-last-first", "what is gathered begins with the last rank", SUITE, only=("all-gather",))
def _(r: Replacements, target: Any) -> None:
    def work(member: Member, array: Any) -> Any:
        def backward(x: np.ndarray) -> np.ndarray:
            return np.concatenate(np.split(x, member.size)[::-1])

        return member.changed(member.right.all_gather(array).result(), backward)

    _wrong(r, target, "all_gather", work)


@seam_mutant("part-of-the-next", "a member gets the part of the next rank", SUITE, only=("reduce-scatter",))
def _(r: Replacements, target: Any) -> None:
    def work(member: Member, array: Any) -> Any:
        return member.changed(
            _sums(member, [array])[0], lambda x: np.split(x, member.size)[(member.rank + 1) % member.size]
        )

    _wrong(r, target, "reduce_scatter", work)


@seam_mutant("copies-of-the-first", "all get the tensor of rank 0, whichever is to send", SUITE, only=("broadcast",))
def _(r: Replacements, target: Any) -> None:
    _wrong(r, target, "broadcast", lambda member, array: member.right.broadcast(array, 0).result())
