"""A model of variables in NumPy: what programs of family `calls` with functions call. Statements run as they stand."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np


class NotModelledError(Exception):
    """The program has a session or threads."""


def device(name: str) -> Any:
    """Does nothing."""
    return contextlib.nullcontext()


def constant(x: Any) -> Any:
    return np.asarray(x)


def function(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


def reduce_sum(x: Any) -> Any:
    return np.sum(_value(x))


def cond(condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    return yes() if condition else no()


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Variable) else x


class IndexedSlices:
    """Rows of a value."""

    def __init__(self, values: Any, indices: Any) -> None:
        self.rows, self.places = np.asarray(_value(values)), indices


class Variable:
    """An array that changes as a whole: what was read before keeps its value."""

    __array_ufunc__ = None  # arrays leave operations with variables to the variable

    def __init__(self, value: Any, use_resource: bool = True) -> None:
        self.value = np.array(value)

    def numpy(self) -> Any:
        return self.value

    def read_value(self) -> Any:
        raise NotModelledError("threads")

    def assign(self, x: Any) -> None:
        self.value = np.array(_value(x), self.value.dtype) + np.zeros_like(self.value)

    def assign_add(self, x: Any) -> None:
        self.value = self.value + _value(x)

    def assign_sub(self, x: Any) -> None:
        self.value = self.value - _value(x)

    def _scattered(self, rows: IndexedSlices, update: Callable[[Any, Any], Any]) -> None:
        made = self.value.copy()
        for place, row in zip(rows.places, rows.rows, strict=True):
            made[place] = update(made[place], row)
        self.value = made

    def scatter_add(self, rows: IndexedSlices) -> None:
        self._scattered(rows, lambda old, new: old + new)

    def scatter_sub(self, rows: IndexedSlices) -> None:
        self._scattered(rows, lambda old, new: old - new)

    def scatter_update(self, rows: IndexedSlices) -> None:
        self._scattered(rows, lambda old, new: new)

    def __add__(self, x: Any) -> Any:
        return self.value + _value(x)

    __radd__ = __add__

    def __rsub__(self, x: Any) -> Any:
        return x - self.value

    def __sub__(self, x: Any) -> Any:
        return self.value - _value(x)

    def __mul__(self, x: Any) -> Any:
        return self.value * _value(x)

    def __neg__(self) -> Any:
        return -self.value


class Graph:
    """Sessions are not modelled."""

    def __init__(self) -> None:
        raise NotModelledError("a graph")
