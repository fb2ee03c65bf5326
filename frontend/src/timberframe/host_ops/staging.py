"""The ops on staging areas."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np

from timberframe_core.errors import ResourceExhaustedError
from timberframe_core.plugin.contracts import CancelToken
from timberframe_core.plugin.host_ops import HostCall, host_op

Element = tuple[np.ndarray, ...]


class Area:
    """Elements that leave in the order in which they came. capacity, memory_limit: elements and bytes; 0 for any.

    Methods that wait raise what cancels the run; then nothing has changed.
    """

    def __init__(self, capacity: int, memory_limit: int) -> None:
        self._capacity = capacity
        self._limit = memory_limit
        self._changed = threading.Condition()
        self._elements: deque[Element] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._elements)

    def put(self, element: Element, cancel: CancelToken) -> None:
        """Adds an element, waiting until there is room; ResourceExhaustedError where there never can be."""
        size = _bytes(element)
        if 0 < self._limit < size:
            raise ResourceExhaustedError(f"the element has {size} bytes; memory_limit is {self._limit}")
        with self._changed:
            cancel.wait_for(self._changed, lambda: self._has_room(size))
            self._elements.append(element)
            self._bytes += size
            self._changed.notify_all()

    def _has_room(self, size: int) -> bool:
        full = 0 < self._capacity <= len(self._elements)
        return not full and not 0 < self._limit < self._bytes + size

    def get(self, cancel: CancelToken) -> Element:
        """Takes the first element, waiting until there is one."""
        with self._changed:
            cancel.wait_for(self._changed, lambda: bool(self._elements))
            element = self._elements.popleft()
            self._bytes -= _bytes(element)
            self._changed.notify_all()
        return element

    def peek(self, index: int, cancel: CancelToken) -> Element:
        """Returns the element at an index, which stays, waiting until there are as many."""
        with self._changed:
            cancel.wait_for(self._changed, lambda: index < len(self._elements))
            return self._elements[index]

    def clear(self) -> None:
        """Drops all elements."""
        with self._changed:
            self._elements.clear()
            self._bytes = 0
            self._changed.notify_all()


def _bytes(element: Element) -> int:
    return sum(x.nbytes for x in element)


def _area(call: HostCall) -> Area:
    attrs = call.attrs
    key = f"staging_area {attrs['container']} {attrs['shared_name'] or call.path}"
    return call.resources.get_or_make(key, lambda: Area(attrs["capacity"], attrs["memory_limit"]))


def _checked(call: HostCall, element: Element) -> list[Any]:
    given, wanted = [x.dtype for x in element], [d.numpy for d in call.attrs["dtypes"]]
    if given != wanted:
        raise call.error(f"the element has dtypes {[*map(str, given)]}; {[*map(str, wanted)]} are asked for")
    return list(element)


@host_op("Stage")
def _stage(call: HostCall) -> list[Any]:
    _area(call).put(tuple(np.array(x) for x in call.inputs), call.cancel)  # a copy: a feed may be changed by its owner
    return []


@host_op("Unstage")
def _unstage(call: HostCall) -> list[Any]:
    return _checked(call, _area(call).get(call.cancel))


@host_op("StagePeek")
def _peek(call: HostCall) -> list[Any]:
    index = int(call.inputs[0])
    if index < 0:
        raise call.error(f"index is {index}; it must not be negative")
    return _checked(call, _area(call).peek(index, call.cancel))


@host_op("StageSize")
def _size(call: HostCall) -> list[Any]:
    return [np.array(len(_area(call)), np.int32)]


@host_op("StageClear")
def _clear(call: HostCall) -> list[Any]:
    _area(call).clear()
    return []
