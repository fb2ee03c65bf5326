"""Transactions: how one run of an executable sees and replaces the versions of variables.

A run has a lease of each version that it reads. A writer holds the variable's lock from reading the old version to
committing the new one, so updates are never lost; a failed run leaves the old version in place. An old version is
written over only while nobody has a lease of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from timberframe_core.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from timberframe_core.plugin.contracts import Array, Cluster, KernelNode, Update, Variable, VariableVersion
from timberframe_core.plugin.state import StandingLease as StandingLease
from timberframe_sdk.execution.errors import at_node

UNCHANGED_RUNS = 16
"""Runs in a row that have to read the same versions before those to come share a lease of them."""

EmptyArray = Callable[[Any, tuple[int, ...]], Array]
InplacePairs = Callable[[KernelNode], Sequence[tuple[int, int]]]


class Transaction:
    """What a cluster does to variables; `begin` starts one run's part. Thread-safe and reusable.

    inplace(node) gives the (output, input) pairs that may share memory; None trusts what the updates say.
    """

    def __init__(self, cluster: Cluster, inplace: InplacePairs | None = None) -> None:
        makers = {v.id: n for n in cluster.nodes for v in n.outputs}
        self.updates = [
            replace(u, in_place=_allows(inplace, makers[u.new.id], u)) if u.in_place and inplace is not None else u
            for u in cluster.updates
        ]
        self.writers = {u.new.id: makers[u.new.id] for u in cluster.updates if u.new.id in makers}
        written = {u.variable.number: u.variable for u in self.updates}
        self.locked = [written[k] for k in sorted(written)]  # one global order, so no deadlock
        self.value_ids = {v.id for v in cluster.resources} | {u.new.id for u in self.updates}
        old = [v for v in cluster.resources if v.constant.number in written]
        self._old = [(v.constant, v.id, v.shape) for v in old]  # the lock keeps other writers off
        self._reads = [(v.constant, v.id, v.shape) for v in cluster.resources if v.constant.number not in written]
        positions = {v.id: i for i, v in enumerate(old)}
        self._writes = [(u, u.new.id, None if u.old is None else positions[u.old.id]) for u in self.updates]
        self._standing: StandingLease | None = None
        self._seen: tuple[int, ...] = ()
        self._unchanged = 0

    def __bool__(self) -> bool:
        return bool(self.value_ids)

    def begin(self, empty: EmptyArray | None = None) -> TransactionRun:
        """Locks what is written and leases what is read.

        empty(dtype, shape) makes the array of a new version, which the run then fills, where it does not write over the
        old one. Without it the executable allocates new versions itself, and puts each into the run's arrays, by the
        id of its Value, before the run ends. It writes over none.
        """
        if not self.value_ids:
            return _NO_VARIABLES
        lease = self.standing()
        return TransactionRun(self, empty) if lease is None else _StandingRun(lease)

    def standing(self) -> StandingLease | None:
        """Returns the lease that runs share while the variables stay as they are; it was entered,
        and the caller leaves it.

        None where a run has to begin by itself: the cluster writes variables, or they changed a few runs ago.
        """
        lease = self._standing
        if lease is None or lease.enter():
            return lease
        self._standing = None
        return None

    def _ran(self, versions: list[VariableVersion]) -> None:
        """Counts the runs in a row that read the same versions; after enough of them, those to come share a lease."""
        seen = tuple(map(id, versions))  # not the versions, which may go
        if seen != self._seen:
            self._seen, self._unchanged = seen, 0
            return
        self._unchanged += 1
        if self._unchanged >= UNCHANGED_RUNS and self._standing is None:
            arrays = {number: v.array for (_, number, _), v in zip(self._reads, versions, strict=True)}
            self._standing = StandingLease.of([variable for variable, _, _ in self._reads], versions, arrays)


class TransactionRun:
    """One run: `arrays` maps value ids to arrays. As a context manager it commits on success, else restores."""

    __slots__ = ("_leased", "_old", "_transaction", "arrays")

    def __init__(self, transaction: Transaction, empty: EmptyArray | None) -> None:
        self._transaction = transaction
        self._leased: list[VariableVersion] = []
        self._old: list[VariableVersion] = []
        self.arrays: dict[int, Array] = {}
        locked: list[Variable] = []
        try:
            for variable in transaction.locked:
                variable.lock.acquire()
                locked.append(variable)
            self._lease()
            if transaction.updates:
                self._read_old()
                if empty is not None:
                    self._make_new(empty)
        except BaseException:
            self._restore()
            self._end(locked)
            raise

    def _lease(self) -> None:
        """Takes a lease of each version that is only read."""
        leased, arrays = self._leased, self.arrays
        for variable, number, shape in self._transaction._reads:
            version = variable.version
            if version is not None:  # as `Variable.lease` does, without a call for each variable of each run
                version.readers.append(None)
                if variable.version is not version:
                    version.readers.pop()
                    version = None
            if version is None:
                version = variable.lease()
                if version is None:
                    raise _no_value(variable)
            leased.append(version)
            if version.shape != shape:
                raise _changed(variable, version, shape)
            arrays[number] = version.array

    def _read_old(self) -> None:
        """Reads the versions that are replaced: without a lease, since the lock is held."""
        old, arrays = self._old, self.arrays
        for variable, number, shape in self._transaction._old:
            version = variable.version
            if version is None:
                raise _no_value(variable)
            if version.shape != shape:
                raise _changed(variable, version, shape)
            old.append(version)
            arrays[number] = version.array

    def _make_new(self, empty: EmptyArray) -> None:
        """Gives each new version an array: the old one's where nobody reads that."""
        for update, new, old in self._transaction._writes:
            if update.in_place and old is not None:
                variable, version = update.variable, self._old[old]
                readers = version.readers
                if not readers:
                    variable.version = None  # who wants to read from now on waits for the lock
                    readers.append(None)  # orders what was written before what is read after, see Variable
                    alone = len(readers) == 1
                    readers.pop()
                    if alone and (not version.standing or version.end_standing()):
                        self.arrays[new] = version.array
                        continue
                    variable.version = version
            try:
                self.arrays[new] = empty(update.new.dtype, update.new.shape)
            except ResourceExhaustedError as e:
                raise at_node(e, self._transaction.writers.get(new)) from e.__cause__

    def __enter__(self) -> dict[int, Array]:
        return self.arrays

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        transaction = self._transaction
        try:
            if transaction.updates:
                self._commit() if kind is None else self._restore()
            elif kind is None:
                transaction._ran(self._leased)
        finally:
            self._end(transaction.locked)

    def _commit(self) -> None:
        transaction, arrays = self._transaction, self.arrays
        if not transaction.value_ids <= arrays.keys():
            raise self._not_made(next(u for u, new, _ in transaction._writes if new not in arrays))
        for update, new, old in transaction._writes:
            variable: Variable = update.variable
            if old is not None and self._old[old].array is arrays[new]:
                if variable.derived:
                    variable.derived = {}
                variable.version = self._old[old]
            else:
                variable.commit(arrays[new], update.new.shape)

    def _not_made(self, update: Update) -> OpError:
        fact = f"the executable gave no new version of variable '{update.variable.name}'"
        node = self._transaction.writers.get(update.new.id)
        return InternalError(f"{node.op} '{node.name}': {fact}", node.name) if node else InternalError(fact)

    def _restore(self) -> None:
        """Gives variables that were to be written over their old versions again."""
        for update, _, old in self._transaction._writes:
            variable: Variable = update.variable
            if update.in_place and variable.version is None and old is not None and old < len(self._old):
                variable.restore(self._old[old])

    def _end(self, locked: Sequence[Variable]) -> None:
        """Gives back leases and locks."""
        for version in self._leased:
            version.readers.pop()
        for variable in reversed(locked):
            variable.lock.release()


