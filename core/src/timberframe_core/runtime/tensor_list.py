"""TensorList: the host-side value of a tensor of dtype variant, an immutable sequence of located arrays.

Changing an element, pushing and popping give a new list and take constant time when the newest list of a family is
changed, which is what loops do. The newest one holds the elements; an older one holds only how it differs from the next
newer one, and takes the elements over when somebody reads it: persistent arrays by rerooting, H. Baker, "Shallow
binding makes functional arrays fast", 1991. Where lists of one family are used by turns, so that this has taken more
steps than they have elements, one of them gets elements of its own. What no list refers to any more is freed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from timberframe_core.compiler.plan import Located
from timberframe_core.dtypes import DType
from timberframe_core.errors import ResourceExhaustedError
from timberframe_core.shapes import Shape, StaticShape, is_static

MOST_ELEMENTS = 1 << 26
"""Of a list: half a gigabyte of references, before there is any element."""

_lock = threading.RLock()  # rerooting changes several lists at once

_MOST_SPARSE_ITEMS = 4

Element = Located | None
"""An array with its device; None for an element that was never set and reads as zeros."""


class _Version:
    """One state of a sequence: the newest holds all `items`, an older one (index, value) and the `newer` state.

    steps: how many changes have been undone to give older states the items, since these were last copied.
    """

    __slots__ = ("index", "items", "newer", "steps", "value")

    def __init__(self, items: list[Element], steps: int = 0) -> None:
        self.items: list[Element] | None = items
        self.steps = steps
        self.index = 0
        self.value: Element = None
        self.newer: _Version | None = None

    def root(self) -> list[Element]:
        """Returns the items, taken over from the newer state that holds them, or a copy of its own."""
        if self.items is None:
            chain: list[_Version] = []
            at = self
            while at.items is None:
                chain.append(at)
                assert at.newer is not None
                at = at.newer
            steps = at.steps + len(chain)
            if steps > len(at.items):
                at.steps = self.steps = 0
                items = at.items.copy()
                for older in reversed(chain):
                    items[older.index] = older.value
                self.items, self.newer, self.value = items, None, None
            else:
                self._take_over(chain, at, steps)
        assert self.items is not None
        return self.items

    def _take_over(self, chain: Sequence[_Version], root: _Version, steps: int) -> None:
        """Makes this state the one that holds the items: all those between are from now on seen from here."""
        at = root
        for older in reversed(chain):
            items = at.items
            assert items is not None
            at.index, at.value, at.newer, at.items = older.index, items[older.index], older, None
            items[older.index] = older.value
            older.items, older.newer, older.value = items, None, None
            at = older
        self.steps = steps

    def changed(self, index: int, value: Element) -> _Version:
        """Returns the state with another item; `index` may be one past the end."""
        items = self.root()
        if index == len(items):
            items.append(None)
        new = _Version(items, self.steps)
        self.index, self.value, self.newer, self.items = index, items[index], new, None
        items[index] = value
        return new


class TensorList:
    """A list of tensors.

    dtype: of the elements. declared: the shape that all of them must suit. limit: the most elements it may have, -1 for
    any number. element_shape: the one shape that all elements have, where that is so; else what was declared.
    sparse_items: the elements that were set, by index, while they are at most _MOST_SPARSE_ITEMS; else None.
    """

    __slots__ = ("_state", "declared", "dtype", "length", "limit", "mixed", "seen", "sparse_items")

    shape: StaticShape = ()

    def __init__(self, dtype: DType, declared: Shape, items: list[Element], limit: int = -1) -> None:
        self.dtype = dtype
        self.declared = declared
        self.limit = limit
        self.length = len(items)
        self.seen: StaticShape | None = None
        """The shape of the elements that were set, None while there is none."""
        self.mixed = False
        self.sparse_items: dict[int, Located] | None = {}
        for i, item in enumerate(items):
            if item is not None:
                self._see(i, item)
        self._state = _Version(items)

    def _see(self, index: int, item: Located) -> None:
        shape = tuple(item[0].shape)
        if self.sparse_items is not None:
            is_sparse = len(self.sparse_items) < _MOST_SPARSE_ITEMS
            self.sparse_items = {**self.sparse_items, index: item} if is_sparse else None
        if self.seen is None:
            self.seen = shape
        elif self.seen != shape:
            self.mixed = True

    @property
    def element_shape(self) -> Shape:
        """What is known of the shape of each element."""
        if is_static(self.declared) or self.mixed:
            return self.declared
        return self.declared if self.seen is None else self.seen

    def copy(self) -> TensorList:
        """Returns the list itself, which never changes."""
        return self

    def __len__(self) -> int:
        return self.length

    def get(self, index: int) -> Element:
        """Returns one element."""
        with _lock:
            return self._state.root()[index]

    def items(self) -> list[Element]:
        """Returns all elements."""
        with _lock:
            return self._state.root()[: self.length]

    def numbered(self) -> Iterator[tuple[int, Located]]:
        """Returns the elements that were set, with their positions."""
        if self.sparse_items is not None:
            return iter(self.sparse_items.items())
        return ((i, item) for i, item in enumerate(self.items()) if item is not None)

    def _like(self, state: _Version, length: int) -> TensorList:
        new = TensorList.__new__(TensorList)
        new.dtype, new.declared, new.limit = self.dtype, self.declared, self.limit
        new.seen, new.mixed, new.sparse_items = self.seen, self.mixed, self.sparse_items
        new.length, new._state = length, state
        return new

    def with_item(self, index: int, item: Located) -> TensorList:
        """Returns the list with another element at `index`, which may be one past the end."""
        with _lock:
            new = self._like(self._state.changed(index, item), max(self.length, index + 1))
        new._see(index, item)
        return new

    def popped(self) -> TensorList:
        """Returns the list without its last element."""
        last = self.length - 1
        with _lock:
            new = self._like(self._state.changed(last, None), last)
        if new.sparse_items is not None:
            new.sparse_items = {i: item for i, item in new.sparse_items.items() if i != last}
        return new

    def resized(self, size: int) -> TensorList:
        """Returns the list cut off, or with elements that read as zeros at its end."""
        items = self.items()[:size]
        new = self.of(items + without_values(size - len(items)))
        new.mixed |= self.mixed
        return new

    def of(self, items: list[Element]) -> TensorList:
        """Returns a list of the same kind with other elements."""
        return TensorList(self.dtype, self.declared, items, self.limit)


def without_values(count: int) -> list[Element]:
    """Returns elements that read as zeros; ResourceExhaustedError for more than a list can have."""
    if count > MOST_ELEMENTS:
        raise ResourceExhaustedError(f"a list is to have {count} further elements; it has at most {MOST_ELEMENTS}")
    return [None] * count


def is_list(value: Any) -> bool:
    """Returns whether an array of the executor is a list."""
    return isinstance(value, TensorList)
