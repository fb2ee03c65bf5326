"""Hash tables, and the ops on them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe.host_ops.handles import resource_of
from timberframe_core.dtypes import DType
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import StaticShape, format_shape


class Table:
    """Values of keys. once: it is filled once, and must be before it is read. shape: of each value."""

    def __init__(self, name: str, keys: DType, values: DType, shape: StaticShape, once: bool) -> None:
        self.name = name
        self.keys = keys
        self.values = values
        self.shape = shape
        self.once = once
        self.filled = not once
        self._lock = threading.Lock()
        self._entries: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"table '{self.name}'"

    def __len__(self) -> int:
        return len(self._entries)

    def check(self, keys: DType | None, values: DType | None) -> None:
        """Raises InvalidArgumentError where keys or values of these dtypes do not suit."""
        for what, given, held in (("keys", keys, self.keys), ("values", values, self.values)):
            if given is not None and given is not held:
                raise InvalidArgumentError(f"{what} are {given.name}; {self} has {held.name}")

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """Returns the values of keys; default: for those that are missing, one value or one for each key."""
        if not self.filled:
            raise FailedPreconditionError(f"{self} is not initialized; run tf.tables_initializer() first")
        wanted = (*keys.shape, *self.shape)
        if default.shape not in (self.shape, wanted):
            raise InvalidArgumentError(
                f"default_value has shape {format_shape(default.shape)}; {format_shape(self.shape)} or "
                f"{format_shape(wanted)} is required"
            )
        found = np.empty(wanted, self.values.numpy)
        found[...] = default
        flat, entries = found.reshape((keys.size, *self.shape)), self._entries
        for i, key in enumerate(keys.ravel().tolist()):
            value = entries.get(key)
            if value is not None:
                flat[i] = value
        return found

    def fill(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Fills a table that is filled once; FailedPreconditionError where it has other entries already."""
        new = self._pairs(keys, values)
        with self._lock:
            if self.filled and not _equal(new, self._entries):
                raise FailedPreconditionError(
                    f"{self} is initialized already, with other keys or values; they must be equal"
                )
            self._entries, self.filled = new, True

    def insert(self, keys: np.ndarray, values: np.ndarray, replace: bool = False) -> None:
        """Sets values of keys; replace: drops all others."""
        if self.once and not replace:
            raise FailedPreconditionError(f"{self} is filled once; a mutable table is required to insert")
        if self.once:
            self.fill(keys, values)
            return
        new = self._pairs(keys, values)
        with self._lock:
            if replace:
                self._entries = new
            else:
                self._entries.update(new)

    def remove(self, keys: np.ndarray) -> None:
        """Drops keys, where they are."""
        if self.once:
            raise FailedPreconditionError(f"{self} is filled once; a mutable table is required to remove")
        with self._lock:
            for key in keys.ravel().tolist():
                self._entries.pop(key, None)

    def export(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns all keys and values."""
        with self._lock:
            items = list(self._entries.items())
        keys, values = np.empty(len(items), self.keys.numpy), np.empty((len(items), *self.shape), self.values.numpy)
        for i, (key, value) in enumerate(items):
            keys[i], values[i] = key, value
        return keys, values

    def _pairs(self, keys: np.ndarray, values: np.ndarray) -> dict[Any, Any]:
        wanted = (*keys.shape, *self.shape)
        if values.shape != wanted:
            raise InvalidArgumentError(
                f"values have shape {format_shape(values.shape)} for keys of shape {format_shape(keys.shape)}; "
                f"{format_shape(wanted)} is required"
            )
        rows = values.reshape((keys.size, *self.shape))
        new: dict[Any, Any] = {}
        for key, value in zip(keys.ravel().tolist(), rows.tolist() if not self.shape else rows.copy(), strict=True):
            old = new.setdefault(key, value)
            if self.once and not np.array_equal(old, value):
                raise FailedPreconditionError(f"key {key!r} has the values {old!r} and {value!r}; it must have one")
            new[key] = value
        return new


def _equal(a: dict[Any, Any], b: dict[Any, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


@host_op("HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2")
def _make(call: HostCall) -> list[Any]:
    keys, values, shape = call.attrs["key_dtype"], call.attrs["value_dtype"], call.attrs.get("value_shape", ())
    if shape is None or None in shape:
        raise call.error(f"value_shape is {format_shape(shape)}; it must be fully known")
    name, once = call.made.partition(" ")[2], not call.op.startswith("Mutable")
    table = call.resources.get_or_make(call.made, lambda: Table(name, keys, values, tuple(shape), once))
    table.check(keys, values)
    if (table.once, table.shape) != (once, tuple(shape)):
        raise call.error(f"{table} is of another kind; a table of this name was made by another op")
    return []


def _on_table(work: Callable[[HostCall, Table], list[Any]]) -> Callable[[HostCall], list[Any]]:
    """Returns a host op of what is done with the table that the handle means."""

    def run(call: HostCall) -> list[Any]:
        table = resource_of(call, Table)
        attrs = call.attrs
        keys = next((attrs[a] for a in ("Tin", "Tkey", "Tkeys") if a in attrs), None)
        table.check(keys, next((attrs[a] for a in ("Tout", "Tval", "Tvalues") if a in attrs), None))
        return work(call, table)

    run.__qualname__ = work.__qualname__
    return run


@host_op("InitializeTableV2")
@_on_table
def _initialize(call: HostCall, table: Table) -> list[Any]:
    table.fill(*call.inputs)
    return []


@host_op("LookupTableFindV2")
@_on_table
def _find(call: HostCall, table: Table) -> list[Any]:
    return [table.find(*call.inputs)]


@host_op("LookupTableInsertV2")
@_on_table
def _insert(call: HostCall, table: Table) -> list[Any]:
    table.insert(*call.inputs)
    return []


@host_op("LookupTableImportV2")
@_on_table
def _import(call: HostCall, table: Table) -> list[Any]:
    keys, values = call.inputs
    table.insert(keys, values, replace=True)
    return []


@host_op("LookupTableRemoveV2")
@_on_table
def _remove(call: HostCall, table: Table) -> list[Any]:
    table.remove(*call.inputs)
    return []


@host_op("LookupTableSizeV2")
@_on_table
def _size(call: HostCall, table: Table) -> list[Any]:
    return [np.array(len(table), np.int64)]


@host_op("LookupTableExportV2")
@_on_table
def _export(call: HostCall, table: Table) -> list[Any]:
    return list(table.export())