class _NoVariables(TransactionRun):
    """The part of any run that needs no variable."""

    def __init__(self) -> None:
        self.arrays = {}

    def __enter__(self) -> dict[int, Array]:
        return {}

    def __exit__(self, *_: object) -> None:
        pass


_NO_VARIABLES = _NoVariables()


class _StandingRun(TransactionRun):
    """A run that shares a lease with those before and after it."""

    __slots__ = ("_lease_of_all",)

    def __init__(self, lease: StandingLease) -> None:
        self._lease_of_all = lease
        self.arrays = dict(lease.arrays)

    def __exit__(self, *_: object) -> None:
        self._lease_of_all.leave()


def _allows(inplace: InplacePairs, maker: KernelNode, update: Update) -> bool:
    """Returns whether the kernel that makes the new version may write it over the old one."""
    assert update.old is not None
    return (maker.outputs.index(update.new), maker.inputs.index(update.old)) in inplace(maker)


def _no_value(variable: Variable) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"VarHandleOp '{variable.name}': the variable has no value; run its initializer first", variable.name
    )


def _changed(variable: Variable, version: VariableVersion, shape: tuple[int, ...]) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"VarHandleOp '{variable.name}': the variable changed to shape {version.shape} during the run; "
        f"it was planned with {shape}",
        variable.name,
    )
