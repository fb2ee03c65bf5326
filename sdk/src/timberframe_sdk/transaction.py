"""Transactions: how one run of an executable sees and replaces the versions of variables.

Reads take a reference to the current version. A writer holds the variable's lock from reading the old version to
committing the new one, so updates are never lost; a failed run leaves the old version in place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from timberframe_core.plugin.contracts import Array, Cluster, KernelNode, Update, Value, Variable
from timberframe_sdk.allocator import at_node

EmptyArray = Callable[[Any, tuple[int, ...]], Array]

# References to an old version when nobody outside the transaction holds it: the table of versions, the local variable,
# and the argument of getrefcount.
_OWN_REFERENCES = 3


InplacePairs = Callable[[KernelNode], Sequence[tuple[int, int]]]


class Transaction:
    """What a cluster does to variables; `begin` starts one run's part. Thread-safe and reusable.

    inplace(node) gives the (output, input) pairs that may share memory; None trusts what the updates say.
    """

    def __init__(self, cluster: Cluster, inplace: InplacePairs | None = None) -> None:
        self.resources = list(cluster.resources)
        makers = {v.id: n for n in cluster.nodes for v in n.outputs}
        self.updates = [
            replace(u, in_place=_allows(inplace, makers[u.new.id], u)) if u.in_place and inplace is not None else u
            for u in cluster.updates
        ]
        self.writers = {u.new.id: makers[u.new.id] for u in cluster.updates if u.new.id in makers}
        written = {u.variable.number: u.variable for u in self.updates}
        self.locked = [written[k] for k in sorted(written)]  # one global order, so no deadlock
        self.value_ids = {v.id for v in self.resources} | {u.new.id for u in self.updates}

    def __bool__(self) -> bool:
        return bool(self.resources or self.updates)

    def begin(self, empty: EmptyArray) -> TransactionRun:
        """Locks what is written and binds every version to an array; `empty` makes those that are new."""
        return TransactionRun(self, empty) if self.value_ids else _NO_VARIABLES


class TransactionRun:
    """One run: `arrays` maps value ids to arrays. As a context manager it commits on success, else restores."""

    __slots__ = ("_transaction", "arrays")

    def __init__(self, transaction: Transaction, empty: EmptyArray) -> None:
        self._transaction = transaction
        self.arrays: dict[int, Array] = {}
        locked = []
        try:
            for variable in transaction.locked:
                variable.lock.acquire()
                locked.append(variable)
            for value in transaction.resources:
                self.arrays[value.id] = _current(value)
            for update in transaction.updates:
                self.arrays[update.new.id] = self._new_version(update, empty)
        except BaseException:
            for variable in reversed(locked):
                variable.lock.release()
            raise

    def _new_version(self, update: Update, empty: EmptyArray) -> Array:
        """The array that the new version is written to: the old one where nothing else refers to it."""
        if update.in_place and update.old is not None:
            variable: Variable = update.variable
            old = self.arrays[update.old.id]
            # the variable and self.arrays hold one reference each, `old` and the argument two more
            if sys.getrefcount(old) <= _OWN_REFERENCES + 1:
                variable.array = None  # readers wait: half-written values are never seen
                return old
        try:
            return empty(update.new.dtype, update.new.shape)
        except ResourceExhaustedError as e:
            raise at_node(e, self._transaction.writers.get(update.new.id)) from e.__cause__

    def __enter__(self) -> dict[int, Array]:
        return self.arrays

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for update in self._transaction.updates:
            variable: Variable = update.variable
            if kind is None:
                variable.commit(self.arrays[update.new.id], update.new.shape)
            elif variable.array is None and update.in_place and update.old is not None:
                variable.array = self.arrays[update.old.id]
        for variable in reversed(self._transaction.locked):
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


def _allows(inplace: InplacePairs, maker: KernelNode, update: Update) -> bool:
    """Whether the kernel that makes the new version may write it over the old one."""
    assert update.old is not None
    return (maker.outputs.index(update.new), maker.inputs.index(update.old)) in inplace(maker)


def _current(value: Value) -> Array:
    """The variable's version now, waiting for a writer that works in place."""
    variable: Variable = value.constant
    array = variable.array
    if array is None:
        with variable.lock:
            array = variable.array
    if array is None:
        raise FailedPreconditionError(
            f"VarHandleOp '{variable.name}': the variable has no value; run its initializer first", variable.name
        )
    if tuple(array.shape) != value.shape:
        raise InvalidArgumentError(
            f"VarHandleOp '{variable.name}': the variable changed to shape {tuple(array.shape)} during the run; "
            f"it was planned with {value.shape}",
            variable.name,
        )
    return array
